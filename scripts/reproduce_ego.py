"""Which layerwise order is EGO compared with? python scripts/reproduce_ego.py [--seeds N]

Kamatar 2023 reports nearly half the cache misses of the "default layer-wise ordering" on random networks and does not
say in which order it takes the connections inside a layer. This counts transfers of neuron values per connection in an
LRU memory (as the panels 'values' of `edgewatt papers ego`) for EGO, for layers sorted by target, and for layers whose
connections are in no order, as a generator that draws them one by one leaves them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import numpy as np

from hwmodel.fastmemory.iomodel import io_curve
from reorder.order import order
from traces.generators.networks import radix_net, uniform_layers
from traces.work.network import Network

MEMORIES = (128, 256, 512, 1024, 2048)
METHODS = ("unsorted layers", "layerwise", "ego", "output-stationary")
NETWORKS: dict[str, Callable[[int], Network]] = {
    "random, 1024 wide, 5 %, 4 layers": lambda seed: uniform_layers([1024] * 5, 0.05, seed),
    "RadiX-Net, 1024 wide, 4 layers": lambda seed: radix_net([[32, 32]], blocks=2, seed=seed),
}


def transfers(network: Network, method: str, memory: int, seed: int) -> float:
    """Return reads and writes of neuron values per connection."""
    if method == "unsorted layers":
        depth = network.depth[network.targets]
        edges = np.lexsort((np.random.default_rng(seed).random(network.n_connections), depth))
    else:
        edges = order(network, method, memory=memory, policy="lru", seed=seed).edges
    (counts,) = io_curve(network, edges, [memory], "lru", "literal")
    return (counts.reads + counts.writes - network.n_connections) / network.n_connections


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(1, parser.parse_args().seeds + 1)
    for name, make in NETWORKS.items():
        print(f"\n{name}; median of {len(seeds)} networks (least to greatest)\n")
        print(f"| M | {' | '.join(METHODS)} | EGO against unsorted, sorted |")
        print("|---" * (len(METHODS) + 2) + "|")
        for memory in MEMORIES:
            found = {m: [transfers(make(seed), m, memory, seed) for seed in seeds] for m in METHODS}
            cells = [f"{statistics.median(v):.3f} ({min(v):.3f} to {max(v):.3f})" for v in found.values()]
            ratio = [
                statistics.median(e / b for e, b in zip(found["ego"], found[base], strict=True)) for base in METHODS[:2]
            ]
            print(f"| {memory:,} | {' | '.join(cells)} | {ratio[0]:.2f}, {ratio[1]:.2f} times |")


if __name__ == "__main__":
    main()
