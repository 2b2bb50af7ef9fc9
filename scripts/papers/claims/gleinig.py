"""What Gleinig et al. 2023 print."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from papers.claim import Claim, Numbers, Rows, between, by, least, middle, near, of, pick, ratio, ratios
from papers.figure import Paper
from papers.studies.gleinig_io import BEFORE, THEIRS

PAPER = Paper(
    "gleinig-2023", "A Theory of I/O-Efficient Sparse Neural Network Inference", "N. Gleinig, T. Ben-Nun, T. Hoefler",
    2023, "arXiv:2301.01048",
)  # fmt: skip
FIGURE_2 = ("gleinig-2a", "gleinig-2b", "gleinig-2c", "gleinig-2d")
POINT = ("figure", "kind", "n_layers", "width", "density", "memory", "m_g", "policy")
LARGE, CLOSE = 5, 10  # per cent saved that we call large; per cent above the bound that we call close
SIMILAR = (0.95, 1.05)


def _saved(method: str) -> Callable[[Rows], list[float]]:
    return lambda rows: [100 * (1 - share) for share in ratios(rows, method, BEFORE, *POINT)]


def _most(method: str) -> Callable[[Rows], Numbers]:
    return lambda rows: max(_saved(method)(rows), default=None)


def _closer(rows: Rows, method: str) -> Numbers:
    """The share of the distance to the bound that is gone, where the most is saved."""
    groups = [g for g in by(rows, *POINT) if g[0].get(method) is not None]
    best = max(groups, key=lambda g: -(middle(g, ratio(method, BEFORE)) or 0), default=[])
    return _gone(best, method)


def _gone(rows: Rows, method: str) -> float | None:
    """The median share of the distance to the bound that is gone, over the networks that have any."""
    far = [r for r in rows if r[BEFORE] > r["bound"]]
    return middle(far, lambda r: 100 * (r[BEFORE] - r[method]) / (r[BEFORE] - r["bound"]))


def _everywhere(rows: Rows, method: str) -> list[float]:
    far = [g for g in by(rows, *POINT) if 100 * (1 - (middle(g, ratio("bound", BEFORE)) or 1)) > CLOSE]
    return [share for g in far for share in _saved(method)(g)]


def _below(rows: Rows, method: str) -> Numbers:
    """How many networks are at the bound below M_g, and were not before."""
    below = [r for r in rows if r["memory"] < r["m_g"] and r[BEFORE] > r["bound"] and method in r]
    return float(sum(r[method] == r["bound"] for r in below)) if below else None


def _early(rows: Rows) -> list[float]:
    """By policy, the share of the reduction that the first 10,000 iterations have, where the search went on."""
    shares: dict[str, list[float]] = {}
    for group in by(rows, "policy", "seed"):
        curve = {r["iteration"]: r[THEIRS] for r in group}
        first, last = curve[min(curve)], curve[max(curve)]
        if max(curve) > 10_000 and 10_000 in curve and first > last:
            shares.setdefault(group[0]["policy"], []).append(100 * (first - curve[10_000]) / (first - last))
    return [sum(s) / len(s) for s in shares.values()]


def _policies(rows: Rows, count: str) -> Numbers:
    """RR's count over LRU's after the search, network by network."""
    last = [max(g, key=lambda r: r["iteration"]) for g in by(pick(rows, policy=("rr", "lru")), "seed", "policy")]
    pairs = [{r["policy"]: r.get(count) for r in g} for g in by(last, "seed")]
    return middle([p for p in pairs if p.get("rr") and p.get("lru")], ratio("rr", "lru"))


RUNS, LITERAL = "two-optimal, runs", "two-optimal, literal"


def _mkl(routine: str, threads: int, ours: str = RUNS, **where: Any) -> Callable[[Rows], Numbers]:
    """MKL's time over ours at the density of 0.1 % of Figure 7a."""
    wanted = {"panel": "7a", "density": 0.001, "threads": threads, **where}
    return lambda rows: ratios(pick(rows, **wanted), routine, ours) or None


