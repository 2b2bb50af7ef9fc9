"""EON on the networks of its paper: misses of its orders beside EGO, Connection Reordering and annealing, seed by seed.

    python scripts/bench_eon.py [--iterations 120] [--seeds 1,2,3,4,5] [--json FILE]

CPU time, one thread. The cache is an LRU of seven neurons (M = 8).
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median

import edgewatt as ew
from edgewatt.orders.training import lru_misses, train_seeds
from reorder.learning.eon.episodes import likeliest
from reorder.learning.eon.policy import Graph
from traces.generators.networks import radix_net, uniform_layers

MEMORY = 8
OTHERS = ("layerwise", "ego", "learned", "connection-reordering", "residency")
NETWORKS = {
    "16 wide, 8 layers, 5 %": lambda seed: uniform_layers([16] * 9, 0.05, seed),
    "16 wide, 4 layers, 20 %": lambda seed: uniform_layers([16] * 5, 0.2, seed),
    "RadiX-Net 16 wide, 4 layers": lambda seed: radix_net([[4, 4]], blocks=2, seed=seed),
}


def main() -> None:
    """Print a line a network and seed, then medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=120, help="of a training")
    parser.add_argument("--seeds", default="1,2,3,4,5", help="of networks and trainings")
    parser.add_argument("--json", type=Path, help="append misses and curves here, a line a training")
    parser.add_argument("--keep", type=Path, help="folder of checkpoints: go on from those that are there")
    parser.add_argument("--only", default="", help="networks whose name begins so")
    given = parser.parse_args()
    for name, make in NETWORKS.items():
        if not name.startswith(given.only):
            continue
        rows = []
        for seed in map(int, given.seeds.split(",")):
            network = make(seed)
            row, seconds = {}, {}
            for other in OTHERS:
                began = time.process_time()
                made = ew.order(network, other, memory=MEMORY, policy="lru", seed=seed)
                seconds[other], row[other] = time.process_time() - began, lru_misses(network, made.edges, MEMORY)
            kept = given.keep and given.keep / f"{name}-{seed}.safetensors".replace(",", "").replace(" ", "-")
            (state,) = train_seeds(
                network, memory=MEMORY, seeds=(seed,), iterations=given.iterations, output=kept,
                resume=kept if kept and kept.exists() else None,
            )  # fmt: skip
            graph = Graph(state.features, network.sources, network.targets)
            began = time.process_time()
            _, greedy = likeliest(state.kept, graph, network, MEMORY - 1)
            pass_us = 1e6 * (time.process_time() - began) / network.n_connections
            row |= {"eon": greedy, "eon best": state.curve[-1].best}
            rows.append(row)
            if given.json:
                curve = [[p.iteration, round(p.seconds, 2), p.mean, p.least, p.best, p.kept] for p in state.curve]
                line = {"network": name, "seed": seed, "misses": row, "seconds": seconds, "us": pass_us, "curve": curve}
                with given.json.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")
            took = ", ".join(f"{other} {seconds[other]:.2f} s" for other in OTHERS)
            print(f"{name}, seed {seed}, {network.n_connections} connections: {row}")
            trained = f"training {state.seconds:.0f} s, {state.iteration} iterations, {pass_us:.0f} us a connection"
            print(f"    {trained}; {took}")
        over = {key: median(row[key] / row["ego"] for row in rows) for key in rows[0]}
        print(
            f"{name}, medians over EGO's: " + ", ".join(f"{key} {value:.3f}" for key, value in over.items()), flush=True
        )


if __name__ == "__main__":
    main()
