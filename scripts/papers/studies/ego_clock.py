"""Kamatar 2023, Figures 3, 4a, 5a, 6a and 7a: connections per second on the processor at hand.

The paper does not say how many input vectors run at once, nor whether a partial sum stays in a register: one vector and
128 are timed, in the program's own way (every connection loads and stores its target) and by runs. Its threads are not
repeated: everything runs on one core. Figure 7a's toy networks are 16 wide; EON's own order is not timed.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import edgewatt as ew
from papers.clocks import Way, this_processor, times_of
from papers.studies.ego_misses import make_network, unsorted
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable

SEEDS = (1, 2, 3, 4, 5)
BATCHES = (1, 128)
PEERS = ("scipy", "torch")
READINGS = ("runs", "literal")
RADIX, MORE_RADIX = (2, 8), (2, 4, 8, 16, 120)
RANDOM, MORE_RANDOM = (4,), (2, 4, 8, 16)
MORE_DENSITIES = (0.01, 0.1, 0.2)
TOY, MORE_TOY = (16,), (2, 4, 8, 16)


def jobs(full: bool) -> list[dict[str, Any]]:
    """Return a job for each network; with `full` more depths and densities, and the challenge's 120 layers."""
    networks: list[dict[str, Any]] = [{"kind": "radix", "layers": n} for n in (MORE_RADIX if full else RADIX)]
    networks += [{"kind": "random", "layers": n, "density": 0.05} for n in (MORE_RANDOM if full else RANDOM)]
    networks += [{"kind": "random", "layers": 4, "density": d} for d in (MORE_DENSITIES if full else ())]
    networks += [{"kind": "toy", "layers": n, "density": 0.05} for n in (MORE_TOY if full else TOY)]
    return [job | {"seed": s, "processor": this_processor()} for job in networks for s in SEEDS]


def compute(job: Job) -> dict[str, Any]:
    """Time EGO's order, the layerwise one sorted and not, and the libraries."""
    network = make_network(job)
    orders = {
        "layerwise": ew.order(network, "layerwise", memory=100).edges,
        "unsorted": unsorted(network, job["seed"]),
    }
    if job["layers"] <= max(MORE_RANDOM):
        orders["ego"] = ew.order(network, "ego", memory=100).edges
    ways = {f"{name}, {how}": Way(order, how) for name, order in orders.items() for how in READINGS}
    peers = () if job["kind"] == "toy" else PEERS  # neurons without connections are in no layer of theirs
    return {str(batch): times_of(network, ways, peers, batch, job["seed"]) for batch in BATCHES}


def _key(job: Job) -> tuple[str, int, float]:
    return job["kind"], job["layers"], job.get("density", 0.0)


def _groups(done: Done) -> dict[tuple[str, int, float], list[Any]]:
    groups: dict[tuple[str, int, float], list[Any]] = {}
    for job, result in done:
        groups.setdefault(_key(job), []).append(result)
    return groups


def _speed(results: list[Any], batch: str, name: str) -> float | None:
    """Million connections a second, each counted once per vector."""
    speeds = [r[batch]["connections"] * int(batch) / r[batch]["us"][name] for r in results if name in r[batch]["us"]]
    return median(speeds) if speeds else None


def _ratio(results: list[Any], batch: str, slow: str, fast: str) -> float | None:
    """How many times as long `slow` takes as `fast`."""
    times = [r[batch]["us"] for r in results]
    ratios = [us[slow] / us[fast] for us in times if slow in us and fast in us]
    return median(ratios) if ratios else None


def tables(done: Done) -> list[StudyTable]:
    """Return connections a second, medians over the networks."""
    names = (*PEERS, *(f"{name}, {how}" for how in READINGS for name in ("layerwise", "unsorted", "ego")))
    rows = []
    for (kind, layers, density), results in _groups(done).items():
        for batch in map(str, BATCHES):
            control = [r[batch]["aa"] for r in results]
            speeds = ((_speed(results, batch, name)) for name in names)
            rows.append((kind, layers, f"{density:g}" if density else "", batch,
                         *("" if s is None else f"{s:,.0f}" for s in speeds),
                         f"{min(control):.2f} to {max(control):.2f}"))  # fmt: skip
    where = "; ".join(
        dict.fromkeys(f"{job.get('processor', '')}, {r['1']['simd']}, {r['1']['date']}" for job, r in done)
    )
    heads = ("network", "layers", "density", "vectors", *names, "A/A")
    table = StudyTable(f"Million connections a second on one core ({where})", heads, rows)
    figures = [StudyTable(f"Figure {d.figure}", (), [], d) for d in _drawings(done)]
    return [*figures, table]


