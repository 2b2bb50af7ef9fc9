"""Sparse matrices from anywhere: what SciPy holds is checked before compiled code follows its pointers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError


def row_pointers(pointers: Any, n_rows: int, n_entries: int, where: str) -> npt.NDArray[Any]:
    """Return row (or column) pointers [n_rows + 1] after checking that they rise from 0 to `n_entries`.

    Neighbours are compared, not subtracted: a difference may go round. Raises InputError naming `where`. O(n_rows)
    """
    array: npt.NDArray[Any] = np.asarray(pointers)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{where} must be one-dimensional integers, not {array.dtype} of shape {array.shape}")
    if len(array) != n_rows + 1 or int(array[0]) != 0 or int(array[-1]) != n_entries:
        raise InputError(f"{where} must have {n_rows + 1} values from 0 to {n_entries}")
    falls = np.flatnonzero(array[1:] < array[:-1])
    if falls.size:
        at = int(falls[0])
        raise InputError(f"{where} falls from {array[at]} to {array[at + 1]} at position {at}")
    return array


def _check_ids(ids: Any, size: int, n_entries: int, where: str) -> None:
    array: npt.NDArray[Any] = np.asarray(ids)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) != n_entries:
        raise InputError(f"{where} must be {n_entries} integers, not {array.dtype} of shape {array.shape}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < size:
        at = int(np.argmax((array < 0) | (array >= size)))
        raise InputError(f"{where}: entry {at} is {array[at]}, outside 0 to {size - 1}")


def checked_sparse(matrix: Any, where: str = "the matrix") -> Any:
    """Return a SciPy sparse matrix (any format) that SciPy's conversions can follow: csr, csc, bsr or coo.

    Other formats come back as coo. Entries may be in any order, and some twice. Raises InputError naming `where` and
    the array at fault. O(entries)
    """
    if len(matrix.shape) != 2:
        raise InputError(f"{where}: a matrix has two dimensions, not shape {matrix.shape}")
    kind = getattr(matrix, "format", "")
    if kind in ("csr", "csc", "bsr"):
        _check_compressed(matrix, kind, where)
        return matrix
    if kind != "coo":
        try:
            matrix = matrix.tocoo()
        except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise InputError(f"{where}: no {kind or 'sparse'} matrix ({error})") from error
    n_entries = np.size(matrix.data)
    for name, ids, size in (("row", matrix.row, matrix.shape[0]), ("col", matrix.col, matrix.shape[1])):
        _check_ids(ids, size, n_entries, f"{where}: {name!r}")
    return matrix


def _check_compressed(matrix: Any, kind: str, where: str) -> None:
    tall, wide = np.shape(matrix.data)[1:] if kind == "bsr" and np.ndim(matrix.data) == 3 else (1, 1)
    if np.ndim(matrix.data) != (3 if kind == "bsr" else 1) or min(tall, wide) < 1:
        raise InputError(f"{where}: the data of a {kind} matrix have the shape {np.shape(matrix.data)}")
    n_rows, n_columns = matrix.shape
    if n_rows % tall or n_columns % wide:
        raise InputError(f"{where}: shape {matrix.shape} is not a whole number of blocks of {tall} x {wide}")
    major, minor = (n_columns, n_rows) if kind == "csc" else (n_rows // tall, n_columns // wide)
    n_entries = int(matrix.indptr[-1]) if np.size(matrix.indptr) else 0
    if n_entries > min(len(matrix.data), np.size(matrix.indices)):
        raise InputError(f"{where}: 'indptr' ends at {n_entries}, {len(matrix.data)} values are there")
    row_pointers(matrix.indptr, major, n_entries, f"{where}: 'indptr'")
    _check_ids(matrix.indices[:n_entries], minor, n_entries, f"{where}: 'indices'")
