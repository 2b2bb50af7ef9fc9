"""Checks that a reordered sparse matrix is still the same matrix, for files made by us or by other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.validate.checks import Check, equal
from traces.base.errors import InputError


def read_matrix(path: Path) -> Any:
    """Read a SciPy npz or Matrix Market file as scipy.sparse CSR, the tuples of each row in the order of the file.

    Raises InputError naming the file.
    """
    from scipy.sparse import csr_matrix

    from traces.readers import matrix_market, scipy_sparse

    readers = {".npz": scipy_sparse.read, ".mtx": matrix_market.read}
    if path.suffix not in readers:
        raise InputError(f"{path}: a matrix to validate is a SciPy .npz or a Matrix Market .mtx file")
    stored = readers[path.suffix](path)[0]
    for ids, limit in ((stored.rows, stored.shape[0]), (stored.columns, stored.shape[1])):
        bad = np.flatnonzero((ids < 0) | (ids >= limit))
        if bad.size:
            raise InputError(f"{stored.name_entry(int(bad[0]))} lies outside the shape {stored.shape}")
    by_row = np.argsort(stored.rows, kind="stable")
    pointers = np.concatenate(([0], np.cumsum(np.bincount(stored.rows, minlength=stored.shape[0]))))
    values = np.ones(len(by_row)) if stored.values is None else stored.values
    return csr_matrix((values[by_row], stored.columns[by_row], pointers), shape=stored.shape)


def validate_matrix(original: Any, reordered: Any, *, stride: int | None = None) -> list[Check]:
    """Check a reordered CSR matrix against the original: same rows of tuples, same product, moves inside strides.

    original, reordered: scipy.sparse CSR matrices as stored (indices of `reordered` need not be sorted).
    stride: tuples may only have moved inside consecutive groups of `stride` of a row; None: anywhere in the row.
    """
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
