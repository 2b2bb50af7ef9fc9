"""Checks of an order by definition, and of a reordered sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.checks.check import Check, equal
from reorder.base import check_order
from traces.base.errors import InputError
from traces.base.sparse import checked_sparse
from traces.networks.network import Network


def validate_order(network: Network, order: npt.ArrayLike) -> list[Check]:
    """Check an order of a network's connections: permutation, topological."""
    try:
        check_order(network, order)
    except InputError as error:
        return [Check("permutation and topological", "yes", str(error), False)]
    return [Check("permutation and topological", "yes", "yes", True)]


def validate_matrix(original: Any, reordered: Any, *, stride: int | None = None) -> list[Check]:
    """Check a reordered CSR matrix against the original: same rows of tuples, moves inside strides.

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
    return checks
