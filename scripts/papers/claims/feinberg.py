"""What Feinberg et al. 2020 print."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import Any

from papers.claim import Claim, Numbers, Rows, between, by, least, middle, most, near, of, pick
from papers.figure import Paper
from papers.studies.cdr_search import SEARCHES
from papers.studies.cdr_strides import eight_channels

PAPER = Paper(
    "feinberg-2020",
    "Commutative Data Reordering, A New Technique to Reduce Data Movement Energy on Sparse Inference Workloads",
    "B. Feinberg, B. C. Heyman, D. Mikhailenko, R. Wong, A. C. Ho, E. Ipek", 2020, "ISCA 2020",
)  # fmt: skip
STRIDES, ONES, SEARCH = ("cdr-strides",), ("cdr-ones",), ("cdr-search",)
WIRES = 0.239
"""Share of the wires in the paper's DRAM energy: 12.7 of 53.1 % and 5.3 of 22.2 % (section VIII-A) both give it."""


def _mean(rows: Rows, value: str, scale: float = 1, **where: Any) -> Numbers:
    values = [r[value] for r in pick(rows, **where) if r.get(value) is not None]
    return scale * fmean(values) if values else None


def _greatest(rows: Rows, value: str, scale: float = 1, **where: Any) -> Numbers:
    return max((scale * r[value] for r in pick(rows, **where) if r.get(value) is not None), default=None)


def _every(rows: Rows, value: str, *keys: str, **where: Any) -> list[float]:
    return [m for group in by(pick(rows, **where), *keys) if (m := middle(group, value)) is not None]


BEST = {"free": True}


def _io(against: str) -> dict[str, Callable[[Rows], Numbers]]:
    """The average at strides that cost no time, the most, and of whole rows."""
    column = f"IO, {against}"
    return {
        "": of(_mean, column, **BEST), "the most": of(_greatest, column, **BEST), "whole rows": of(_mean, column,
        stride="row"),
        "the most, whole rows": of(_greatest, column, stride="row"),
    }  # fmt: skip


def _dram(against: str, reduce: Any) -> dict[str, Callable[[Rows], Numbers]]:
    """At strides that cost no time, and with the paper's share of the wires in the energy."""
    return {"": of(reduce, f"DRAM, {against}", **BEST), "the paper's share of the wires": of(reduce, f"IO, {against}",
    WIRES, **BEST),
            "whole rows, the paper's share": of(reduce, f"IO, {against}", WIRES, stride="row")}  # fmt: skip


def _bandwidth(rows: Rows) -> float:
    part = eight_channels()
    return part.organisation.channels * part.organisation.device_dq_bits / 8 * part.data_rate_mts / 1e3


def _slowdown(convolution: bool) -> Callable[[Rows], list[float]]:
    return lambda rows: [
        r["time"] for r in rows if ("conv4" in r["layer"]) == convolution and r["stride"] not in ("32", "row")
    ]


def _least_slowdown(*strides: str) -> Callable[[Rows], list[float]]:
    """By layer and format, the least slowdown over these strides."""
    return lambda rows: [min(r["time"] for r in g) for g in by(pick(rows, stride=strides), "layer", "format")]


def _rising(rows: Rows, value: str, layer: str) -> Numbers:
    """Steps of a value along the strides of a layer, in points of per cent."""
    along = [r[value] for r in pick(rows, layer=layer, format="fp16") if r["stride"] != "row"]
    return [b - a for a, b in pairwise(along)]


def _search(*names: str) -> Callable[[Rows], list[float]]:
    return lambda rows: [fmean([r[name] for r in rows if "row" in r]) for name in names]


def _rank(rows: Rows, feature: str) -> Numbers:
    """The size of the rank correlation of a layer's gain with a feature, by format."""
    from scipy.stats import spearmanr

    groups = by([r for r in pick(rows, number=12) if r.get("32 to row") is not None], "format")
    return [abs(float(spearmanr([r[feature] for r in g], [r["32 to row"] for r in g]).statistic)) for g in groups
            if len(g) > 2]  # fmt: skip


def _bf16(which: str) -> Callable[[Rows], Numbers]:
    return lambda rows: middle(pick(rows, number=15, format="fp16"), lambda r: r["against fp16"][which])


