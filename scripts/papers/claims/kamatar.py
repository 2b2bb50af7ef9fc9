"""What Kamatar 2023 prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from papers.claim import Claim, Numbers, Rows, between, by, least, middle, most, near, of, pick, ratios
from papers.figure import Paper
from papers.studies.ego_misses import READ, RECORD

PAPER = Paper(
    "kamatar-2023", "Learning to Reorder Operations in Sparse Neural Networks", "A. Kamatar", 2023,
    "project report, February 2023",
)  # fmt: skip
DRAWN = "rows of 64 bytes, 32 KiB, edges as drawn"
SORTED = "rows of 64 bytes, 32 KiB, sorted"


def _misses(rows: Rows, kind: str, base: str, order: str = "ego", along: str = "layers") -> list[float]:
    """Misses of an order over a baseline's, by depth or density."""
    return ratios(pick(rows, kind=kind, along=along, **READ), order, base, "layers", "density")


def _deepest(rows: Rows, kind: str, base: str, order: str = "ego") -> Numbers:
    return _misses(rows, kind, base, order)[-1:]


def _over_radix(rows: Rows, random: str, radix: str) -> Numbers:
    """Misses a connection of random networks over RadiX-Net's, at the greatest depth."""
    sides = [by(pick(rows, kind=kind, along="layers", **READ), "layers") for kind in ("random", "radix")]
    if not all(sides):
        return None
    above, below = (middle(side[-1], base) for side, base in zip(sides, (random, radix), strict=True))
    return above / below if above and below else None


def _one_in(rows: Rows) -> list[float]:
    """A cache that holds the layer, each neuron a line, the connections' records left out."""
    wanted = pick(rows, kind="radix", along="layers", bytes=64, cache="256 KiB")
    return [1 / (r["layerwise"] - RECORD / 64) for r in wanted]


def _eon(order: str, value: str = "misses / EGO") -> Callable[[Rows], Numbers]:
    return lambda rows: middle(pick(rows, order=order, layers=4), value)


def _ready(width: int, value: str = "longest", **where: Any) -> Callable[[Rows], Numbers]:
    return lambda rows: [r[value] for r in pick(rows, width=width, **where)]


def _speed(fast: str, slow: str, kind: str, **where: Any) -> Callable[[Rows], list[float]]:
    """How many times as fast, over depths, densities and numbers of vectors."""
    return lambda rows: ratios(pick(rows, kind=kind, **where), fast, slow, "layers", "density", "vectors")


def _fastest(rows: Rows, fast: str, slow: str, kind: str) -> Numbers:
    return max(_speed(fast, slow, kind)(rows), default=None)


def _apart(rows: Rows, how: str) -> list[float]:
    names = [f"{order}, {how}" for order in ("layerwise", "unsorted", "ego")]
    speeds = [[middle(g, name) or 1.0 for name in names] for g in by(pick(rows, kind="toy"), "layers", "vectors")]
    return [max(s) / min(s) for s in speeds]


RUNS, STORES = "layerwise, runs", "layerwise, literal"
VECTORS = {"128 vectors, by runs": ("runs", 128), "128 vectors, every connection stores": ("literal", 128),
           "one vector, by runs": ("runs", 1), "one vector, every connection stores": ("literal", 1)}  # fmt: skip