OWN = {f"{order}, {how}" for order in ("layerwise", "unsorted", "ego") for how in READINGS}
# Figure -> title, the networks on it (kind; what else holds of layers and density), what is along it, its names.
FIGURES: dict[str, tuple[str, str, Any, Any, set[str]]] = {
    "3": ("layers of RadiX-Net", "radix", lambda k: True, lambda k: k[1],
          {*PEERS, *(f"layerwise, {how}" for how in READINGS)}),
    "4a": ("layers of RadiX-Net", "radix", lambda k: True, lambda k: k[1], OWN),
    "5a": ("layers at density 0.05", "random", lambda k: k[2] == 0.05, lambda k: k[1], OWN),
    "6a": ("density, 4 layers", "random", lambda k: k[1] == 4, lambda k: k[2], OWN),
    "7a": ("layers of the network 16 wide", "toy", lambda k: True, lambda k: k[1], OWN),
}  # fmt: skip


def _drawings(done: Done) -> list[Drawing]:
    """Return a chart a figure: million connections a second over layers or density."""
    groups, charts = _groups(done), []
    for figure, (title, kind, wanted, along, names) in FIGURES.items():
        on_it = sorted((key for key in groups if key[0] == kind and wanted(key)), key=along)
        marks = [
            (f"vectors = {batch}", along(key), name, speed)
            for batch in map(str, BATCHES) for key in on_it for name in sorted(names)
            if (speed := _speed(groups[key], batch, name)) is not None
        ]  # fmt: skip
        charts.append(Drawing(figure, title, "million connections a second", marks, log="y"))
    return charts


def _libraries(done: Done) -> tuple[str, str]:
    """Against both libraries on RadiX-Net, by the program's own way and by runs."""
    words = []
    for how in ("literal", "runs"):
        parts = []
        for peer in PEERS:
            times = [ratio for key, results in _groups(done).items() if key[0] == "radix" for batch in map(str, BATCHES)
                     if (ratio := _ratio(results, batch, peer, f"layerwise, {how}")) is not None]  # fmt: skip
            parts.append(f"{peer} {min(times):.1f} to {max(times):.1f}" if times else f"{peer} not installed")
        words.append(", ".join(parts) + " times")
    return f"every connection stores: {words[0]}", words[1]


def _deep(done: Done) -> tuple[str, str]:
    """Against SciPy on the challenge's first depth, which takes --full."""
    deepest = {key: results for key, results in _groups(done).items() if key[1] == max(MORE_RADIX)}
    if not deepest:
        return "not run (--full)", ""
    (results,) = deepest.values()

    def words(how: str) -> str:
        ratios = {(b, p): _ratio(results, b, p, f"layerwise, {how}") for p in PEERS for b in map(str, BATCHES)}
        return ", ".join(
            f"{peer} {ratio:.1f} times with {batch}" for (batch, peer), ratio in ratios.items() if ratio is not None
        )

    return f"every connection stores: {words('literal')} vectors", f"{words('runs')} vectors"


def _toy(done: Done) -> tuple[str, str]:
    """How far apart the orders are on a network of 16 neurons a layer, the slowest against the fastest."""
    parts = []
    for how in ("literal", "runs"):
        spread = []
        for key, results in _groups(done).items():
            for batch in map(str, BATCHES) if key[0] == "toy" else ():
                times = [
                    median(r[batch]["us"][f"{o}, {how}"] for r in results) for o in ("layerwise", "unsorted", "ego")
                ]
                spread.append(max(times) / min(times))
        parts.append(f"{how}: up to {max(spread):.2f} times apart" if spread else f"{how} not run")
    return "; ".join(parts), ""


def _ego(kind: str, base: str) -> Any:
    def words(done: Done) -> tuple[str, str]:
        parts = []
        for how in ("literal", "runs"):
            ratios = [ratio for key, results in _groups(done).items() if key[0] == kind for batch in map(str, BATCHES)
                     if (ratio := _ratio(results, batch, f"{base}, {how}", f"ego, {how}")) is not None]  # fmt: skip
            parts.append(f"{how} {min(ratios):.2f} to {max(ratios):.2f} times as fast" if ratios else f"{how} not run")
        return f"EGO against {base}: " + "; ".join(parts), ""

    return words


STUDIES.register("ego-clock", summary="Figures 3, 4a, 5a, 6a and 7a: connections per second on the processor at hand")(
    Study(
        jobs,
        compute,
        tables,
        {
            "libraries": _libraries,
            "deep": _deep,
            "radix": _ego("radix", "layerwise"),
            "random": _ego("random", "unsorted"),
            "toy": _toy,
        },
        alone=True,
    )
)
