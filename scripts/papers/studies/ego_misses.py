"""Kamatar 2023, Figures 4b, 5b and 6b: cache misses of EGO's order, by the bytes of a neuron and the baseline.

The program's accesses per connection: its COO record of 12 bytes, the source's row read, the target's row read and
written. A neuron is a row of 4 to 256 bytes (1 to 64 float32 values).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Any

import numpy as np

import edgewatt as ew
from papers.figure import Chart, Figure, Job, Row, Table
from traces.generators.networks import uniform_layers
from traces.generators.radixnet import radix_net
from traces.networks.network import Network

SEEDS = (1, 2, 3, 4, 5)
LAYERS, MORE_LAYERS = (2, 4, 16), (2, 4, 8, 16)
DENSITIES, MORE_DENSITIES = (0.01, 0.05, 0.1), (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
ROWS, MORE_ROWS = (4, 64, 256), (4, 16, 64, 256)
CACHES = {"32 KiB": 32 << 10, "256 KiB": 256 << 10}  # one core's L1 of the paper's processor; the sum that it prints
COMPARED = ("unsorted", "layerwise", "ego")
OURS = "output-stationary"  # under the reading alone
RECORD = 12
READING = ("64", "32 KiB")  # under which the paper's three sentences hold together: bytes of a neuron, cache
READ = {"bytes": 64, "cache": "32 KiB"}


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
    misses: dict[str, Any] = {}
    for row in map(str, job["rows"]):
        for cache, size in CACHES.items():
            wanted = orders if (row, cache) == READING else COMPARED
            found = {o: _misses(network, orders[o], int(row), size) for o in wanted}
            misses.setdefault(row, {})[cache] = found
    return {"connections": network.n_connections, "misses": misses}


def make_network(job: Job) -> Network:
    """Draw the network of a job."""
    width = 16 if job["kind"] == "toy" else 1024
    return draw(width, job["layers"], None if job["kind"] == "radix" else job.get("density", 0.05), job["seed"])


def draw(width: int, layers: int, density: float | None, seed: int) -> Network:
    """Draw equal layers at random; without a density a RadiX-Net of a square number of neurons a layer."""
    if density is None:
        return radix_net([[isqrt(width)] * 2], blocks=layers // 2, seed=seed)
    return uniform_layers([width] * (layers + 1), density, seed)


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


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row for each size of a neuron and cache: misses a connection of each order."""
    n, by_density = result["connections"], "density" in job
    usual = {**job, "density": job.get("density", 0.05), "along": "density" if by_density else "layers"}
    return [
        {**usual, "bytes": int(size), "cache": cache, **{order: count / n for order, count in misses.items()}}
        for size, caches in result["misses"].items() for cache, misses in caches.items()
    ]  # fmt: skip


def _chart(number: str, x: str, kind: str, log: str = "") -> Chart:
    title = f"misses a connection ({READING[0]} bytes a neuron, {READING[1]})"
    return Chart(number, x, (*COMPARED, OURS), title, where={**READ, "kind": kind, "along": x}, log=log)


FIGURES = [
    Figure(
        "ego-misses", "kamatar-2023", "4b, 5b, 6b", "Figures 4b, 5b and 6b: cache misses of EGO's order",
        "1024 wide; 64-byte lines, 8 ways, LRU. The paper names neither the input vectors that run at once nor the "
        "order inside a layer of its baseline: rows of 4 to 256 bytes, one core's L1 and the printed sum, and both "
        "baselines are tried. SciPy's random matrices are COO in no order, so its edges as drawn are unsorted; "
        "RadiX-Net's are sorted.",
        jobs, compute, rows,
        (_chart("4b", "layers", "radix"), _chart("5b", "layers", "random"), _chart("6b", "density", "random", "x"),
         Table("Misses a connection, every reading", ("kind", "layers", "density", "bytes", "cache"), COMPARED)),
        (1.0, 4.9),
    )
]  # fmt: skip