CLAIMS = [
    Claim("random", "section 4.2, Figure 5b", "On the random network EGO's order has nearly half as many cache misses "
        "as the layerwise one.", ("ego-misses",), between(0.45, 0.55), {DRAWN: of(_deepest, "random", "unsorted"),
        SORTED: of(_deepest, "random", "layerwise")}, "times", of(_deepest, "random", "unsorted",
        "output-stationary"), "At the greatest depth. The random network's edges are as drawn: SciPy's random "
        "matrices are COO in no order (`scipy.sparse.random`)."),
    Claim("radix", "section 4.2, Figure 4b", "On RadiX-Net EGO has significantly fewer misses, at 16 layers above "
        "all.", ("ego-misses",), most(0.8), {SORTED: of(_deepest, "radix", "layerwise")}, "times",
        of(_deepest, "radix", "layerwise", "output-stationary"), "Significantly: a fifth fewer or more. "
        "RadiX-Net sorted by target, as its generator writes it."),
    Claim("random-over-radix", "section 4.2, Figures 4b and 5b", "In layerwise order the random network has twice the "
        "misses of RadiX-Net.", ("ego-misses",), near(2, by=0.1), {"random as drawn, RadiX-Net sorted": of(_over_radix,
        "unsorted", "layerwise"), "both sorted": of(_over_radix, "layerwise", "layerwise"), "both not": of(_over_radix,
        "unsorted", "unsorted")}, "times", note="With one baseline for both they have about as many misses a "
        "connection: this confirms the reading of the edges as drawn."),
    Claim("one-in-32", "section 4.2", "In a very simple model of the cache the layerwise order of RadiX-Net misses 1 "
        "of 32 times.", ("ego-misses",), near(32, by=0.1), {"": _one_in,
        "a miss as a target alone": lambda rows: [2 * n for n in _one_in(rows)]}, "times",
        note="A neuron is missed once as a target of 32 connections, as the paper counts, and once more as a source, "
        "since the records of a layer flush the cache in between."),
    Claim("density", "section 4.2, Figure 6b", "EGO keeps its advantage as density grows.", ("ego-misses",), most(0.8),
        {DRAWN: of(_misses, "random", "unsorted", along="density")}, "times", note="The paper's program runs out of "
        "memory at density 0.5; ours holds memory linear in the connections."),
    Claim("eon-misses", "section 4.2, Figure 7b", "On a random network of 16 neurons and density 0.05 the misses of "
        "EON, EGO and the layerwise order are nearly the same.", ("eon",), between(0.9, 1.1),
        {"a cache of 7 neurons": _eon("eon, best"), "likeliest order": _eon("eon")}, "times EGO's", _eon("residency"),
        "In a cache that holds the network all orders miss each neuron once."),
    Claim("eon-time", "section 4.2, Figure 7c", "EON takes orders of magnitude more time a connection than EGO, "
        "because it is trained for each network.", ("eon",), least(100), {"": _eon("eon, best", "time / EGO")},
        "times", _eon("residency", "time / EGO"), "CPU time of the training over that of EGO's order."),
    Claim("toy", "section 4.2, Figure 7a", "On the network of 16 neurons the three orders take the same time.",
        ("ego-clock",), most(1.1), {"": of(_apart, "runs"), "every connection stores its target": of(_apart,
        "literal")}, "times apart", note="The same: within a tenth."),
    Claim("ready-256", "section 4.2", "On the network of 16 neurons at most 256 connections can be ready at once.",
        ("eon-frontier",), near(256, by=0), {"a dense network": _ready(16, density=1.0)}, "connections"),
    Claim("ready-92", "section 4.2", "In training no more than 92 were ready.", ("eon-frontier",), near(92, by=0.15),
        {"16 layers": _ready(16, density=0.05, layers=16), "8 layers": _ready(16, density=0.05, layers=8),
        "4 layers": _ready(16, density=0.05, layers=4)}, "connections", note="The depth is not printed; 16 layers are "
        "the deepest of the paper's other figures."),
    Claim("ready-10000", "section 4.2", "On a network 1024 wide in practice about 10,000 connections are ready at "
        "once.", ("eon-frontier",), near(10_000, by=0.1), {"density 0.01": _ready(1024, density=0.01),
        "density 0.05": _ready(1024, density=0.05), "RadiX-Net": _ready(1024, density=None)}, "connections",
        note="The first layer is ready at the start. A dense layer has 1,048,576, all ready at once."),
    Claim("scipy", "section 4.2, Figure 3", "Inference is up to 4 times as fast as SciPy's.", ("ego-clock",), near(4,
        by=0.5), {"by runs": of(_fastest, RUNS, "scipy", "radix"),
        "every connection stores": of(_fastest, STORES, "scipy", "radix")}, "times",
        note="Other processor and library: within a half."),
    Claim("torch", "section 4.2, Figure 3", "Inference is up to 3 times as fast as PyTorch's.", ("ego-clock",), near(3,
        by=0.5), {"by runs": of(_fastest, RUNS, "torch", "radix"),
        "every connection stores": of(_fastest, STORES, "torch", "radix")}, "times",
        note="Other processor and library: within a half."),
    Claim("deep", "section 4.2", "The gain over SciPy persists at 120 layers.", ("ego-clock",), least(1),
        {"by runs": _speed(RUNS, "scipy", "radix", layers=120), "every connection stores, 128 vectors": _speed(STORES,
        "scipy", "radix", layers=120, vectors=128)}, "times", note="Takes --full. PyTorch ran out of memory in the "
        "paper; here it does not."),
    Claim("radix-speed", "section 4.2, Figure 4a", "On RadiX-Net EGO's order is about as fast as the layerwise one.",
        ("ego-clock",), between(0.85, 1.15), {name: _speed(f"ego, {how}", f"layerwise, {how}", "radix",
        vectors=n) for name, (how, n) in VECTORS.items()}, "times as fast", note="By runs it takes longer, since it "
        "cuts them."),
    Claim("random-speed", "section 4.2, Figures 5a and 6a", "On random networks EGO's order is significantly faster, "
        "at every density (no number is printed).", ("ego-clock",), least(1.1),
        {f"{name}, edges as drawn": _speed(f"ego, {how}", f"unsorted, {how}", "random", vectors=n) for name, (how,
        n) in VECTORS.items()}, "times as fast", note="Significantly: a tenth or more. Against a sorted order it is "
        "slower."),
]  # fmt: skip