def _gain(how: str, **where: Any) -> Callable[[Rows], list[float]]:
    """How many times as fast reordering makes the inference, point by point."""
    return lambda rows: ratios(pick(rows, threads=1, **where), f"two-optimal, {how}", f"reordered, {how}",
                               "panel", "density", "n_layers", "width")  # fmt: skip


def _grows(rows: Rows, routine: str) -> list[float]:
    """Each step's factor of MKL's time over ours, along depth and along width: above one where the gain grows."""
    one = pick(rows, threads=1, density=0.1)
    found = []
    for panel, key in (("7b", "n_layers"), ("7c", "width")):
        along = ratios([r for r in one if r["panel"] in (panel, "7a")], routine, RUNS, key)
        found += [b / a for a, b in pairwise(along)]
    return found


def _bert_ms(rows: Rows, routine: str, threads: int) -> Numbers:
    there = [r for r in pick(rows, panel="8", density=0.1, threads=threads) if routine in r]
    return middle(there, lambda r: r[routine] / 1e3)


CSRMM, HANDLES = ("mkl-scsrmm", "mkl")
IO = ("gleinig-2a", "gleinig-2b", "gleinig-2c", "gleinig-2d", "gleinig-3", "gleinig-5")
CLAIMS = [
    Claim("factor-2", "abstract, Theorem 1", "The bounds determine the least number of I/Os up to a factor of 2, and "
        "the two-optimal order stays within it.", IO, between(1, 2),
        {"": lambda rows: [r[BEFORE] / r["bound"] for r in rows]}, "times the bound",
        note="A theorem: every network must show it."),
    Claim("43.5", "section VI-A1", "Connection Reordering lowers the I/Os of the two-optimal order by up to 43.5 %.",
        FIGURE_2, near(43.5, by=0.02), {"": _most(THEIRS)}, "%", _most("auto"), "At the dense end of Figure 2c, which "
        "alone leaves that much above Theorem 1's bound."),
    Claim("97.4", "section VI-A1", "It comes up to 97.4 % closer to the lower bound of Theorem 1.", FIGURE_2,
        near(97.4, by=0.01), {"": of(_closer, THEIRS)}, "%", of(_closer, "auto"), "Read as the share of the distance "
        "between the two-optimal order and the bound that is gone, at the point where the most is saved."),
    Claim("everywhere", "section VI-A1", "The improvement is consistently large over all parameters, except where the "
        "two-optimal order is close to the bound already.", FIGURE_2, least(LARGE),
        {f"large: {LARGE} % or more; close: {CLOSE} % or less above the bound": of(_everywhere, THEIRS)}, "%",
        of(_everywhere, "auto"), "No number says what is large or close. The least is at M = 10."),
    Claim("grown", "section VI-A2", "Networks of Compact Growth need the least possible I/Os whenever M >= M_g, "
        "without any search.", ("gleinig-3",), near(1, by=0),
        {"": lambda rows: [r[BEFORE] / r["bound"] for r in rows if r["memory"] >= r["m_g"]]}, "times the bound",
        note="Theorem 2; it holds for every such network."),
    Claim("below-growth", "section VI-A2", "With Connection Reordering the least is also reached for some M < M_g.",
        ("gleinig-3",), least(1), {"": of(_below, THEIRS), "the growth's order with early outputs, which needs no "
        "search": of(_below, "early-outputs")}, "networks", of(_below, "auto"), "Just below M_g the growth's order "
        "with each output's connections right after their source's last other use needs the least on some networks."),
    Claim("early", "section VI-A3", "Most of the reduction happens in the first 10,000 iterations.", ("gleinig-4",),
        least(50), {"": _early}, "%", note="Takes --full: the default selection ends at 10,000 and cannot say."),
    Claim("policies", "section VI-A3", "After the search, RR and LRU need similar numbers of I/Os (no number is "
        "printed).", ("gleinig-4",), between(*SIMILAR), {"": of(_policies, THEIRS), "the connection as an entry of "
        "the same memory": of(_policies, f"{THEIRS}, three accesses")}, "times LRU's", note="Similar: within 5 %."),
    Claim("large-memory", "section VI-A4", "Where memory is large enough both orders reach the lower bound.",
        ("gleinig-5",), near(1, by=0),
        {"": lambda rows: [r[k] / r["bound"] for r in rows if r["memory"] == max(q["memory"] for q in rows)
         for k in (BEFORE, THEIRS)]}, "times the bound", note="At the largest memory that was run."),
    Claim("small-memory", "section VI-A4", "Where it is not, the search comes closer to it.", ("gleinig-5",), least(1),
        {"": lambda rows: [gone for g in by(rows, "memory") if (gone := _gone(g, THEIRS)) is not None]},
        "% of the distance", note="By memory, medians over the networks."),
    Claim("bert", "section VI-A5", "I/Os and bound of a pruned BERT feed-forward block (no number is printed).",
        ("gleinig-6",), least(0), {"": _saved(THEIRS)}, "% saved", _saved("auto"),
        lacking="a random network of that shape, not BERT", note="Of trained weights at hand `edgewatt order --prune` "
        "tells the same."),
    Claim("mkl-45", "abstract, section VI-B1, conclusion", "Batched inference is up to 45 times as fast as MKL's "
        "CSRMM (at density 0.1 %).", ("gleinig-clock",), near(45, by=0.15), {"": _mkl(CSRMM, 1),
        "two threads": _mkl(CSRMM, 2), "every connection stores": _mkl(CSRMM, 1, LITERAL),
        "handles made once": _mkl(HANDLES, 1), "handles, two threads": _mkl(HANDLES, 2)}, "times", _mkl(CSRMM, 1,
        "fastest"), "CSRMM is `mkl_scsrmm` of MKL 2021.3.0, column-major and one-based; the ratio depends on the "
        "processor."),
    Claim("1.17", "conclusion, Figure 7", "Reordering makes inference up to 1.17 times as fast as the two-optimal "
        "order.", ("gleinig-clock",), near(1.17, by=0.1), {"": lambda rows: max(_gain("runs")(rows), default=None),
        "every connection stores its target": lambda rows: max(_gain("literal")(rows), default=None)}, "times",
        note= "Where sums stay in registers, reordering cuts runs and takes longer: such a kernel wants the order "
        "of " '`objective="time"`.'),
    Claim("by-density", "section VI-B1, Figure 7a", "Below a density of 1 % inference is slightly slower with "
        "reordering.", ("gleinig-clock",), between(0.8, 1), {name: _gain(how, panel="7a", density=(0.001,
        0.005)) for name, how in (("", "runs"), ("every connection stores its target", "literal"))}, "times as fast",
        note="The paper names caches that hold small networks as the cause; ours hold all of these."),
    Claim("by-size", "section VI-B1, Figures 7b and 7c", "The gain over MKL grows with depth and with width.",
        ("gleinig-clock",), least(1), {"": of(_grows, CSRMM), "handles made once": of(_grows, HANDLES)},
        "times a step", note="One core: MKL does not fall behind on larger networks."),
    Claim("dense", "section VI-B1, Figure 7a", "Even a fully dense network is faster than with MKL, whose sparse "
        "product it has to use.", ("gleinig-clock",), least(1), {"": lambda rows: ratios(pick(rows, panel="7a",
        density=1.0), CSRMM, RUNS) or None, "handles made once": lambda rows: ratios(pick(rows, panel="7a",
        density=1.0), HANDLES, RUNS) or None}, "times", note="Takes --full."),
    Claim("bert-17ms", "section VI-B2", "MKL takes about 17 ms for the BERT block at 10 % density.",
        ("gleinig-clock",), near(17, by=0.2), {name: of(_bert_ms, routine, n) for name, routine, n in (("", CSRMM, 1),
        ("two threads", CSRMM, 2), ("handles made once", HANDLES, 1), ("handles, two threads", HANDLES, 2))}, "ms",
        note="Depends on the processor; one outlier of 106 ms is printed beside it."),
    Claim("bert-faster", "section VI-B2", "Reordering always makes the BERT block's inference faster.",
        ("gleinig-clock",), least(1), {"": _gain("runs", panel="8"),
        "every connection stores its target": _gain("literal", panel="8")}, "times as fast"),
]  # fmt: skip
