"""Orders of connections: constructions, searches of so many steps, and what `auto` finds, with locality beside the best
known (a second for each row of the fusion reference). Many methods on many small networks: scripts/orderbench."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import edgewatt as ew
from bench.harness import Case, reference


def layered(width: int, density: float, seed: int, layers: int = 4) -> ew.Network:
    """Return a network as of Appendix A of Gleinig et al. 2023, drawn without the project's own generator."""
    rng = np.random.default_rng(seed)
    ends = np.array([0, width])
    pairs = [np.argwhere(rng.random((width, width)) < density) + ends + k * width for k in range(layers - 1)]
    sources, targets = np.concatenate(pairs).T
    n = layers * width
    return ew.Network(sources, targets, n_neurons=n, inputs=range(width), outputs=range(n - width, n))


@cache
def instance(name: str) -> ew.Network | None:
    """Return a network of the reference data in its initial order, or None."""
    edges, neurons = reference("reorder", f"{name}_edges.csv.gz"), reference("reorder", f"{name}_neurons.csv")
    if not edges or not neurons:
        return None
    with gzip.open(edges, "rt") as file:
        pairs = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    with neurons.open() as file:
        rows = list(csv.DictReader(file))
    ends = [[int(row["neuron"]) for row in rows if row["role"] == role] for role in ("input", "output")]
    return ew.Network(pairs[:, 0], pairs[:, 1], n_neurons=len(rows), inputs=ends[0], outputs=ends[1])


def search(network: ew.Network, method: str, memory: int, policy: str, **more: Any) -> Callable[[], dict[str, Any]]:
    """Return a call that orders a network; it says the I/Os and the distance to the lower bound (1: two-optimal)."""
    lower = ew.io_bounds(network).lower_total
    rows = ew.count_io(network, ew.order(network, "two-optimal", memory=memory), memory=memory, policy=policy).total

    def work() -> dict[str, Any]:
        found = ew.order(network, method, memory=memory, policy=policy, **more)
        total = ew.count_io(network, found, memory=memory, policy=policy).total
        return {"total": total, "gap": round((total - lower) / (rows - lower), 4) if rows > lower else 0}

    return work


def cases() -> Iterator[Case]:
    network = layered(500, 0.1, 1)
    for method in ("two-optimal", "by-source", "depth-first", "ego", "go", "output-stationary", "rcm"):
        yield Case(method, search(network, method, 100, "min"))
    for policy in ("min", "lru", "rr"):
        yield Case(
            f"connection-reordering, {policy}, 1,000 steps",
            search(network, "connection-reordering", 100, policy, iterations=1000), rounds=5,
        )  # fmt: skip
        yield Case(
            f"residency, {policy}, 150,000 moves", search(network, "residency", 100, policy, moves=150_000), rounds=5
        )
    for name in ("ffnn_4x500_d10_s1", "ffnn_4x500_d1_s1", "ffnn_8x300_d10_s4", "radix_1024x4", "compact_growth_mg300"):
        known = instance(name)
        for policy in ("min", "lru", "rr") if known else ():
            memory = 300 if name.startswith("compact") else 100
            yield Case(f"auto 10 s, {name}, {policy}", search(known, "auto", memory, policy, time_limit_s=10), rounds=1)
    counts = reference("fusion", "counts.csv")
    for row in csv.DictReader(counts.open()) if counts else ():
        with np.load(counts.with_name(f"{row['name']}.npz")) as data:
            made = {key: data[key] for key in ("sources", "targets", "inputs", "outputs")}
            local = ew.Network(**made, n_neurons=int(data["n_neurons"]))
        name = f"auto 1 s, {row['name']}, M {row['M']}, {row['policy']}, known {row['best_known']}"
        yield Case(name, search(local, "auto", int(row["M"]), row["policy"], time_limit_s=1), rounds=1)
