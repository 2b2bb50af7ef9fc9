"""What the search finds under objectives beyond the I/Os of one memory (docs/concepts/reordering-engine.md).

    python scripts/bench_objectives.py                            # a minute per network and objective at most
    python scripts/bench_objectives.py --only ffnn_4x500_d1_s1 --moves 200000

Reads reference instances: EDGEWATT_REFERENCE. Work is counted in moves, so the counts do not depend on the machine.
"""

from __future__ import annotations

import argparse

from bench_reorder import instance

from hwmodel.fastmemory.iomodel import count_io
from reorder.base import Task
from reorder.edges.search.objectives import count_runs, make_objective
from reorder.order import order

NETWORKS = ("ffnn_4x500_d10_s1", "ffnn_4x500_d1_s1", "radix_1024x4")
MEMORY = 100
WEIGHTED = {f"{a:g} runs + io": {"kind": "weighted", "a": a, "b": 1} for a in (0.1, 0.5, 1, 4)}
OBJECTIVES = WEIGHTED | {"M = 50, 100, 200": {"kind": "memories", "sizes": [50, 100, 200]}}


def main() -> None:
    """Print one row per network and objective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=NETWORKS, default=NETWORKS, help="networks")
    parser.add_argument("--moves", type=int, default=2_000_000, help="of the search, per row")
    arguments = parser.parse_args()
    print("| network | objective | two-optimal | searched for I/Os | searched for it | runs | I/Os |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.only:
        network = instance(name)
        plain = order(network, "two-optimal", memory=MEMORY)
        by_io = order(network, "auto", memory=MEMORY, moves=arguments.moves)
        for label, description in OBJECTIVES.items():
            objective, task = make_objective(description), Task(MEMORY, objective=description)
            ordering = order(network, "auto", memory=MEMORY, objective=description, moves=arguments.moves)
            values = (f"{objective.evaluate(network, each, task):.10g}" for each in (plain, by_io, ordering))
            runs, io = count_runs(network.targets[ordering.edges]), count_io(network, ordering, memory=MEMORY).total
            print(f"| {name} | {label} | {' | '.join(values)} | {runs} | {io} |", flush=True)


if __name__ == "__main__":
    main()
