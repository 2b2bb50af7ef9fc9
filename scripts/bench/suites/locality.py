"""Networks with locality beside the best orders known: every row of the fusion reference, one CPU second each."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import edgewatt as ew
from bench.harness import Case, reference


@cache
def network_of(name: str) -> ew.Network:
    path = reference("fusion", f"{name}.npz")
    assert path
    with np.load(path) as data:
        return ew.Network(
            data["sources"].astype(np.int64), data["targets"].astype(np.int64), n_neurons=int(data["n_neurons"]),
            inputs=data["inputs"], outputs=data["outputs"],
        )  # fmt: skip


def search(row: dict[str, str]) -> dict[str, Any]:
    """Return what `auto` finds in a second, what is known, and which construction it came from."""
    network, memory, policy = network_of(row["name"]), int(row["M"]), row["policy"]
    found = ew.order(network, "auto", memory=memory, policy=policy, time_limit_s=1, seed=0)
    total = ew.count_io(network, found, memory=memory, policy=policy).total
    bound = ew.orders.lower_bound(network, memory).total
    known = int(row["best_known"])
    return {"bound": bound, "known": known, "found": total, "by": found.parameters["found_by"]}


def cases() -> Iterator[Case]:
    path = reference("fusion", "counts.csv")
    if path is None:
        return
    with path.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        yield Case(f"{row['name']}, M {row['M']}, {row['policy']}", lambda row=row: search(row), rounds=1)