CLAIMS = [
    Claim("53.1", "abstract, section VIII-A", "DRAM IO energy is 53.1 % below DBI at strides that cost no time (the "
        "abstract says on average, section VIII-A says up to).", (*STRIDES, *ONES), near(53.1, by=0.1), {**_io("dbi"),
        "ones of values and ids, whole rows": of(_mean, "below dbi", stride="row")}, "%",
        note="Paper-shaped layers with Gaussian values; wires end in VSSQ here and edges cost energy."),
    Claim("22.2", "abstract, section VIII-A, conclusion", "DRAM IO energy is 22.2 % below Base+XOR on average.",
        STRIDES, near(22.2, by=0.1), {"": of(_mean, "IO, base-xor", **BEST), "whole rows": of(_mean, "IO, base-xor",
        stride="row")}, "%"),
    Claim("30.6", "introduction", "Up to 30.6 % below Base+XOR.", STRIDES, near(30.6, by=0.1), {"": of(_greatest,
        "IO, base-xor", **BEST), "whole rows": of(_greatest, "IO, base-xor", stride="row")}, "%"),
    Claim("12.7", "section VIII-A", "DRAM energy is 12.7 % below DBI on average.", STRIDES, near(12.7, by=0.1),
        _dram("dbi", _mean), "%", note="The paper's own figures put the wires at 24 % of DRAM energy (12.7 of 53.1 %, "
        "5.3 of 22.2 %)."),
    Claim("5.3", "section VIII-A, conclusion", "DRAM energy is 5.3 % below Base+XOR on average (5.7 % a sentence "
        "later).", STRIDES, near(5.3, by=0.1), _dram("base-xor", _mean), "%"),
    Claim("8.8", "section VIII-A", "DRAM energy is up to 8.8 % below existing schemes.", STRIDES, near(8.8, by=0.1),
        _dram("base-xor", _greatest), "%"),
    Claim("13", "section VIII-A", "Over all strides DRAM energy falls by up to 13 % against DBI.", STRIDES, near(13,
        by=0.1), {"": of(_greatest, "DRAM, dbi"), "the paper's share of the wires": of(_greatest, "IO, dbi", WIRES)},
        "%"),
    Claim("slowdown", "section VIII-B", "Strides cost at most 2.1 % in time.", STRIDES, most(2.1),
        {"": lambda rows: [*_slowdown(False)(rows), *_slowdown(True)(rows)],
        "fully connected layers": _slowdown(False), "convolutions": _slowdown(True)}, "%",
        note="The GPU model has no latency hiding (no warps in flight): each line that an order scatters costs a "
        "clock."),
    Claim("bandwidth", "section VII, Table I", "The memory is LPDDR4 at 1866 MHz with a bandwidth of 59.7 GB/s.",
        STRIDES, near(59.7, by=0.01), {"two x16 channels for each of the four controllers": _bandwidth}, "GB/s"),
    Claim("free", "abstract, introduction, section VIII-B", "Each network has a stride with which nothing takes "
        "longer.", STRIDES, most(0), {"": _least_slowdown("64", "128", "256", "512"), "stride 32, which is vacuous: a "
        "warp's own elements in any order": _least_slowdown("32")}, "%", note="Inside a warp no order changes which "
        "lines are read, so stride 32 says nothing."),
    Claim("shared", "section VIII-A, section VIII-E1", "Deep Compression's shared values save the most, more so with "
        "long strides.", ONES, least(0), {"": lambda rows: [a - b for a, b in zip(_every(rows, "32 to row", "format",
        layer="an_dc fc7"), _every(rows, "32 to row", "format", layer="an_ip fc7"), strict=True)]}, "points more",
        note="The same layer with 32 shared values and without: ones saved from stride 32 to whole rows."),
    Claim("formats", "section VIII-B", "Results are alike in fixed and floating point.", STRIDES, most(5),
        {"": lambda rows: [abs(a - b) for a, b in [_every(rows, "IO, base-xor", "format", **BEST)]]}, "points apart",
        note="Alike: IO energy against Base+XOR within five points of per cent, medians over the layers."),
    Claim("l1", "section VIII-E1, Figure 14", "L1 accesses grow with the stride.", STRIDES, least(0), {"": of(_rising,
        "L1 accesses", "an_dc fc7")}, "points a step"),
    Claim("l1-misses", "section VIII-E1, Figure 14", "The miss rate rises gradually.", STRIDES, least(0.01),
        {"": of(_rising, "L1 misses", "an_dc fc7"), "a convolution": of(_rising, "L1 misses", "an_ip conv4")},
        "points a step", note="On a fully connected layer the L1 holds the whole input."),
    Claim("0.31", "section VIII-D", "0.31 s a row at stride 512 (OR-Tools), under 3 hours for 33,278 rows.", SEARCH,
        most(0.33), {"": lambda rows: middle(pick(rows, stride=512), lambda r: r["OR-Tools"] / 1e3)}, "s",
        lambda rows: middle(pick(rows, stride=512), lambda r: r["ours"] / 1e3), "Another OR-Tools version and "
        "processor: at most as long."),
    Claim("guided", "section IV-C", "Over greedy descent, guided local search wins 0.5 % on average.", SEARCH,
        between(0.1, 2), {"rows of one layer, some improvements": _search(SEARCHES[0])}, "%", _search("ours"),
        "Not a day of search: 60 improvements."),
    Claim("annealing", "section IV-C", "Annealing and tabu search win under 0.1 %.", SEARCH, most(0.1),
        {"": _search(*SEARCHES[1:]), "annealing alone": _search(SEARCHES[1])}, "%"),
    Claim("13.1", "section VIII-E1", "From the smallest stride to unrestricted reordering ones fall by 13.1 % of the "
        "unsorted.", ONES, near(13.1, by=0.1), {"": of(_mean, "32 to row"), "fp16": of(_mean, "32 to row",
        format="fp16"), "int8": of(_mean, "32 to row", format="int8")}, "%", note="Paper-shaped layers; a row that is "
        "shorter than a stride has nothing to gain from a longer one."),
    Claim("11.4", "section VIII-E1", "11.4 % without Deep Compression.", ONES, near(11.4, by=0.1), {"": of(_mean,
        "32 to row", shared=False), "fp16": of(_mean, "32 to row", shared=False, format="fp16"), "int8": of(_mean,
        "32 to row", shared=False, format="int8")}, "%"),
    Claim("predictors", "section VIII-E1", "Neither density nor size of a matrix predicts what longer strides gain.",
          ONES,
        most(0.5), {"": lambda rows: [*(_rank(rows, "density") or []), *(_rank(rows,
        "size") or [])],  # type: ignore[misc]
                    "density": of(_rank, "density"), "size": of(_rank, "size")}, "rank correlation", of(_rank,
                    "tuples"),
        "No prediction: a rank correlation of at most a half. Beside it a row's length."),
    Claim("32", "section VIII-E2", "With one base for the whole matrix, 32 % fewer ones than Base+XOR alone.", ONES,
        near(32, by=0.15), {"": of(_mean, "saved", number=13, base="matrix")}, "%", note="Whole-row strides in fp16."),
    Claim("frequent", "section VIII-E2, Figure 13", "Reordering gains much where bases are frequent, too.", ONES,
        least(20), {"": of(_mean, "saved", number=13, base="32")}, "%", note="Much: a fifth or more, with a base "
        "every 32 bytes."),
    Claim("bf16-ones", "section VIII-E3", "bfloat16 values have 9.4 % more ones under Base+XOR than half precision.",
        ONES, near(9.4, by=0.2), {"": _bf16("bf16"), "truncated": _bf16("bf16 truncated")}, "%",
        note="7 mantissa bits differ at random, not 10."),
    Claim("bf16-saves", "section VIII-E3", "Reordering saves as much in bfloat16 as in half precision.", ONES,
        between(0.85, 1.3), {"": lambda rows: [b / a for a, b in zip(_every(rows, "saved", "layer", number=15,
        format="fp16"), _every(rows, "saved", "layer", number=15, format="bf16"), strict=True)]}, "times",
        note="Stride 128, by layer."),
    Claim("area", "abstract, section VIII-C", "Area overhead below 0.01 %, at most 0.02 % of the chip.", (), least(0),
        {}, note="By arithmetic with the paper's 2232 square micrometres a codec, four are below 0.01 % of any chip "
        "of more than 89 square millimetres.", lacking="no area of the GPU is known"),
]  # fmt: skip
