"""Kamatar 2023, section 4.2: how many connections stand ready at once, which is what EON's attention looks at.

A connection is ready when its source has all its own. The paper prints the longest list that it saw in training on a
network 16 wide, and does not print that network's depth: several are played, in random orders.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

from papers.study import STUDIES, Done, Job, Study, StudyTable
from traces.generators.networks import radix_net, uniform_layers
from traces.networks.network import Network

SEEDS = (1, 2, 3, 4, 5)
ORDERS = 50
TOY: list[dict[str, Any]] = [
    {"width": 16, "layers": layers, "density": density} for layers in (2, 4, 8, 16) for density in (0.05, 1.0)
]
WIDE: list[dict[str, Any]] = [{"width": 1024, "layers": 4, "density": density} for density in (0.01, 0.05)]
RADIX: dict[str, Any] = {"width": 1024, "layers": 2, "density": None}


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a network. A wide one has all of its first layer ready at the start, so one order of it says enough."""
    orders = [(case, ORDERS) for case in TOY] + [(case, 1) for case in (*WIDE, RADIX)]
    return [case | {"orders": n, "seed": seed} for case, n in orders for seed in SEEDS]


def compute(job: Job) -> dict[str, Any]:
    """Return the number of ready connections at the start, and the most over random orders."""
    network, random = _network(job), np.random.default_rng(job["seed"])
    lists = [ready_at_once(network, random) for _ in range(job["orders"])]
    return {"connections": network.n_connections, "start": lists[0][0], "longest": max(most for _, most in lists)}


def _network(job: Job) -> Network:
    if job["density"] is None:
        return radix_net([[32, 32]], blocks=job["layers"] // 2, seed=job["seed"])
    return uniform_layers([job["width"]] * (job["layers"] + 1), job["density"], job["seed"])


def ready_at_once(network: Network, random: np.random.Generator) -> tuple[int, int]:
    """Take ready connections at random; return how many were ready at first, and at most."""
    missing, targets = network.in_degree.tolist(), network.targets.tolist()
    leaving: list[list[int]] = [[] for _ in missing]
    for edge, source in enumerate(network.sources.tolist()):
        leaving[source].append(edge)
    ready = [edge for neuron, count in enumerate(missing) if not count for edge in leaving[neuron]]
    start = most = len(ready)
    for draw in random.random(network.n_connections).tolist():
        at = int(draw * len(ready))
        edge, ready[at] = ready[at], ready[-1]
        ready.pop()
        missing[targets[edge]] -= 1
        if not missing[targets[edge]]:
            ready += leaving[targets[edge]]
            most = max(most, len(ready))
    return start, most


def _groups(done: Done) -> dict[tuple[int, int, float | None], list[Any]]:
    groups: dict[tuple[int, int, float | None], list[Any]] = {}
    for job, result in done:
        groups.setdefault((job["width"], job["layers"], job["density"]), []).append(result)
    return groups


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def tables(done: Done) -> list[StudyTable]:
    """Return the lists' lengths by network, least to greatest of five."""
    rows = [
        (width, layers, "RadiX-Net" if density is None else f"{density:g}",
         *(_span([r[what] for r in results]) for what in ("connections", "start", "longest")))
        for (width, layers, density), results in _groups(done).items()
    ]  # fmt: skip
    heads = ("width", "layers", "density", "connections", "ready at the start", "ready at most")
    return [StudyTable("Section 4.2: connections that are ready at once", heads, rows)]


def _toy(done: Done) -> tuple[str, str]:
    most = {key[1:]: [r["longest"] for r in results] for key, results in _groups(done).items() if key[0] == 16}
    dense = [n for (_, density), values in most.items() if density == 1.0 for n in values]
    sparse = [f"{_span(values)} with {layers} layers" for (layers, density), values in most.items() if density != 1.0]
    return (f"dense: {_span(dense)}; density 0.05: {', '.join(sparse)}" if dense and sparse else "not run"), ""


def _wide(done: Done) -> tuple[str, str]:
    parts = [
        f"{median(r['longest'] for r in results):,.0f} " + (f"at density {density:g}" if density else "on RadiX-Net")
        for (width, _, density), results in _groups(done).items()
        if width != 16
    ]
    return ", ".join(parts) or "not run", ""


STUDIES.register("eon-frontier", summary="Section 4.2: how many connections are ready at once")(
    Study(jobs, compute, tables, {"toy": _toy, "wide": _wide})
)
