"""The one-pass learned order beside other constructions and `auto`: medians over five networks not used in training.

    python scripts/bench_learned.py pass [--only "10 %"]   # one pass: gap, CPU seconds, microseconds a connection
    python scripts/bench_learned.py held                   # kinds of networks that training has not seen
    python scripts/bench_learned.py start                  # annealing from it: residency, 1 s and 20 s

CPU seconds, one thread. gap = (found - lower) / (two-optimal - lower) with lower = W + N + S.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

import edgewatt as ew
from reorder.edges.search.budget import Budget
from reorder.learning.networks import local_network
from traces.generators.networks import bert_ffn, random_layered, uniform_layers
from traces.generators.radixnet import radix_net
from traces.readers import load
from traces.work.network import Network

SEEDS = (31, 32, 33, 34, 35)
DIGITS = Path(__file__).parent.parent / "configs/examples/networks"
Make = Callable[[int], Network]
PASS: dict[str, tuple[Make, int, str]] = {
    "4x500 10 %": (lambda s: random_layered(4, 500, 0.1, seed=s), 100, "min"),
    "4x500 1 %": (lambda s: random_layered(4, 500, 0.01, seed=s), 100, "min"),
    "4x1000 10 %": (lambda s: random_layered(4, 1000, 0.1, seed=s), 100, "min"),
    "BERT-FFN 10 %": (lambda s: bert_ffn(0.1, seed=s), 100, "min"),
    "RadiX 1024 x 120": (lambda s: radix_net([[2] * 6], [16] * 7, blocks=20, seed=s), 100, "min"),
    "4x500 10 % LRU": (lambda s: random_layered(4, 500, 0.1, seed=s), 100, "lru"),
    "4x500 10 % RR": (lambda s: random_layered(4, 500, 0.1, seed=s), 100, "rr"),
    "4x500 10 % M=300": (lambda s: random_layered(4, 500, 0.1, seed=s), 300, "min"),
    "2x5000 4 %": (lambda s: random_layered(2, 5000, 0.04, seed=s), 100, "min"),
    "20x1000 5 %": (lambda s: random_layered(20, 1000, 0.05, seed=s), 100, "min"),
    "8x20000 0.03 %": (lambda s: random_layered(8, 20000, 0.0003, seed=s), 100, "min"),
}
START: dict[str, tuple[Make, int, float]] = {
    "4x500 10 %": (lambda s: random_layered(4, 500, 0.1, seed=s), 100, 1.0),
    "4x500 1 %": (lambda s: random_layered(4, 500, 0.01, seed=s), 100, 1.0),
    "4x1000 10 %": (lambda s: random_layered(4, 1000, 0.1, seed=s), 100, 20.0),
}


def heavy_tailed(seed: int) -> Network:
    """Four layers of 400, 5 %, each end of a connection drawn with weight rank^-0.8: a few hubs, many leaves."""
    rng = np.random.default_rng(seed)
    likely = np.arange(1, 401) ** -0.8
    likely /= likely.sum()
    sources, targets = [], []
    for layer in range(3):
        ends = np.stack([rng.permutation(400)[rng.choice(400, 30_000, p=likely)] for _ in range(2)])
        pairs = np.unique(np.vstack([ends.T[:8000], np.tile(np.arange(400), (2, 1)).T]), axis=0)
        sources.append(400 * layer + pairs[:, 0]), targets.append(400 * (layer + 1) + pairs[:, 1])
    return Network(np.concatenate(sources), np.concatenate(targets), 1600, range(400), range(1200, 1600), name="hubs")


HELD: dict[str, tuple[Make, int]] = {
    "heavy-tailed degrees, 4 x 400": (heavy_tailed, 100),
    "pruned digits, 256 wide": (lambda s: load(DIGITS / "digits_small.npz", kind="network"), 64),
    "pruned digits, 1024 wide": (lambda s: load(DIGITS / "digits_wide.npz", kind="network"), 100),
    "RadiX 512 x 9": (lambda s: radix_net([[2] * 9], seed=s), 60),
    "RadiX 729 x 6": (lambda s: radix_net([[3] * 6], seed=s), 100),
    "RadiX 1024 x 4, 32 in": (lambda s: radix_net([[32, 32]], blocks=2, seed=s), 100),
    "widths 200 to 1600": (lambda s: uniform_layers([1600, 200, 800, 400], 0.05, s), 100),
    "convolutions, 20 x 20": (lambda s: local_network(20, [3, 8, 8, 4], 0.5, s), 300),
}


def gap_of(network: Network, memory: int, policy: str) -> Callable[[ew.Ordering], float]:
    """Return what gives an order's gap."""
    total = lambda made: ew.count_io(network, made, memory=memory, policy=policy).total  # noqa: E731
    lower = ew.io_bounds(network).lower_total
    upper = total(ew.order(network, "two-optimal", memory=memory, policy=policy))
    return lambda made: (total(made) - lower) / max(1, upper - lower)


def timed(network: Network, name: str, memory: int, policy: str, **given: object) -> tuple[ew.Ordering, float]:
    """Return an order and its CPU seconds."""
    began = time.process_time()
    made = ew.order(network, name, memory=memory, policy=policy, **given)
    return made, time.process_time() - began


def main() -> None:
    Budget.clock = staticmethod(time.process_time)  # limits are CPU seconds: the machine may be busy
    """Print a line a network kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pass", "held", "start"))
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    given = parser.parse_args()
    cases = {"pass": PASS, "held": HELD, "start": START}[given.what]
    for name, (make, memory, *more) in cases.items():
        if given.only not in name:
            continue
        rows: list[tuple[float, ...]] = []
        for seed in SEEDS[: given.seeds]:
            network = make(seed)
            policy = str(more[0]) if given.what == "pass" else "min"
            gap = gap_of(network, memory, policy)
            if given.what == "pass":
                made, took = timed(network, "learned", memory, policy)
                rows.append((gap(made), took, 1e6 * took / network.n_connections))
            elif given.what == "start":
                made, took = timed(network, "residency", memory, policy, time_limit_s=more[0], seed=seed)
                rows.append((gap(made), took))
            else:
                rows.append(())
                for method, limit in (("output-stationary", {}), ("learned", {}), ("auto", {"time_limit_s": 1.0})):
                    made, took = timed(network, method, memory, policy, **limit)
                    rows[-1] += (gap(made), took)
            if "digits" in name:  # one network
                break
        shown = " ".join(f"{median(column):.4f}" for column in zip(*rows, strict=True))
        print(f"{name:32} W {network.n_connections:8,} M {memory:4} medians of {len(rows)}: {shown}", flush=True)


if __name__ == "__main__":
    main()
