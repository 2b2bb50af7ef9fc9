"""Sparse matrices from anywhere: what SciPy holds is checked before compiled code follows its pointers."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, shown


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


def _checked_ids(ids: Any, size: int, n_entries: int, where: str) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.asarray(ids)
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) != n_entries:
        raise InputError(f"{where} must be {n_entries} integers, not {array.dtype} of shape {array.shape}")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < size:
        at = int(np.argmax((array < 0) | (array >= size)))
        raise InputError(f"{where}: entry {at} is {array[at]}, outside 0 to {size - 1}")
    return _native(array)


def _native(ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ids as compiled code takes them; they are known to be in range."""
    return ids if ids.dtype in (np.int32, np.int64) and ids.dtype.isnative else ids.astype(np.int64)


def checked_sparse(matrix: Any, where: str = "the matrix") -> Any:
    """Return a SciPy sparse matrix (any format) that SciPy's conversions can follow: csr, csc, bsr or coo.

    Other formats come back as coo; room behind the last entry is cut off, ids are int32 or int64. Entries may be in any
    order, and some twice. Raises InputError naming `where` and the array at fault. O(entries)
    """
    if len(matrix.shape) != 2:
        raise InputError(f"{where}: a matrix has two dimensions, not shape {matrix.shape}")
    if not all(isinstance(side, int | np.integer) and 0 <= side < 2**63 for side in matrix.shape):
        raise InputError(f"{where}: shape {shown(matrix.shape)} is not two whole numbers below 2^63")
    kind = getattr(matrix, "format", "")
    if kind in ("csr", "csc", "bsr"):
        matrix = _compressed(matrix, kind, where)
    elif kind != "coo":
        try:
            matrix = (_WAYS[kind](matrix, where) if kind in _WAYS else matrix).tocoo()
        except InputError:
            raise
        except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise InputError(f"{where}: no {kind or 'sparse'} matrix ({error})") from error
    if matrix.format == "coo":
        ids = [
            _checked_ids(ids, size, np.size(matrix.data), f"{where}: {name!r}")
            for name, ids, size in (("row", matrix.row, matrix.shape[0]), ("col", matrix.col, matrix.shape[1]))
        ]
        if ids[0] is not matrix.row or ids[1] is not matrix.col:
            matrix = type(matrix)((matrix.data, tuple(ids)), shape=matrix.shape)
    if np.asarray(matrix.data).dtype.kind not in "biufc":
        raise InputError(f"{where}: numbers are wanted, not {np.asarray(matrix.data).dtype}")
    return matrix


def _checked_lists(matrix: Any, where: str) -> Any:
    """Rows of lists: of each as many values as columns, which are copied without a look."""
    if not len(matrix.rows) == len(matrix.data) == matrix.shape[0]:
        raise InputError(f"{where}: {matrix.shape[0]} lists of columns and of values are wanted")
    for k, (columns, values) in enumerate(zip(matrix.rows, matrix.data, strict=True)):
        if len(columns) != len(values):
            raise InputError(f"{where}: row {k} has {len(columns)} columns and {len(values)} values")
    return matrix


def _checked_diagonals(matrix: Any, where: str) -> Any:
    """Diagonals: as many rows of values as offsets; those outside the matrix are left out."""
    offsets, data = np.asarray(matrix.offsets), np.asarray(matrix.data)
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or data.ndim != 2 or len(data) != len(offsets):
        raise InputError(f"{where}: diagonals need integer offsets, and a row of values for each")
    n_rows, n_columns = matrix.shape
    inside = (offsets < n_columns) & (offsets > -n_rows)
    return type(matrix)((data[inside], offsets[inside].astype(np.int64)), shape=matrix.shape)


_WAYS: dict[str, Callable[[Any, str], Any]] = {"lil": _checked_lists, "dia": _checked_diagonals}
"""Formats whose conversion follows what it finds -> what looks at it before."""


def _compressed(matrix: Any, kind: str, where: str) -> Any:
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
    pointers = _native(row_pointers(matrix.indptr, major, n_entries, f"{where}: 'indptr'"))
    ids = _checked_ids(matrix.indices[:n_entries], minor, n_entries, f"{where}: 'indices'")
    if len(matrix.data) == n_entries == len(matrix.indices) and pointers.dtype == matrix.indptr.dtype == ids.dtype:
        return matrix
    if pointers.dtype != ids.dtype:
        pointers, ids = pointers.astype(np.int64), ids.astype(np.int64)
    whole = copy(matrix)  # what is cut off or converted is the caller's, too
    whole.data, whole.indices, whole.indptr = matrix.data[:n_entries], ids, pointers
    return whole
