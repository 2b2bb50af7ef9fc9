"""What Ahn et al. 2020 print."""

from __future__ import annotations

from collections.abc import Callable
from statistics import geometric_mean
from typing import Any

from papers.claim import Claim, Numbers, Rows, least, middle, most, near, of, pick
from papers.figure import Paper

PAPER = Paper(
    "ahn-2020", "Ordering Chaos, Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices",
    "B. H. Ahn, J. Lee, J. M. Lin, H.-P. Cheng, J. Hou, H. Esmaeilzadeh", 2020, "MLSys 2020, arXiv:2003.02369",
)  # fmt: skip
MEMORY, ORDERS, SEARCH = ("serenity-memory",), ("serenity-orders",), ("serenity-search",)
CELL_A = "SwiftNet cell A"
DEVICE_BYTES = 250 * 1024  # the paper's SparkFun Edge
ALIKE, DRAWN = "every order alike", "drawn step by step"
DAY_ORDERS = 1e7 * 86_400  # of a computer that goes through ten million orders a second
BOTH = ("no", "channel-wise")


def _geometric(values: list[float]) -> Numbers:
    return geometric_mean(values) if values else None


def _less(case: str, value: str = "times less") -> Callable[[Rows], Numbers]:
    """Geometric mean over the cells of the paper's own networks."""
    return lambda rows: _geometric([r[value] for r in pick(rows, case=case, own=True)])


def _further(rows: Rows, value: str) -> Numbers:
    before, after = (_less(case, value)(rows) for case in ("scheduled", "rewritten"))
    return 100 * (1 - before / after) if before and after else None  # type: ignore[operator]


def _traffic(value: str) -> Callable[[Rows], Numbers]:
    """Over the cells whose traffic at 256 KiB does not go to nothing."""
    return lambda rows: _geometric([1 / r[value] for r in pick(rows, **{"traffic of": "scheduled"}, KiB=256, own=True)
                                    if r[value]])  # fmt: skip


def _of_cell_a(value: str, case: str) -> Callable[[Rows], Numbers]:
    return lambda rows: [r[value] / 1000 for r in pick(rows, graph=CELL_A, case=case)]


def _share(rows: Rows, which: str, limit: int | None) -> Numbers:
    """Per cent of cell A's orders up to a peak, or with the least."""
    cell = pick(rows, graph=CELL_A)
    if limit is None:
        return min((r[which] for r in cell), default=None)
    return max((r[which] for r in cell if r["peak"] <= limit), default=None)


def _arena(rows: Rows, case: str, printed: int) -> Numbers:
    """The arena nearest to the printed one that one in a hundred orders of least peak has, in kB."""
    sizes = [r["arena"] for r in pick(rows, arenas=case) if r["share"] >= 0.5]
    return min(sizes, key=lambda size: abs(size - printed)) / 1000 if sizes else None


def _seconds(rows: Rows, value: str) -> list[float]:
    """Seconds of scheduling on average, without and with rewriting."""
    groups = [pick(rows, case=case) for case in ("scheduled", "rewritten")]
    return [sum(r[value] for r in group) / len(group) / 1e3 for group in groups if group]


def _parts(rewrite: str) -> Callable[[Rows], Numbers]:
    return lambda rows: next((r["parts"] for r in pick(rows, rewrite=rewrite, divide=True, budget="none")), None)


def _saves(rows: Rows, rewrite: str, budget: str, value: str, limit: Any = 2000) -> Numbers:
    """How many times less the divided search takes with budgets; limit: None for the best of all."""
    plain = middle(pick(rows, rewrite=rewrite, divide=True, budget="none"), value)
    with_ = [r[value] for r in pick(rows, rewrite=rewrite, divide=True, budget=budget) if r["ends"]
             and limit in (None, r["limit"])]  # fmt: skip
    return plain / min(with_) if plain and with_ else None


def _budgets(rewrite: str) -> dict[str, Callable[[Rows], Numbers]]:
    return {
        "seconds, our limit": of(_saves, rewrite, "ours", "seconds"), "states, our limit": of(_saves, rewrite, "ours",
        "states"),
        "transitions, the best limit": of(_saves, rewrite, "ours", "transitions", None),
        "Algorithm 2 as printed, transitions, the best limit": of(_saves, rewrite, "printed", "transitions", None),
    }  # fmt: skip


