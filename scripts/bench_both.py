"""Both at once: fewer ones on the wires without one more read or write of the fast memory.

    python scripts/bench_both.py [--memory 100] [--format fp16]

For the shipped digits networks and two edge orders. free: ones saved by reordering tuples inside the runs when nothing
else is asked for, and what that does to the I/Os; still: the share of it inside windows where no I/O can change; both:
the share when whole runs are permuted too wherever a recount shows no more reads and no more writes.
"""

from __future__ import annotations

import argparse
import time

import edgewatt as ew
from edgewatt.cli.parts.output import show_table
from traces.base.resources import config_root

COLUMNS = ("network", "order", "policy", "free", "still", "both", "free I/Os", "reads", "writes", "CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", type=int, default=100)
    parser.add_argument("--format", default="fp16")
    parser.add_argument("--networks", nargs="+", default=["digits_small", "digits_wide"])
    given = parser.parse_args()
    rows = []
    for name in given.networks:
        network = ew.load(config_root() / "examples" / "networks" / f"{name}.npz")
        for method in ("two-optimal", "output-stationary"):
            for policy in ("min", "lru"):
                edges = ew.order(network, method, memory=given.memory, policy=policy).edges
                start = time.process_time()
                both = ew.order_both(network, edges, memory=given.memory, policy=policy, value_format=given.format)
                before, after, free, still = both.before, both.after, both.free, both.still
                possible = before.ones - free.ones
                rows.append(
                    (
                        name,
                        method,
                        policy,
                        f"-{100 * possible / before.ones:.1f} %",
                        f"{100 * (before.ones - still.ones) / max(1, possible):.0f} %",
                        f"{100 * both.share:.0f} %",
                        f"{free.reads + free.writes - before.reads - before.writes:+d}",
                        f"{after.reads - before.reads:+d}",
                        f"{after.writes - before.writes:+d}",
                        f"{time.process_time() - start:.1f}",
                    )
                )
    show_table(COLUMNS, rows, title=f"both at once, M = {given.memory}, {given.format}", numeric=COLUMNS[3:])


if __name__ == "__main__":
    main()
