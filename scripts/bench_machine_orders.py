"""Orders for whole machines: what `auto` with objective energy saves against the best construction, judged by replay.

    python scripts/bench_machine_orders.py --seconds 20

The digits networks on four systems: cache and scratchpad, one and 64 lanes. All orders lie as tuples; seed 0, one
thread, CPU seconds.
"""

from __future__ import annotations

import argparse
import time

import edgewatt as ew
from edgewatt.evaluation.machine_cost import MachineJudge, order_on_machine
from edgewatt.orders.pays_machine import machine_of
from reorder.base import ORDERINGS
from reorder.edges.search.budget import Budget
from traces.base.resources import config_root
from traces.layouts.layout import Layout


def cache(size: int, ways: int) -> dict[str, object]:
    """A system with one LRU cache and an LPDDR4-3200 channel with DBI."""
    one = {"size_bytes": size, "line_bytes": 64, "ways": ways, "policy": "lru"}
    return {"caches": [one], "encoder": "dbi-dc"}


def pad(size: int) -> dict[str, object]:
    """A system with a scratchpad under MIN and the same memory."""
    return {"scratchpad": {"size_bytes": size, "policy": "min", "stream_bytes": 1024}, "encoder": "dbi-dc"}


SYSTEMS = (
    ("cache, 1 KiB, 4 ways", cache(1024, 4), 1),
    ("cache, 32 KiB, 8 ways", cache(32768, 8), 64),
    ("scratchpad, 1.5 KiB", pad(1536), 1),
    ("scratchpad, 16 KiB", pad(16384), 64),
)


def main() -> None:
    Budget.clock = staticmethod(time.process_time)  # limits are CPU seconds: the machine may be busy
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="CPU seconds of each search")
    parser.add_argument("--network", choices=("small", "wide"), help="one of the two")
    given = parser.parse_args()
    seconds = given.seconds
    made = [name for name in ORDERINGS if not ORDERINGS[name].item.searches and ORDERINGS[name].item.extra is None]
    made = [name for name in made if name != "file"]
    print(f"{len(made)} constructions: {', '.join(made)}\n")
    print(
        "| network | system | lanes | two-optimal, uJ | best construction, uJ | auto, uJ | change | found by | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for size in (given.network,) if given.network else ("small", "wide"):
        network = ew.load(config_root() / "examples" / "networks" / f"digits_{size}.npz")
        for title, system, lanes in SYSTEMS:
            judge = MachineJudge(network, machine_of(system), Layout(lanes=lanes), "energy", "replay")
            shape, values = judge.shape(), {}
            for name in made:
                order = ew.order(network, name, memory=shape.memory, policy=shape.policy)
                values[name] = judge(order.edges)
            best = min(values, key=lambda name: values[name])
            began = time.process_time()
            ordering = order_on_machine(judge, "auto", time_limit_s=seconds)
            spent, value = time.process_time() - began, judge(ordering.edges)
            cells = (
                f"digits_{size}", title, lanes, f"{values['two-optimal'] / 1e6:.2f}",
                f"{best} {values[best] / 1e6:.2f}",
                f"{value / 1e6:.2f}", f"{100 * (value / values[best] - 1):+.1f} %", ordering.parameters["found_by"],
                f"{spent:.1f}",
            )  # fmt: skip
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
