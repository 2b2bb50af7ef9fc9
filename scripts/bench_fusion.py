"""Networks with locality beside the best orders known: every row of reference/fusion, or networks of our own.

    python scripts/bench_fusion.py                 # EDGEWATT_REFERENCE/fusion, 1 CPU second a row, seed 0

above: what is left above the lower bound, as a share of what is left of the best known; 0 where both meet it.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

import numpy as np

from hwmodel.fastmemory.iomodel import count_io
from reorder.edges.bounds.bounds import lower_bound
from reorder.edges.search.budget import Budget
from reorder.order import order
from traces.work.network import Network


def reference(name: str) -> Network:
    """A network of reference/fusion, without its positions."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    if not folder:
        raise SystemExit("set EDGEWATT_REFERENCE to the folder of reference data")
    with np.load(Path(folder) / "fusion" / f"{name}.npz") as data:
        return Network(
            data["sources"].astype(np.int64), data["targets"].astype(np.int64), int(data["n_neurons"]),
            data["inputs"], data["outputs"], name=name,
        )  # fmt: skip


def rows() -> list[dict[str, str]]:
    """The rows of counts.csv."""
    with (Path(os.environ.get("EDGEWATT_REFERENCE", ".")) / "fusion" / "counts.csv").open() as file:
        return list(csv.DictReader(file))


def main() -> None:
    Budget.clock = staticmethod(time.process_time)  # limits are CPU seconds: the machine may be busy
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds of each row")
    parser.add_argument("--only", nargs="*", help="networks")
    parser.add_argument("--rows", type=int, nargs="*", help="rows of counts.csv, from 0")
    given = parser.parse_args()
    networks: dict[str, Network] = {}
    met = {"at most best known": 0, "wanted": 0}
    print("| network | M | policy | bound | best known | found | above | found by | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number, row in enumerate(rows()):
        name, memory, policy, known = row["name"], int(row["M"]), row["policy"], int(row["best_known"])
        if (given.only and name not in given.only) or (given.rows and number not in given.rows):
            continue
        network = networks.setdefault(name, reference(name))
        began = time.process_time()
        ordering = order(network, "auto", memory=memory, policy=policy, time_limit_s=given.seconds, seed=0)
        spent = time.process_time() - began
        total = count_io(network, ordering, memory=memory, policy=policy).total
        bound = lower_bound(network, memory).total
        left, left_known = total - bound, known - bound
        met["at most best known"] += total <= known
        met["wanted"] += left <= 0.7 * left_known
        share = f"{left / left_known:.2f}" if left_known else ("0" if left == 0 else f"+{left}")
        mark = "" if left <= 0.7 * left_known else " *"
        print(
            f"| {name} | {memory} | {policy} | {bound:,} | {known:,} | {total:,} | {share}{mark} "
            f"| {ordering.parameters['found_by']} | {spent:.2f} |",
            flush=True,
        )
    print(f"\n{met}")


if __name__ == "__main__":
    main()