CLAIMS = [
    Claim("4.1", "section 2.2, Figure 3b", "4.1 % of all schedules fit the 250 KB of a small device.", ORDERS,
        near(4.1, by=0.15), {f"{w}, 250 KiB": of(_share, w, DEVICE_BYTES) for w in (ALIKE, DRAWN)}, "%",
        note="SwiftNet cell A with its concatenations folded."),
    Claim("0.04", "section 2.2, Figure 3b", "0.04 % of all schedules have the least peak.", ORDERS, near(0.04, by=0.2),
        {w: of(_share, w, None) for w in (ALIKE, DRAWN)}, "%", note="The paper's share lies between ours for the "
        "least peak and for one step of 12.5 KB above it."),
    Claim("days", "section 2.3", "Going through all orders takes days for a graph of merely 30 nodes.", ORDERS,
        least(1),
        {"": lambda rows: [r["orders"] / DAY_ORDERS for r in {r["graph"]: r for r in rows if "peak" in r}.values()
         if r["operators"] >= 22]},
        "days", note="Counted, not run, at ten million orders a second."),
    Claim("1.68", "section 1, section 4.2", "Peak memory is 1.68 times below TensorFlow Lite's by scheduling.", MEMORY,
        near(1.68, by=0.05), {"": _less("scheduled"), "the least arena": _less("scheduled",
        "times less, least arena")}, "times", note="Geometric mean over the cells that can be had; the paper lists no "
        "tensor sizes of its cells."),
    Claim("1.86", "abstract, section 4.2", "1.86 times with graph rewriting.", MEMORY, near(1.86, by=0.05),
        {"": _less("rewritten"), "the least arena": _less("rewritten", "times less, least arena")}, "times"),
    Claim("10.7", "section 1, section 4.2", "Rewriting lowers the peak by a further 10.7 %.", MEMORY, near(10.7,
        by=0.1), {"": of(_further, "times less"), "the least arena": of(_further, "times less, least arena")}, "%",
        note="10.0 % on SwiftNet cell A by itself in the paper's own Figure 12a."),
    Claim("1.76", "abstract, section 4.2", "1.76 times less off-chip traffic at 256 KB on chip.", MEMORY, near(1.76,
        by=0.1), {"": _traffic("least peak"), "minimised": _traffic("minimised")}, "times",
        note="Over the cells whose traffic does not go to nothing; the block size is not printed."),
    Claim("551", "Figure 12a", "SwiftNet cell A with the allocator: TensorFlow Lite 551.0 KB.", ORDERS, near(551,
        by=0.01), {"the whole network in the file's order, its image "
        "held": lambda rows: [r["image held"] / 1000 for r in pick(rows, order="file")],
        "the image dropped": lambda rows: [r["image dropped"] / 1000 for r in pick(rows, order="file")]}, "kB",
        note="TensorFlow Lite holds inputs to the end. What the figure counts is not said."),
    Claim("250.9", "Figure 12a", "The scheduler's order: 250.9 KB with the allocator.", ORDERS, near(250.9, by=0.001),
        {"one of the orders of least peak": of(_arena, "scheduled", 250_900)}, "kB",
        note="Orders of one peak differ in their arena; about half of the 325,296 have this one."),
    Claim("225.8", "Figure 12a", "Rewritten: 225.8 KB with the allocator, 25.1 KB less.", ORDERS, near(225.8,
        by=0.001), {"one of the orders of least peak": of(_arena, "rewritten", 225_800)}, "kB",
        note="About one in a hundred orders of least peak has this arena."),
    Claim("200.7", "Figure 12b", "Without the allocator: 200.7 KB.", MEMORY, near(200.7, by=0.001),
        {"": _of_cell_a("peak", "scheduled")}, "kB"),
    Claim("188.2", "Figure 12b", "Rewritten, without the allocator: 188.2 KB, 12.5 KB less.", MEMORY, near(188.2,
        by=0.001), {"": _of_cell_a("peak", "rewritten")}, "kB"),
    Claim("40.6", "section 4.2, Figure 13", "Scheduling takes 40.6 s on average, 48.8 s with rewriting.", MEMORY,
        near(40.6, 48.8, by=0.5), {"": of(_seconds, "published ms")}, "s", of(_seconds, "best-first ms"),
        "Compiled code on another machine: some ten thousand times less for the same algorithm."),
    Claim("minute", "abstract, section 4.2", "The extra compilation time is below one minute on average.", MEMORY,
        most(60), {"": of(_seconds, "published ms")}, "s", of(_seconds, "best-first ms")),
    Claim("parts", "Table 2", "SwiftNet divides into parts of 21, 19 and 22 nodes.", SEARCH, near(21, 19, 22, by=0),
        {"": _parts("no")}, "nodes"),
    Claim("parts-rewritten", "Table 2", "Rewritten, into 33, 28 and 29.", SEARCH, near(33, 28, 29, by=0),
        {"": _parts("channel-wise"), "additions absorbed too": _parts("and additions"),
        "kernel-wise too": _parts("and kernel-wise")}, "nodes", note="The paper's rewritten parts add up to 90, not "
        "to its 92: so many are left where additions are absorbed too, cut one node apart from the paper's cuts."),
    Claim("whole", "Table 2", "Dynamic programming alone, on the whole graph, does not end in practical time.", SEARCH,
        least(3600), {"": lambda rows: [r["seconds"] for r in pick(rows, rewrite=BOTH, divide=False)]}, "s",
        note="Compiled, with a state a bit set: fewer states than the paper's times suggest."),
    Claim("budget", "Table 2", "Soft budgeting lowers the time from 56.5 s to 37.9 s.", SEARCH, near(1.49, by=0.15),
        _budgets("no"), "times", note="Without rewriting the first budget is already near the optimum here. Limits on "
        "a step from 10 to 100,000 states are tried for the paper's limit in seconds, which is not printed."),
    Claim("budget-rewritten", "Table 2", "After rewriting, from 7.2 hours to 111.9 s.", SEARCH, near(232, by=0.2),
        _budgets("channel-wise"), "times", note="232 times in the paper's seconds."),
    Claim("multiply-adds", "Table 1", "SwiftNet has 57.4 million multiply-adds.", ORDERS, near(57.4, by=0.005),
        {"": lambda rows: [r["multiply_adds"] / 1e6 for r in rows if "counted" in r], "one more for each element that "
        "is written but by a "
        "concatenation": lambda rows: [(r["multiply_adds"] + r["written"]) / 1e6 for r in rows if "counted" in r]},
        "million"),
    Claim("weights", "Table 1", "SwiftNet has 249.7 thousand weights.", ORDERS, near(249.7, by=0.02),
        {"": lambda rows: [r["weights"] / 1e3 for r in rows if "counted" in r],
        "with biases": lambda rows: [(r["weights"] + r["biases"]) / 1e3 for r in rows if "counted" in r]}, "thousand",
        note="Counted in SwiftNet's published model."),
]  # fmt: skip
