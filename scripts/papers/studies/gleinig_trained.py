"""Gleinig et al. 2023, Figure 6, second reading: networks whose trained weights are pruned by magnitude.

The paper prunes a feed-forward block of BERT. Its weights are not ours to ship: EDGEWATT_BERT names the safetensors
file of a BERT of any size, whose first block is taken then. Trained weights of other networks can be had: the shipped
digits network as it is, and the ten-layer autoencoder of the reference data. Each at three densities, its weights
ranked layer by layer or all together (the paper does not say).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import edgewatt as ew
from papers.figure import Chart, Figure, Job, Row, Table
from traces.base.resources import config_root
from traces.networks.prune import SCOPES, prune_magnitude

MEMORY = 100
ITERATIONS = 10_000
POLICIES = ("rr", "lru", "min")
AUTOENCODER = "mlperf_tiny_ad01_fp32.tflite"
BERT = ("*encoder.layer.0.intermediate.dense.weight", "*encoder.layer.0.output.dense.weight")
DENSITIES = (0.01, 0.05, 0.1)


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a network and policy; 100,000 iterations with `full`."""
    networks: list[dict[str, Any]] = [{"network": "digits_wide", "density": None, "scope": None}]
    trained: list[dict[str, Any]] = [] if _autoencoder() is None else [{"network": "autoencoder"}]
    if (bert := _bert()) is not None:
        trained.append({"network": "BERT block", "file": _content(str(bert), os.stat(bert).st_mtime_ns)})
    networks += [{**one, "density": d, "scope": scope} for one in trained for scope in SCOPES for d in DENSITIES]
    iterations = 10 * ITERATIONS if full else ITERATIONS
    return [{**network, "policy": policy, "iterations": iterations} for network in networks for policy in POLICIES]


def _autoencoder() -> Path | None:
    folder = os.environ.get("EDGEWATT_REFERENCE")
    path = Path(folder) / "models" / AUTOENCODER if folder else None
    return path if path is not None and path.is_file() else None


def _bert() -> Path | None:
    """The file that EDGEWATT_BERT names. Raises InputError if it is none."""
    name = os.environ.get("EDGEWATT_BERT")
    if name and not os.path.isfile(name):
        raise ew.InputError(f"EDGEWATT_BERT names no file: {name}")
    return Path(name) if name else None


@cache
def _content(path: str, _: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:24]


def _network(name: str, density: float | None, scope: str) -> ew.Network:
    digits = config_root() / "examples" / "networks" / "digits_wide.npz"
    path = {"digits_wide": digits, "autoencoder": _autoencoder(), "BERT block": _bert()}[name]
    if path is None:
        raise ew.InputError(f"{name}: its file is not where EDGEWATT_REFERENCE or EDGEWATT_BERT said any more")
    names = BERT if name == "BERT block" else None
    network = cast(ew.Network, ew.load(path, kind="network", names=names))
    return network if density is None else prune_magnitude(network, density=density, scope=scope)


def compute(job: Job) -> dict[str, Any]:
    """Count the two-optimal order, the searched one, our constructions' best, and the bound."""
    network = _network(job["network"], job["density"], job["scope"])
    options: dict[str, Any] = {"memory": MEMORY, "policy": job["policy"]}
    searched = ew.order(network, "connection-reordering", iterations=job["iterations"], seed=1, **options)
    orders = {
        "two-optimal": ew.order(network, "two-optimal", **options),
        "connection-reordering": searched,
        "auto": ew.order(network, "auto", moves=200_000, seed=1, **options),
    }
    counts = {name: ew.count_io(network, order, **options).total for name, order in orders.items()}
    return {"connections": network.n_connections, "bound": ew.io_bounds(network).lower_total, **counts}


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """One row with the counts, and what is saved."""
    scope = {"global": ", as one", "layer": ", by layer", None: ""}[job["scope"]]
    density = "" if job["density"] is None else f" at {100 * job['density']:g} %"
    return [{**job, **result, "name": f"{job['network']}{density}{scope}"}]


METHODS = ("two-optimal", "connection-reordering", "auto")
FIGURES = [
    Figure(
        "gleinig-trained", "gleinig-2023", "6", "Figure 6 of trained networks pruned by magnitude",
        "BERT's weights are not ours to ship. The shipped digits network as it is, the ten-layer autoencoder of the "
        "reference data, and the BERT that EDGEWATT_BERT names; M = 100. Weights ranked together, and layer by layer.",
        jobs, compute, rows,
        (Chart("6", "name", METHODS, "I/Os ÷ lower bound", panel="policy", over="bound", bars=True),
         Table("I/Os", ("name", "policy"), ("connections", *METHODS, "bound"))),
        (0.9, 4.2),
    )
]  # fmt: skip
