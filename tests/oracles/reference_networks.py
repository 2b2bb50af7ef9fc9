"""Networks of the reference folder `reorder`, for tests that have it."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from traces.networks.network import Network


def reorder_network(reference: Path, name: str) -> tuple[Network, dict[str, np.ndarray]]:
    """Return the network in its stored (initial) order and the best known orders, by policy."""
    folder = reference / "reorder"
    with gzip.open(folder / f"{name}_edges.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    with open(folder / f"{name}_neurons.csv") as file:
        roles = [row["role"] for row in csv.DictReader(file)]
    network = Network(
        table[:, 0],
        table[:, 1],
        n_neurons=len(roles),
        inputs=[x for x, role in enumerate(roles) if role == "input"],
        outputs=[x for x, role in enumerate(roles) if role == "output"],
        name=name,
    )
    return network, {policy: np.argsort(table[:, k]) for k, policy in ((2, "min"), (3, "lru"), (4, "rr"))}


def reorder_counts(reference: Path) -> list[dict[str, str]]:
    """Return the rows of counts.csv."""
    with open(reference / "reorder" / "counts.csv") as file:
        return list(csv.DictReader(file))
