"""Magnitude pruning: keep the connections with the largest |weight|."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, unknown_name
from traces.base.sparse import checked_sparse
from traces.networks.network import Network, weights_of

SCOPES = ("global", "layer")


def prune_magnitude(
    network: Network, *, density: float | None = None, n_connections: int | None = None, scope: str = "global"
) -> Network:
    """Return the network with only its largest-magnitude connections, in their stored order.

    density: share of the connections to keep, in (0, 1]; n_connections: how many to keep. Give exactly one.
    scope: 'global' ranks all connections together; 'layer' keeps the same share of every layer (largest remainders get
        the rounding; every layer keeps at least one connection).
    Equal magnitudes: the connection stored earlier stays. Neurons are kept, so some may become isolated.
    """
    if scope not in SCOPES:
        raise unknown_name("scope", scope, SCOPES)
    keep = _how_many(network.n_connections, density, n_connections)
    if scope == "global":
        groups = [(np.arange(network.n_connections), keep)]
    else:
        if network.layer is None:
            raise InputError(f"{network.name} is not layered: prune with scope 'global'")
        groups = _layer_quotas(network.layer, keep)
    weights = weights_of(network, "magnitude pruning")
    magnitude = np.abs(weights)
    chosen = np.concatenate([edges[np.argsort(-magnitude[edges], kind="stable")[:n]] for edges, n in groups])
    chosen.sort()
    ids = network.weight_ids
    return network.with_(
        sources=network.sources[chosen],
        targets=network.targets[chosen],
        weights=weights[chosen],
        layer=None if network.layer is None else network.layer[chosen],
        weight_ids=None if ids is None else np.unique(ids[chosen], return_inverse=True)[1],
    )


def prune_matrix(matrix: Any, *, density: float) -> Any:
    """Return a SciPy matrix (csr, csc or coo) with only its largest-magnitude entries, in their stored order; ties as
    above."""
    matrix = checked_sparse(matrix)
    if matrix.format == "bsr":
        matrix = matrix.tocsr()
    keep = _how_many(matrix.nnz, density, None)
    chosen = np.zeros(matrix.nnz, bool)
    chosen[np.argsort(-np.abs(matrix.data), kind="stable")[:keep]] = True
    if not hasattr(matrix, "indptr"):  # entries at places
        return type(matrix)((matrix.data[chosen], (matrix.row[chosen], matrix.col[chosen])), shape=matrix.shape)
    before = np.concatenate(([0], np.cumsum(chosen)))
    pointers = before[matrix.indptr]
    return type(matrix)((matrix.data[chosen], matrix.indices[chosen], pointers), shape=matrix.shape)


def _how_many(n: int, density: float | None, n_connections: int | None) -> int:
    if (density is None) == (n_connections is None):
        raise InputError("give either density or n_connections")
    if n_connections is None:
        assert density is not None
        if not 0 < density <= 1:
            raise InputError(f"density is the share to keep, above 0 and at most 1, not {density}")
        return max(1, round(density * n))
    if not 1 <= n_connections <= n:
        raise InputError(f"{n_connections} connections cannot be kept of {n}")
    return int(n_connections)


def _layer_quotas(layer: npt.NDArray[np.int64], keep: int) -> list[tuple[npt.NDArray[np.int64], int]]:
    layers, counts = np.unique(layer, return_counts=True)
    if keep < len(layers):
        raise InputError(f"{keep} connections cannot be shared by {len(layers)} layers: each keeps at least one")
    exact = counts * (keep / counts.sum())
    quota = np.maximum(1, np.floor(exact)).astype(np.int64)
    by_remainder = np.argsort(-(exact - np.floor(exact)), kind="stable")
    for k in by_remainder[: max(0, keep - int(quota.sum()))]:
        quota[k] += 1
    while quota.sum() > keep:  # tiny layers were lifted to one connection: the largest quotas pay
        quota[np.argmax(quota)] -= 1
    return [(np.flatnonzero(layer == number), int(n)) for number, n in zip(layers, quota, strict=True)]
