"""What `auto` finds in little time: gaps after 0.1, 1 and 10 CPU seconds on 10^4 to 10^7 connections, M = 100, MIN.

    python scripts/bench_anytime.py --most 1000000

Fixed cost: CPU seconds of `auto` with a limit of a millisecond, after a first call of the process: what it takes before
the clock is looked at, two-optimal included. gap = (found - lower) / (two-optimal - lower), lower = W + N + S.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from hwmodel.fastmemory.iomodel import count_io, gap, io_bounds
from reorder.edges.search.budget import Budget
from reorder.order import order
from traces.generators.networks import bert_ffn, random_layered, uniform_layers
from traces.generators.radixnet import radix_net
from traces.work.network import Network

NETWORKS: tuple[tuple[str, int, Callable[[], Network]], ...] = (
    ("4 x 170, 10 %", 10_000, lambda: random_layered(4, 170, 0.1, seed=1)),
    ("4 x 1600, 0.1 %", 10_000, lambda: random_layered(4, 1600, 0.001, seed=1)),
    ("4 x 550, 10 %", 100_000, lambda: random_layered(4, 550, 0.1, seed=1)),
    ("RadiX-Net 1024 x 3, radix 32", 100_000, lambda: radix_net(((32, 32), (32, 32)))),
    ("BERT-FFN, 10 %", 1_000_000, lambda: bert_ffn(0.1, seed=1)),
    ("8 x 4000, 1 %", 1_000_000, lambda: uniform_layers([4000] * 8, 0.01, seed=1)),
    ("8 x 12000, 1 %", 10_000_000, lambda: uniform_layers([12000] * 8, 0.01, seed=1)),
)
MEMORY, LIMITS = 100, (0.1, 1.0, 10.0)


def main() -> None:
    Budget.clock = staticmethod(time.process_time)  # limits are CPU seconds: the machine may be busy
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10_000_000, help="leave out larger networks")
    parser.add_argument("--limits", type=float, nargs="*", default=LIMITS, help="CPU seconds")
    given = parser.parse_args()
    order(random_layered(2, 20, 0.2, seed=1), "auto", memory=10, time_limit_s=0.05)  # imports
    heads = [f"gap, {limit:g} s (CPU s)" for limit in given.limits]
    print("| network | connections | fixed cost, ms | " + " | ".join(heads) + " |")
    print("|---|---|---|" + "---|" * len(heads))
    for name, size, make in NETWORKS:
        if size > given.most:
            continue
        network = make()
        lower = io_bounds(network).lower_total
        plain = count_io(network, order(network, "two-optimal", memory=MEMORY), memory=MEMORY).total
        cells = []
        for limit in (0.001, *given.limits):
            began = time.process_time()
            ordering = order(network, "auto", memory=MEMORY, time_limit_s=limit)
            spent = time.process_time() - began
            if limit == 0.001:
                cells.append(f"{1000 * spent:.0f}")
                continue
            left = gap(count_io(network, ordering, memory=MEMORY).total, plain, lower)
            cells.append(f"{left:.4f} ({spent:.2f})")
        print(f"| {name} | {network.n_connections:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
