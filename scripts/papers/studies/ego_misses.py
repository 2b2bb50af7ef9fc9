"""Kamatar 2023, Figures 4b, 5b and 6b: cache misses of EGO's order, by the bytes of a neuron and the baseline.

The paper reads hardware counters and does not say how many input vectors its program runs at once, nor in which order
the layerwise baseline takes the connections of a layer. Both decide the figure, so both are tried: a neuron is a row of
4 to 256 bytes (1 to 64 float32 values), and the baseline is either the file's order, which for drawn edges is none, or
sorted by target ("each output neuron in sequential order"). The program's accesses per connection: its COO record of 12
bytes, the source's row read, the target's row read and written.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

import edgewatt as ew
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable
from traces.generators.networks import radix_net, uniform_layers
from traces.networks.network import Network

SEEDS = (1, 2, 3, 4, 5)
LAYERS, MORE_LAYERS = (2, 4, 16), (2, 4, 8, 16)
DENSITIES, MORE_DENSITIES = (0.01, 0.05, 0.1), (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
ROWS, MORE_ROWS = (4, 64, 256), (4, 16, 64, 256)
CACHES = {"32 KiB": 32 << 10, "256 KiB": 256 << 10}  # one core's L1 of the paper's processor; the sum that it prints
BASELINES = ("unsorted", "layerwise")
COMPARED = (*BASELINES, "ego")
OURS = "output-stationary"  # under the reading alone
RECORD = 12
READING = ("64", "32 KiB")  # under which the paper's three sentences hold together


def jobs(full: bool) -> list[dict[str, Any]]:
    """Return a job for each network; with `full` more, and density 0.5, where the paper's program ran out of memory."""
    layers, densities, rows = (MORE_LAYERS, MORE_DENSITIES, MORE_ROWS) if full else (LAYERS, DENSITIES, ROWS)
    networks: list[dict[str, Any]] = [
        {"kind": kind, "layers": n, "seed": s} for kind in ("random", "radix") for n in layers for s in SEEDS
    ]
    networks += [{"kind": "random", "layers": 4, "density": d, "seed": s} for d in densities for s in SEEDS]
    return [job | {"rows": list(rows)} for job in networks]


def compute(job: Job) -> dict[str, Any]:
    """Count the misses of each order, row size and cache."""
    network = make_network(job)
    orders = {
        "unsorted": unsorted(network, job["seed"]),
        **{method: ew.order(network, method, memory=100).edges for method in ("layerwise", "ego", OURS)},
    }
    misses = {
        str(row): {
            name: {
                o: _misses(network, e, row, size)
                for o, e in orders.items()
                if o in COMPARED or (str(row), name) == READING
            }
            for name, size in CACHES.items()
        }
        for row in job["rows"]
    }
    return {"connections": network.n_connections, "misses": misses}


