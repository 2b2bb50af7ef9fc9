"""Lines filled with one lane: the file's numbers in two-optimal order, the best order for them, and renumbered.

    python scripts/bench_renumber.py --seconds 20

Networks larger than the cache; LRU, 64-byte lines of 16 values, tuples of 8 bytes a connection (whose lines are part of
all figures and the same in each). Objective bytes, judged by replay; CPU seconds for everything, seed 0, one thread.
"""

from __future__ import annotations

import argparse

import numpy as np

import edgewatt as ew
from edgewatt.judging.judge import order_on_machine
from edgewatt.judging.renumber import renumber_on_machine
from edgewatt.orders.ordering import judge_for
from traces.base.resources import config_root
from traces.generators.networks import random_layered, uniform_layers

CASES = (
    ("digits_wide", lambda: ew.load(config_root() / "examples" / "networks" / "digits_wide.npz"), 2048),
    ("768-3072-768, 1 %", lambda: uniform_layers([768, 3072, 768], 0.01, seed=1), 4096),
    ("4 x 1000, 1 %", lambda: random_layered(4, 1000, 0.01, seed=1), 4096),
    ("4 x 1000, 0.3 %", lambda: random_layered(4, 1000, 0.003, seed=1), 2048),
    ("4 x 2000, 0.2 %", lambda: random_layered(4, 2000, 0.002, seed=1), 4096),
    ("4 x 500, 1 %", lambda: random_layered(4, 500, 0.01, seed=1), 2048),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    print("| network | lines of neurons | cache, lines | connections | two-optimal | ordered | renumbered | change |")
    print("|---|---|---|---|---|---|---|---|")
    for name, make, size in CASES:
        network = make()
        machine = {"caches": [{"size_bytes": size, "line_bytes": 64, "ways": 8, "policy": "lru"}]}
        judge = judge_for(network, "bytes", machine, lanes=1)
        cache = judge.shape().cache
        assert cache is not None
        ordered = order_on_machine(judge, "auto", time_limit_s=seconds, clock="cpu")
        fills = int(cache.kernel(network, ordered.edges).counts[0])
        found = renumber_on_machine(judge, time_limit_s=seconds, clock="cpu")
        cells = (
            name, -(-4 * network.n_neurons // 64), size // 64, -(-8 * network.n_connections // 64), found.plain_fills,
            fills, found.fills, f"{100 * (found.fills / found.plain_fills - 1):.0f} %",
        )  # fmt: skip
        assert np.array_equal(np.sort(found.number), np.arange(network.n_neurons))
        print("| " + " | ".join(f"{c:,}" if isinstance(c, int) else c for c in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
