"""Kamatar 2023, Figure 7: EON on networks 16 wide, beside EGO and the layerwise order; misses and time to reorder.

The paper's caches hold such a network whole, and every order misses each neuron once; here it is an LRU cache of seven
neurons (M = 8), so that orders can differ. EON is trained anew for each network, as the paper has it. Needs PyTorch.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from statistics import median
from typing import Any

import edgewatt as ew
from edgewatt.orders.training import lru_misses, train_seeds
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable
from traces.generators.networks import radix_net, uniform_layers
from traces.networks.network import Network

SEEDS = (1, 2, 3, 4, 5)
MEMORY = 8
ITERATIONS, ITERATIONS_FULL = 25, 120
OTHERS = ("layerwise", "ego", "connection-reordering", "residency")
ALL = (*OTHERS, "eon", "eon, best")
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
    from reorder.learning.eon.episodes import likeliest
    from reorder.learning.eon.policy import Graph

    network = _network(job)
    misses, seconds = {}, {}
    for name in OTHERS:
        began = time.process_time()
        made = ew.order(network, name, memory=MEMORY, policy="lru")
        seconds[name], misses[name] = time.process_time() - began, lru_misses(network, made.edges, MEMORY)
    (state,) = train_seeds(network, memory=MEMORY, seeds=(job["seed"],), iterations=job["iterations"])
    graph = Graph(state.features, network.sources, network.targets)
    began = time.process_time()
    _, greedy = likeliest(state.kept, graph, network, MEMORY - 1)
    seconds |= {"eon": time.process_time() - began, "eon, best": state.seconds}
    misses |= {"eon": greedy, "eon, best": state.curve[-1].best}
    return {"connections": network.n_connections, "misses": misses, "seconds": seconds}


def _network(job: Job) -> Network:
    density = KINDS[job["kind"]]
    if density is None:
        return radix_net([[4, 4]], blocks=job["layers"] // 2, seed=job["seed"])
    return uniform_layers([16] * (job["layers"] + 1), density, job["seed"])


def _groups(done: Done) -> dict[tuple[str, int], list[Any]]:
    groups: dict[tuple[str, int], list[Any]] = {}
    for job, result in done:
        groups.setdefault((job["kind"], job["layers"]), []).append(result)
    return groups


def tables(done: Done) -> list[StudyTable]:
    """Return misses a look-up, and microseconds of reordering a connection: medians over the networks."""
    misses, times = [], []
    heads = ("network", "layerwise", "EGO", "CR", "annealing", "EON, likeliest", "EON, best sample")
    marks: dict[str, list[Any]] = {"7b": [], "7c": []}
    for (kind, layers), results in _groups(done).items():
        shares = [median(r["misses"][o] / (2 * r["connections"]) for r in results) for o in ALL]
        misses.append((f"{kind}, {layers} layers", *(f"{100 * x:.1f} %" for x in shares)))
        spent = [median(1e6 * r["seconds"][o] / r["connections"] for r in results) for o in ALL]
        for figure, values in (("7b", [100 * x for x in shares]), ("7c", spent)):
            marks[figure] += [(f"{kind}, {layers} layers", o, o, y) for o, y in zip(heads[1:], values, strict=True)]
        times.append((f"{kind}, {layers} layers", *(f"{x:,.0f}" for x in spent)))
    charts = (
        Drawing("7b", "order", "% of look-ups that miss", marks["7b"], bars=True),
        Drawing("7c", "order", "microseconds a connection", marks["7c"], bars=True, log="y"),
    )
    spent_on = "Figure 7c: CPU microseconds of reordering a connection (best sample: the training)"
    return [
        StudyTable(f"Figure 7b: look-ups that miss, LRU cache of {MEMORY - 1} neurons", heads, misses, charts[0]),
        StudyTable(spent_on, heads, times, charts[1]),
    ]


def _misses(done: Done) -> tuple[str, str]:
    if not done:
        return "not run (needs the extra `learn`)", ""
    parts = []
    for (kind, layers), results in _groups(done).items():
        over = {o: median(r["misses"][o] / r["misses"]["ego"] for r in results) for o in ALL}
        parts.append(f"{kind}, {layers} layers: {over['eon']:.2f} and {over['eon, best']:.2f} times EGO's")
    ours = median(r["misses"]["residency"] / r["misses"]["ego"] for _, r in done)
    return "; ".join(parts) + " (likeliest, best sample)", f"{ours:.2f} times EGO's (annealing)"


def _times(done: Done) -> tuple[str, str]:
    if not done:
        return "not run (needs the extra `learn`)", ""
    ratio = median(r["seconds"]["eon, best"] / r["seconds"]["ego"] for _, r in done)
    ours = median(r["seconds"]["residency"] / r["seconds"]["ego"] for _, r in done)
    return f"{ratio:,.0f} times EGO's CPU time, training included", f"{ours:,.0f} times (annealing)"


STUDIES.register("eon", summary="Figure 7: EON on networks 16 wide: misses and time to reorder")(
    Study(jobs, compute, tables, {"misses": _misses, "time": _times})
)
