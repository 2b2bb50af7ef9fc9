"""Gleinig et al. 2023, Figure 6, second reading: networks whose trained weights are pruned by magnitude.

The paper prunes a feed-forward block of BERT. Its weights are not ours to ship, but trained ones of other networks can
be had: the shipped digits network as it is, and the ten-layer autoencoder of the reference data at three densities,
its weights ranked layer by layer or all together (the paper's block has two layers and does not say).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import edgewatt as ew
from edgewatt.papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable
from traces.base.resources import config_root
from traces.work.prune import SCOPES, prune_magnitude

MEMORY = 100
ITERATIONS = 10_000
POLICIES = ("rr", "lru", "min")
AUTOENCODER = "mlperf_tiny_ad01_fp32.tflite"
DENSITIES = (0.01, 0.05, 0.1)


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a network and policy; 100,000 iterations with `full`."""
    networks: list[dict[str, Any]] = [{"network": "digits_wide", "density": None, "scope": None}]
    if _autoencoder() is not None:
        networks += [{"network": "autoencoder", "density": d, "scope": scope} for scope in SCOPES for d in DENSITIES]
    iterations = 10 * ITERATIONS if full else ITERATIONS
    return [{**network, "policy": policy, "iterations": iterations} for network in networks for policy in POLICIES]


def _autoencoder() -> Path | None:
    folder = os.environ.get("EDGEWATT_REFERENCE")
    path = Path(folder) / "models" / AUTOENCODER if folder else None
    return path if path is not None and path.is_file() else None


def _network(name: str, density: float | None, scope: str) -> ew.Network:
    path = config_root() / "examples" / "networks" / f"{name}.npz" if name == "digits_wide" else _autoencoder()
    if path is None:
        raise ew.InputError(f"{AUTOENCODER} is not in the folder models of EDGEWATT_REFERENCE any more")
    network = cast(ew.Network, ew.load(path, kind="network"))
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


def tables(done: Done) -> list[StudyTable]:
    """Return the counts of every network and policy."""
    rows = [
        (_name(job), f"{r['connections']:,}", job["policy"].upper(), f"{r['two-optimal']:,}",
         *(f"{r[name]:,} (-{_saved(r, name):.1f} %)" for name in ("connection-reordering", "auto")), f"{r['bound']:,}")
        for job, r in done
    ]  # fmt: skip
    heads = ("network", "connections", "policy", "two-optimal", "reordered", "auto", "bound")
    drawn = Drawing("6", "network", "I/Os over the bound", [
        (job["policy"].upper(), _name(job), name, r[name] / r["bound"])
        for job, r in done for name in ("two-optimal", "connection-reordering", "auto")
    ], bars=True)  # fmt: skip
    return [StudyTable("I/Os of trained networks pruned by magnitude, M = 100", heads, rows, drawn)]


def _name(job: Job) -> str:
    if job["density"] is None:
        return str(job["network"])
    return f"{job['network']} at {100 * job['density']:g} %, " + {"global": "as one", "layer": "by layer"}[job["scope"]]


def _saved(result: Mapping[str, Any], name: str) -> float:
    return float(100 * (1 - result[name] / result["two-optimal"]))


def _by_policy(done: Done) -> tuple[str, str]:
    if not done:
        return "not run", ""

    def words(name: str) -> str:
        found = {p: [_saved(r, name) for job, r in done if job["policy"] == p] for p in POLICIES}
        return ", ".join(f"{p.upper()} {min(v):.1f} to {max(v):.1f} %" for p, v in found.items() if v)

    return words("connection-reordering"), words("auto")


STUDIES.register("gleinig-trained", summary="Figure 6: trained networks pruned by magnitude")(
    Study(jobs, compute, tables, {"by_policy": _by_policy})
)