def make_network(job: Job) -> Network:
    if job["kind"] == "radix":
        return radix_net([[32, 32]], blocks=job["layers"] // 2, seed=job["seed"])
    width = 16 if job["kind"] == "toy" else 1024
    return uniform_layers([width] * (job["layers"] + 1), job.get("density", 0.05), job["seed"])


def unsorted(network: Network, seed: int) -> Any:
    """Layer after layer, the connections of a layer in no order."""
    depth = network.depth[network.targets]
    return np.lexsort((np.random.default_rng(seed).random(network.n_connections), depth))


def _misses(network: Network, edges: Any, row: int, size: int) -> int:
    n = len(edges)
    address = np.empty((n, 4), np.uint64)
    address[:, 0] = (1 << 40) + RECORD * np.arange(n)  # the file is in the order of work
    address[:, 1] = network.sources[edges] * row
    address[:, 2:] = (network.targets[edges] * row)[:, None]
    op = np.tile(np.array([0, 0, 0, 1], np.uint8), n)
    bytes_ = np.tile(np.array([RECORD, row, row, row]), n)
    counts = ew.simulate_cache(op, address.reshape(-1), bytes_, size_bytes=size, line_bytes=64, ways=8)
    return int(counts.load_line_misses + counts.store_line_misses)


def _value(result: Any, order: str, row: str, cache: str) -> float:
    return float(result["misses"][row][cache][order] / result["connections"])


def _rows(done: Done) -> list[int]:
    return [int(row) for row in done[0][1]["misses"]] if done else []


def _groups(done: Done, **wanted: Any) -> dict[float, list[Any]]:
    """Return the results of jobs with these values by what varies: layers, or density where it is given."""
    groups: dict[float, list[Any]] = {}
    for job, result in done:
        if all(job[key] == value for key, value in wanted.items()):
            groups.setdefault(job.get("density", job["layers"]), []).append(result)
    return groups


def _depth(done: Done, kind: str) -> dict[float, list[Any]]:
    return _groups([(job, r) for job, r in done if "density" not in job], kind=kind)


def _ratio(results: list[Any], base: str, row: str, cache: str, order: str = "ego") -> float:
    return median(_value(r, order, row, cache) / _value(r, base, row, cache) for r in results)


def tables(done: Done) -> list[StudyTable]:
    """Return a table a figure: EGO's misses as multiples of each baseline's, medians over the networks."""
    density = _groups([(job, r) for job, r in done if "density" in job], kind="random")
    result = []
    for figure, title, groups in (
        ("4b", "RadiX-Net, by layers", _depth(done, "radix")),
        ("5b", "random network, 5 %, by layers", _depth(done, "random")),
        ("6b", "random network of 4 layers, by density", density),
    ):
        rows = [
            (row, cache, base, *(f"{_ratio(results, base, str(row), cache):.2f}" for results in groups.values()))
            for row in _rows(done) for cache in CACHES for base in BASELINES
        ]  # fmt: skip
        heads = ("bytes a neuron", "cache", "baseline", *(f"{x:g}" for x in groups))
        drawn = Drawing(figure, title.split("by ")[1], f"misses a connection ({READING[0]} bytes, {READING[1]})", [
            ("", x, order, median(_value(r, order, *READING) for r in results))
            for x, results in sorted(groups.items()) for order in (*COMPARED, OURS)
        ], log="x" if figure == "6b" else "")  # fmt: skip
        result.append(StudyTable(f"Figure {figure}: misses of EGO over the baseline's, {title}", heads, rows, drawn))
    return result


def _words(kind: str, base: str) -> Any:
    def words(done: Done) -> tuple[str, str]:
        groups = _depth(done, kind)
        if not groups:
            return "not run", ""
        last = groups[max(groups)]
        read = (
            f"{_ratio(last, base, *READING):.2f} times at {max(groups)} layers (rows of 64 bytes, {READING[1]}, {base})"
        )
        spread = [_ratio(last, b, str(row), cache) for b in BASELINES for row in _rows(done) for cache in CACHES]
        ours = _ratio(last, base, *READING, OURS)
        return f"{read}; other readings {min(spread):.2f} to {max(spread):.2f} times", f"{ours:.2f} times"

    return words


def _random_over_radix(done: Done) -> tuple[str, str]:
    both = [_depth(done, kind) for kind in ("random", "radix")]
    common = sorted(both[0].keys() & both[1].keys())
    if not common:
        return "not run", ""

    def ratio(bases: tuple[str, str], row: str, cache: str) -> float:
        values = [median(_value(r, base, row, cache) for r in groups[common[-1]])
                  for groups, base in zip(both, bases, strict=True)]  # fmt: skip
        return values[0] / values[1]

    same = [ratio((b, b), str(row), cache) for b in BASELINES for row in _rows(done) for cache in CACHES]
    read = ratio(("unsorted", "layerwise"), *READING)
    return (
        f"{read:.2f} times a connection (random unsorted, RadiX-Net sorted, rows of 64 bytes, {READING[1]}); "
        f"both sorted or both not: {min(same):.2f} to {max(same):.2f} times"
    ), ""


def _single(done: Done) -> tuple[str, str]:
    """The reading of a first look: single values, caches as printed, the layerwise order sorted."""
    values = [
        _ratio(r, "layerwise", "4", "256 KiB") for kind in ("random", "radix") for r in _depth(done, kind).values()
    ]
    return (f"{min(values):.3f} to {max(values):.3f} times" if values else "not run"), ""


def _one_in_32(done: Done) -> tuple[str, str]:
    """The paper's simple model: a cache that holds the layer, each neuron a line, the connections' records left out."""
    results = [r for results in _depth(done, "radix").values() for r in results]
    values = [_value(r, "layerwise", "64", "256 KiB") - RECORD / 64 for r in results]
    if not values:
        return "not run", ""
    return f"1 in {1 / max(values):.1f} to 1 in {1 / min(values):.1f} (rows of 64 bytes, 256 KiB, sorted)", ""


def _by_density(done: Done) -> tuple[str, str]:
    groups = _groups([(job, r) for job, r in done if "density" in job], kind="random")
    if not groups:
        return "not run", ""
    cells = (f"{_ratio(r, 'unsorted', *READING):.2f} at {x:g}" for x, r in groups.items())
    return ", ".join(cells) + f" (unsorted, rows of 64 bytes, {READING[1]})", ""


STUDIES.register("ego-misses", summary="Figures 4b, 5b and 6b: cache misses by row size and baseline")(
    Study(
        jobs,
        compute,
        tables,
        {
            "random": _words("random", "unsorted"),
            "radix": _words("radix", "layerwise"),
            "random-over-radix": _random_over_radix,
            "density": _by_density,
            "single": _single,
            "one-in-32": _one_in_32,
        },
    )
)
