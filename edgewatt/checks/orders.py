"""Checks of an order (by definition first, then by executing it), and of a reordered sparse matrix.

Done in integers modulo 2^64 the sums are exact whatever their order, so a wrong order shows as a wrong value on some
neuron.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.checks.check import Check, equal
from reorder.base import check_order
from traces.base.errors import InputError
from traces.base.sparse import checked_sparse
from traces.networks.network import Network

MASK = (1 << 64) - 1
HALF = 1 << 63


def validate_order(network: Network, order: npt.ArrayLike, *, seed: int = 0) -> list[Check]:
    """Check an order of a network's connections: permutation, topological, exact in integers."""
    try:
        edges = check_order(network, order)
    except InputError as error:
        return [Check("permutation and topological", "yes", str(error), False)]
    checks = [Check("permutation and topological", "yes", "yes", True)]
    wrong = integer_mismatches(network, edges, seed=seed)
    checks.append(equal("neurons whose integer value differs", 0, wrong))
    return checks


def integer_mismatches(network: Network, edges: npt.NDArray[np.int64], *, seed: int = 0) -> int:
    """Process the connections one by one in integers mod 2^64 and count neurons that differ from the level-wise sums.

    Weights and inputs are random small integers; finished values pass through the signed ReLU. Exact: O(W) steps.
    """
    rng = np.random.default_rng(seed)
    weights = rng.integers(-7, 8, network.n_connections)
    start = rng.integers(-7, 8, network.n_neurons)

    value = start.tolist()
    w, s, t = weights[edges].tolist(), network.sources[edges].tolist(), network.targets[edges].tolist()
    for weight, source, target in zip(w, s, t, strict=True):
        activated = value[source] & MASK
        if activated < HALF:  # not negative as a signed number
            value[target] += weight * activated
    stepwise = np.array([v & MASK for v in value], np.uint64)

    expected = start.astype(np.uint64)
    target_depth = network.depth[network.targets]
    by_depth = np.argsort(target_depth, kind="stable")
    unsigned = weights.astype(np.uint64)
    for level in np.split(by_depth, np.flatnonzero(np.diff(target_depth[by_depth])) + 1):
        finished = expected[network.sources[level]]
        activated_level = np.where(finished < np.uint64(HALF), finished, np.uint64(0))
        np.add.at(expected, network.targets[level], unsigned[level] * activated_level)
    return int((stepwise != expected).sum())


def validate_matrix(original: Any, reordered: Any, *, stride: int | None = None) -> list[Check]:
    """Check a reordered CSR matrix against the original: same rows of tuples, same product, moves inside strides.

    original, reordered: scipy.sparse CSR matrices as stored (indices of `reordered` need not be sorted).
    stride: tuples may only have moved inside consecutive groups of `stride` of a row; None: anywhere in the row.
    """
    original, reordered = checked_sparse(original, "the original"), checked_sparse(reordered, "the reordered matrix")
    checks = [
        equal("shape", str(original.shape), str(reordered.shape)),
        equal("stored values", original.nnz, reordered.nnz),
    ]
    if not all(check.passed for check in checks):
        return checks
    row_pointers_differ = int((np.asarray(original.indptr) != np.asarray(reordered.indptr)).sum())
    checks.append(equal("row pointers that differ", 0, row_pointers_differ))
    if row_pointers_differ:
        return checks
    row = np.repeat(np.arange(original.shape[0]), np.diff(original.indptr))
    group = np.zeros(len(row), np.int64)
    if stride is not None:
        group = (np.arange(len(row)) - np.asarray(original.indptr)[row]) // stride

    def sorted_tuples(matrix: Any) -> tuple[np.ndarray, ...]:
        order = np.lexsort((matrix.data, matrix.indices, group, row))
        return matrix.indices[order], matrix.data[order]

    before, after = sorted_tuples(original), sorted_tuples(reordered)
    moved = int(((before[0] != after[0]) | (before[1] != after[1])).sum())
    where = "its row" if stride is None else f"its stride of {stride}"
    checks.append(equal(f"tuples changed or moved out of {where}", 0, moved))
    if np.all(original.data == np.round(original.data)):
        vector = np.random.default_rng(0).integers(-7, 8, original.shape[1]).astype(np.float64)
        wrong = int((original.astype(np.float64) @ vector != reordered.astype(np.float64) @ vector).sum())
        checks.append(equal("rows whose integer product differs", 0, wrong))
    return checks
