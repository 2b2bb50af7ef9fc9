"""From a sparse matrix to tuples in slots: storage order, rows, ids and values as bits, strides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.tuples.tuple_problem import Field, Int64Array, first_of_rows
from traces.base.checks import as_array
from traces.base.errors import InputError, shown, unknown_name
from traces.base.memory import claim
from traces.base.sparse import checked_sparse
from traces.base.workers import PART, Each, in_turn
from traces.formats import FORMATS, element_bits, symmetric_scale, to_bits
from traces.networks.network import is_real

RESTARTS = ("row", "continuous")
_CHUNK = 1 << 15
"""Values converted at once, so that intermediate arrays stay in the cache."""


@dataclass(frozen=True)
class MatrixLayout:
    """How a matrix is stored.

    ids: the id arrays beside the values. by_columns: entry after entry of a column, else of a row. rows_mix: entries
    name their row and column and may stand in any order.
    """

    ids: tuple[str, ...]
    by_columns: bool = False
    rows_mix: bool = False

    def read(self, matrix: Any, each: Each) -> tuple[Any, Any, Any]:
        """Return major and minor ids and values of a SciPy matrix, as stored."""
        if self.rows_mix:
            stored = matrix.tocoo()
            return stored.row, stored.col, stored.data
        stored = matrix.tocsc() if self.by_columns else matrix.tocsr()
        pointers = stored.indptr
        major = np.empty(int(pointers[-1]), np.int64)

        def fill(first: int, last: int) -> None:
            major[pointers[first] : pointers[last]] = np.repeat(
                np.arange(first, last), np.diff(pointers[first : last + 1])
            )

        n_rows = len(pointers) - 1
        each(fill, n_rows, max(n_rows * PART // max(len(major), 1), 1))
        return major, stored.indices[: len(major)], stored.data[: len(major)]

    def matrix(self, major: Int64Array, minor: Int64Array, values: Any, shape: tuple[int, int]) -> Any:
        """Return the SciPy matrix (csr, csc or coo) whose stored order is that of the entries."""
        import scipy.sparse

        if self.rows_mix:
            return scipy.sparse.coo_matrix((values, (major, minor)), shape=shape)
        pointers = np.concatenate(([0], np.cumsum(np.bincount(major, minlength=shape[self.by_columns]))))
        kind = scipy.sparse.csc_matrix if self.by_columns else scipy.sparse.csr_matrix
        return kind((values, minor, pointers), shape=shape)


LAYOUTS = {
    "csr": MatrixLayout(("column ids",)),
    "csc": MatrixLayout(("row ids",), by_columns=True),
    "coo": MatrixLayout(("row ids", "column ids"), rows_mix=True),
}


@dataclass(frozen=True, eq=False)
class Entries:
    """The stored entries of a matrix in the storage order of its layout; `major` is what storage is contiguous in.
    given: the values as the matrix holds them."""

    major: Int64Array
    minor: Int64Array
    values: npt.NDArray[np.float32]
    shape: tuple[int, int]
    layout: MatrixLayout
    given: npt.NDArray[Any]


def _converted(array: Any, dtype: type, each: Each) -> Any:
    own: Any = np.empty(len(array), dtype)

    def copy(start: int, stop: int) -> None:
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            np.copyto(own[start:stop], array[start:stop], casting="unsafe")

    each(copy, len(array), PART)
    return own


def entries_of(matrix: Any, layout: MatrixLayout, each: Each = in_turn) -> Entries:
    """Read a SciPy sparse matrix or a dense array (its non-zeros). Stored zeros stay: they are sent like any value.

    Entries need not be sorted inside a row. Raises InputError on duplicates, non-finite values and other shapes.
    """
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        dense = as_array(matrix, "the matrix")
        held = dense.dtype == bool or np.issubdtype(dense.dtype, np.number)
        if dense.ndim != 2 or not (held or is_real(dense.dtype)):
            raise InputError(f"a matrix is wanted, not {dense.dtype} of shape {dense.shape}")
        # SciPy knows no bfloat16 and fp8, which float32 holds
        matrix = scipy.sparse.csr_matrix(dense if held else dense.astype(np.float32))
    matrix = checked_sparse(matrix)
    claim(8 * max(matrix.shape), "the matrix", "pointers to its rows or columns")
    major, minor, data = layout.read(matrix, each)
    if data.dtype != bool and not is_real(data.dtype):
        raise InputError(f"{data.dtype} values have no number format here: real numbers are wanted")
    major = _converted(major, np.int64, each) if layout.rows_mix else major
    minor, values = _converted(minor, np.int64, each), _converted(data, np.float32, each)
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        raise InputError(f"entry ({major[k]}, {minor[k]}) is {data[k]}: only finite float32 numbers can be sent")
    if (twice := _first_duplicate(major, minor)) is not None:
        k = twice
        raise InputError(f"entry ({major[k]}, {minor[k]}) is stored twice: sum duplicates first (sum_duplicates())")
    return Entries(major, minor, values, matrix.shape, layout, data)


def _first_duplicate(major: Int64Array, minor: Int64Array) -> int | None:
    """Return the position of an entry whose row and column another one has too; None where all differ."""
    if ((minor[1:] > minor[:-1]) | (major[1:] > major[:-1])).all() and (major[1:] >= major[:-1]).all():
        return None  # sorted, as most matrices are
    by = np.lexsort((minor, major))
    twice = np.flatnonzero((np.diff(major[by]) == 0) & (np.diff(minor[by]) == 0))
    return int(by[twice[0]]) if twice.size else None


def stride_bounds(rows: Int64Array, stride: int | str, restart: str, *, rows_may_mix: bool) -> Int64Array:
    """int64[S + 1]: where strides begin. restart 'row': at each row start; 'continuous': every `stride` tuples, cut at
    row ends too unless rows may mix (COO). Raises InputError for impossible strides.
    """
    n = len(rows)
    if restart not in RESTARTS:
        raise unknown_name("stride_restart", restart, RESTARTS)
    if isinstance(stride, str):
        if stride not in ("row", "matrix"):
            raise InputError(f"stride is {shown(stride)}: a number of tuples, 'row' or 'matrix'")
        if stride == "matrix" and not rows_may_mix:
            raise InputError(
                "stride 'matrix' moves tuples across rows, which only layout 'coo' can store (or use 'row')"
            )
    elif isinstance(stride, bool) or not isinstance(stride, int | np.integer) or stride < 1:
        raise InputError(f"stride is {shown(stride)}: at least 1 tuple, 'row' or 'matrix'")
    cut = np.zeros(n, bool)
    cut[:1] = True
    row_start = first_of_rows(rows)
    if stride == "row":
        cut |= row_start
    elif stride != "matrix":
        stride = min(int(stride), max(n, 1))
        if restart == "row":
            starts = np.flatnonzero(row_start)
            strides = -(-np.diff(starts, append=n) // stride)  # of each row
            before = np.cumsum(strides) - strides
            cut[np.repeat(starts - stride * before, strides) + stride * np.arange(strides.sum())] = True
        else:
            cut[::stride] = True
        if not rows_may_mix:
            cut |= row_start
    return np.append(np.flatnonzero(cut), n).astype(np.int64)


def value_field(values: npt.NDArray[np.float32], value_format: str, each: Each = in_turn) -> tuple[Field, int, int]:
    """Values as bits of a number format, how many non-zeros became zero, and how many its largest value."""
    if value_format not in FORMATS:
        raise unknown_name("number format", value_format, FORMATS)
    scale = symmetric_scale(values, value_format) if FORMATS[value_format].item.needs_scale else None
    words, reports = np.empty(len(values), np.uint64), []

    def convert(start: int, stop: int) -> None:
        for at in range(start, stop, _CHUNK):
            here = slice(at, min(at + _CHUNK, stop))
            words[here], _, report = to_bits(values[here], value_format, scale=scale)
            reports.append(report)

    each(convert, len(values), PART)
    field = Field("values", words, element_bits(value_format))
    return field, sum(report.zeroed for report in reports), sum(report.saturated for report in reports)


def id_field(name: str, ids: Int64Array, id_bits: int, each: Each = in_turn) -> Field:
    if id_bits not in (8, 16, 32):
        raise InputError(f"id_bits is {id_bits}: 8, 16 or 32")
    if ids.size and (ids.max() >> id_bits or ids.min() < 0):
        fits = next((bits for bits in (16, 32) if not ids.max() >> bits), 64)
        raise InputError(
            f"{name}: id {ids.max()} does not fit {id_bits} bits (use --id-bits {fits}, id_bits={fits} in Python)"
        )
    return Field(name, _converted(ids, np.uint64, each), id_bits)
