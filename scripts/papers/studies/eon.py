"""Kamatar 2023, Figure 7: EON on networks 16 wide, and how much it looks at. Needs PyTorch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

import edgewatt as ew
from edgewatt.orders.training import lru_misses, train_seeds
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies.ego_misses import draw
from traces.networks.network import Network

SEEDS = (1, 2, 3, 4, 5)
MEMORY = 8
ITERATIONS, ITERATIONS_FULL = 25, 120
OTHERS = ("layerwise", "ego", "connection-reordering", "residency")
KINDS = {"random 5 %": 0.05, "random 20 %": 0.2, "RadiX-Net": None}


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a network; none without PyTorch."""
    if find_spec("torch") is None:
        return []
    cases = [("random 5 %", layers) for layers in ((2, 4, 8) if full else (4,))]
    cases += [("random 20 %", 4), ("RadiX-Net", 4)] if full else []
    iterations = ITERATIONS_FULL if full else ITERATIONS
    return [{"kind": k, "layers": n, "iterations": iterations, "seed": s} for k, n in cases for s in SEEDS]


def compute(job: Job) -> dict[str, Any]:
    """Train on one network and count the misses of each order and the CPU seconds it took."""
    from reorder.eon.episodes import likeliest
    from reorder.eon.policy import Graph

    network = draw(16, job["layers"], KINDS[job["kind"]], job["seed"])
    misses, seconds = {}, {}
    for name in OTHERS:
        began = time.process_time()
        made = ew.order(network, name, memory=MEMORY, policy="lru")
        seconds[name], misses[name] = time.process_time() - began, lru_misses(network, made.edges, MEMORY)
    (state,) = train_seeds(network, memory=MEMORY, seeds=(job["seed"],), iterations=job["iterations"])
    graph = Graph(state.features, network.sources, network.targets)
    began = time.process_time()
    _, greedy = likeliest(state.best_parameters, graph, network, MEMORY - 1)
    seconds |= {"eon": time.process_time() - began, "eon, best": state.seconds}
    misses |= {"eon": greedy, "eon, best": state.curve[-1].best}
    return {"connections": network.n_connections, "misses": misses, "seconds": seconds}


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row an order: look-ups that miss, microseconds of reordering a connection, both over those of EGO."""
    n, of_ego = result["connections"], {key: result[key]["ego"] for key in ("misses", "seconds")}
    return [
        {**job, "network": f"{job['kind']}, {job['layers']} layers", "order": order, "misses": misses,
         "share": 50 * misses / n, "us": 1e6 * result["seconds"][order] / n, "misses / EGO": misses / of_ego["misses"],
         "time / EGO": result["seconds"][order] / of_ego["seconds"]}
        for order, misses in result["misses"].items()
    ]  # fmt: skip


FIGURES = [
    Figure(
        "eon", "kamatar-2023", "7", "Figure 7: EON beside EGO and the layerwise order, 16 wide",
        f"LRU cache of {MEMORY - 1} neurons, since the paper's hold the whole network, where orders miss each neuron "
        "once. One attention head of 48 dimensions, 128 eigenvectors; rewards less their mean, a discount of 0.95, a "
        "learning rate of 3e-3 halved every 100 iterations; trained once for each network. eon: likeliest order; best: "
        "best sample, its time that of the training. residency: our annealing.",
        jobs, compute, rows,
        (*(Chart(number, "order", (y,), title, series="order", panel="network", bars=True, log=log)
           for number, y, title, log in (("7b", "share", "% of look-ups that miss", ""),
                                         ("7c", "us", "CPU microseconds a connection", "y"))),
         Table("Against EGO", ("network", "order"), ("misses / EGO", "time / EGO"))),
        (2.6, 31),
    )
]  # fmt: skip


# Section 4.2: how many connections stand ready at once (their sources have all their own), in random orders.

ORDERS, READY = 50, ("connections", "start", "longest")
TOY: list[dict[str, Any]] = [
    {"width": 16, "layers": layers, "density": density} for layers in (2, 4, 8, 16) for density in (0.05, 1.0)
]
WIDE: list[dict[str, Any]] = [{"width": 1024, "layers": 4, "density": density} for density in (0.01, 0.05)]
RADIX: dict[str, Any] = {"width": 1024, "layers": 2, "density": None}


def frontier_jobs(full: bool) -> list[dict[str, Any]]:
    """A job a network. A wide one has all of its first layer ready at the start, so one order of it says enough."""
    orders = [(case, ORDERS) for case in TOY] + [(case, 1) for case in (*WIDE, RADIX)]
    return [case | {"orders": n, "seed": seed} for case, n in orders for seed in SEEDS]


def frontier(job: Job) -> dict[str, Any]:
    """Return the number of ready connections at the start, and the most over random orders."""
    network = draw(job["width"], job["layers"], job["density"], job["seed"])
    random = np.random.default_rng(job["seed"])
    lists = [ready_at_once(network, random) for _ in range(job["orders"])]
    return {"connections": network.n_connections, "start": lists[0][0], "longest": max(most for _, most in lists)}


def ready_at_once(network: Network, random: np.random.Generator) -> tuple[int, int]:
    """Take ready connections at random; return how many were ready at first, and at most."""
    missing, targets = network.in_degree.tolist(), network.targets.tolist()
    leaving: list[list[int]] = [[] for _ in missing]
    for edge, source in enumerate(network.sources.tolist()):
        leaving[source].append(edge)
    ready = [edge for neuron, count in enumerate(missing) if not count for edge in leaving[neuron]]
    start = most = len(ready)
    for chance in random.random(network.n_connections).tolist():
        at = int(chance * len(ready))
        edge, ready[at] = ready[at], ready[-1]
        ready.pop()
        missing[targets[edge]] -= 1
        if not missing[targets[edge]]:
            ready += leaving[targets[edge]]
            most = max(most, len(ready))
    return start, most


FIGURES.append(
    Figure(
        "eon-frontier", "kamatar-2023", "7",
        "Section 4.2: connections that are ready at once, which is what EON looks at",
        "The depth of the paper's toy network is not printed; 2 to 16 layers are tried.",
        frontier_jobs, frontier, lambda job, result: [{**job, **{k: result[k] for k in READY}}],
        (Table("Ready connections", ("width", "layers", "density"), READY),),
        (0.03, 0.04),
    )
)  # fmt: skip
