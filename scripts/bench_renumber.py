"""Lines filled with one lane: the file's numbers in two-optimal order, the best order for them, and renumbered.

    python scripts/bench_renumber.py --seconds 20

Networks larger than the cache; LRU, 64-byte lines of 16 values, tuples of 8 bytes a connection (whose lines are part of
all figures and the same in each). The last two columns: the renumbered network's order of the connections under the
file's numbers, and what numbers alone change of that. Objective bytes, judged by replay; CPU seconds for everything,
seed 0, one thread.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import numpy as np

import edgewatt as ew
from edgewatt.evaluation.machine_cost import order_on_machine
from edgewatt.evaluation.renumber import renumber_on_machine
from edgewatt.orders.ordering import judge_for
from reorder.edges.search.budget import Budget
from traces.base.resources import config_root
from traces.generators.networks import bert_ffn, random_layered, uniform_layers
from traces.generators.radixnet import radix_net
from traces.work.network import Network

CASES = (
    ("digits_wide", lambda: ew.load(config_root() / "examples" / "networks" / "digits_wide.npz"), 2048),
    ("768-3072-768, 1 %", lambda: uniform_layers([768, 3072, 768], 0.01, seed=1), 4096),
    ("4 x 1000, 1 %", lambda: random_layered(4, 1000, 0.01, seed=1), 4096),
    ("4 x 1000, 0.3 %", lambda: random_layered(4, 1000, 0.003, seed=1), 2048),
    ("4 x 2000, 0.2 %", lambda: random_layered(4, 2000, 0.002, seed=1), 4096),
    ("4 x 500, 1 %", lambda: random_layered(4, 500, 0.01, seed=1), 2048),
)


def convolution(side: int, channels: int, layers: int, kept: float) -> Network:
    """Return unrolled 3 x 3 convolutions with a share of their connections, numbered at random inside layers."""
    rng, size = np.random.default_rng(1), side * side * channels
    y, x, _ = np.unravel_index(np.arange(size), (side, side, channels))
    near = (abs(y[:, None] - y) <= 1) & (abs(x[:, None] - x) <= 1)
    ends = [np.nonzero(near & (rng.random(near.shape) < kept)) for _ in range(layers)]
    names = [rng.permutation(size) + k * size for k in range(layers + 1)]
    s = np.concatenate([names[k][i] for k, (i, _) in enumerate(ends)])
    t = np.concatenate([names[k + 1][j] for k, (_, j) in enumerate(ends)])
    order, n = np.lexsort((s, t)), size * (layers + 1)
    weights = rng.normal(size=len(s)).astype(np.float32)
    return Network(s[order], t[order], n, np.arange(size), np.arange(n - size, n), weights=weights)


def skewed(widths: tuple[int, ...], density: float) -> Network:
    """Return layers in which a few neurons have most of the connections."""
    rng, ends, begin = np.random.default_rng(1), [], 0
    for a, b in pairwise(widths):
        share = np.outer(rng.pareto(2, a) + 0.1, rng.pareto(2, b) + 0.1)
        linked = rng.random((a, b)) < np.minimum(1, density * share / share.mean())
        linked[rng.integers(0, a, b), np.arange(b)] = True
        j, i = np.nonzero(linked.T)
        ends.append((i + begin, j + begin + a))
        begin += a
    s, t = (np.concatenate(each) for each in zip(*ends, strict=True))
    n, weights = sum(widths), rng.normal(size=len(s)).astype(np.float32)
    return Network(s, t, n, np.arange(widths[0]), np.arange(n - widths[-1], n), weights=weights)


OTHERS = (
    ("RadiX-Net 32 x 32, 4 layers", lambda: radix_net([[32, 32], [32, 32]]), 2048),
    ("convolutions, 12 x 12 x 4", lambda: convolution(12, 4, 3, 0.4), 1024),
    ("BERT-FFN 256-1024-256, 5 %", lambda: bert_ffn(0.05, seed=1, hidden=256, inner=1024), 2048),
    ("few hubs, 300-1500-700-40", lambda: skewed((300, 1500, 700, 40), 0.02), 2048),
    ("8 x 400, 3 %", lambda: random_layered(8, 400, 0.03, seed=1), 1024),
)


def main() -> None:
    Budget.clock = staticmethod(time.process_time)  # limits are CPU seconds: the machine may be busy
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--others", action="store_true", help="networks of other kinds")
    given = parser.parse_args()
    seconds = given.seconds
    print(
        "| network | lines of neurons | cache, lines | connections | two-optimal | ordered | renumbered | change | "
        "same order, file's numbers | by numbers alone |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, make, size in OTHERS if given.others else CASES:
        network = make()
        machine = {"caches": [{"size_bytes": size, "line_bytes": 64, "ways": 8, "policy": "lru"}]}
        judge = judge_for(network, "bytes", machine, lanes=1, timing="replay")
        cache = judge.shape().cache
        assert cache is not None
        ordered = order_on_machine(judge, "auto", time_limit_s=seconds)
        fills = int(cache.kernel(network, ordered.edges).counts[0])
        new = renumber_on_machine(judge, time_limit_s=seconds)
        same = int(cache.kernel(network, new.ordering.edges).counts[0])
        cells = (
            name, -(-4 * network.n_neurons // 64), size // 64, -(-8 * network.n_connections // 64), new.plain_fills,
            fills, new.fills, f"{100 * (new.fills / new.plain_fills - 1):.0f} %",
            same, f"{100 * (new.fills / same - 1):.0f} %",
        )  # fmt: skip
        assert np.array_equal(np.sort(new.number), np.arange(network.n_neurons))
        print("| " + " | ".join(f"{c:,}" if isinstance(c, int) else c for c in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
