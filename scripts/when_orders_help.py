"""What blocking and a search save on shipped systems: python scripts/when_orders_help.py [--seconds 5]

Networks without structure (drawn uniformly, with rows and columns of unlike weight as pruning leaves them, and the two
trained ones) and with it (scripts/orderbench). A line a network and system: energy of row by row, of the best simple
blocking, of the best of the constructions, of `auto`, and of an order searched for I/Os alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median

import numpy as np
from orderbench import instances as bench

import edgewatt as ew
from edgewatt.evaluation.machine_cost import order_on_machine
from edgewatt.orders.ordering import machine_cost_for

SYSTEMS = {"edge": 1, "application-core": 16, "scratchpad-8k": 16, "scratchpad-64k": 64}  # inputs at a time
SHAPES = {"256-256": 0.1, "784-300-100": 0.05, "300-300-300": 0.1, "640-128-128-128-8": 0.1}
CONSTRUCTIONS = ("by-source", "depth-first", "ego", "go", "output-stationary", "rcm", "components", "least-live")
STRUCTURED: dict[str, Callable[[Random], tuple[int, bench.Pairs]]] = {
    "convolution 16 x 16, 4-8-8": lambda rng: bench.convolution(rng, 16, [4, 8, 8]),
    "FFT 1,024": lambda rng: bench.fft(rng, 10),
    "tree 4,000": lambda rng: bench.tree(rng, 4000, 4),
    "stencil 300 x 40": lambda rng: bench.stencil(rng, 300, 40),
    "grid 40 x 40 x 8": lambda rng: bench.grid(rng, 40, 8),
    "LSTM 96, 12 %": lambda rng: bench.lstm(rng, 96, 0.12),
    "graph 600": lambda rng: bench.graph(rng, 600, 8, 3),
    "RadiX-Net 256": lambda rng: bench.radix(rng, 256, 16, 4),
}


def network_of(n: int, pairs: bench.Pairs, seed: int) -> ew.Network:
    """Return a network with weights of a normal distribution."""
    sources, targets = np.array(pairs).T
    inputs, outputs = np.setdiff1d(range(n), targets), np.setdiff1d(targets, sources)
    weights = np.random.default_rng(seed).normal(0, 0.1, len(pairs)).astype(np.float32)
    return ew.Network(sources, targets, n_neurons=n, weights=weights, inputs=inputs, outputs=outputs)


def networks() -> Iterator[tuple[str, str, ew.Network]]:
    """Yield kind, name and network."""
    shipped = Path(__file__).parents[1] / "configs" / "examples" / "networks"
    for name in ("digits_small", "digits_wide"):
        yield "without structure", name, ew.load(shipped / f"{name}.npz")
    for shape, density in SHAPES.items():
        widths = [int(width) for width in shape.split("-")]
        for how in (bench.random_layers, bench.pruned):
            name = f"{how.__name__} {shape}, {density:.0%}"
            yield "without structure", name, network_of(*how(Random(name), widths, density), seed=1)
    for name, make in STRUCTURED.items():
        yield "with structure", name, network_of(*make(Random(name)), seed=1)


def energies(network: ew.Network, system: str, seconds: float) -> dict[str, float]:
    """Return what each order takes on a system, pJ for all inputs of a pass."""
    judge = machine_cost_for(network, "energy", system, layout="auto", lanes=SYSTEMS[system])
    blocked = judge.blocked()
    built = (order_on_machine(judge, name).edges for name in CONSTRUCTIONS)
    found = order_on_machine(judge, "auto", time_limit_s=seconds)
    io = ew.order(network, "auto", memory=judge.shape().memory, time_limit_s=seconds / 2)
    rows = judge(judge.plain)
    blocks = rows if blocked is None else min(rows, judge(blocked.edges))
    return {"row by row": rows, "blocking": blocks,
            "constructions": min([blocks, *(judge(edges) for edges in built if judge.holds(edges))]),
            "auto": judge(found.edges), "for I/Os alone": judge(io.edges)}  # fmt: skip


def summary(kind: str, points: list[dict[str, float]]) -> str:
    """Return a sentence on the points of a kind."""
    saving = [p for p in points if p["auto"] < 0.99 * p["row by row"]]
    share = [(p["row by row"] - p["blocking"]) / (p["row by row"] - p["auto"]) for p in saving]
    beyond = [1 - p["auto"] / p["constructions"] for p in points]
    worst = max(p["for I/Os alone"] / p["row by row"] for p in points)
    return (
        f"{kind}: {len(saving)} of {len(points)} points have more than 1 % to save, of which blocking has "
        f"{median(share):.0%} in the median ({min(share):.0%} to {max(share):.0%}); auto beyond the best construction: "
        f"{median(beyond):.1%} in the median, at most {max(beyond):.1%}; for I/Os alone: up to {worst:.2f} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="Limit of each search.")
    given = parser.parse_args()
    points: list[tuple[str, dict[str, float]]] = []
    for kind, name, network in networks():
        for system in SYSTEMS:
            pj = energies(network, system, given.seconds)
            points.append((kind, pj))
            print(f"{name:36} {system:18}", *(f"{what} {value / 1e6:.2f}" for what, value in pj.items()), flush=True)
    for kind in dict.fromkeys(kind for kind, _ in points):
        print(summary(kind, [pj for its, pj in points if its == kind]))


if __name__ == "__main__":
    main()
