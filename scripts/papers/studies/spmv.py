"""Sparse matrix times vector as memory accesses: row by row on a CPU, a warp per row on a GPU, and sparse convolution.

The matrix is CSR, its tuples in any order inside their rows (the outcome of tuple ordering). A direct sparse
convolution is a series of products of one matrix with shifted windows of the padded input (the approach of Park et al.
2017, which Feinberg et al. 2020 use for convolutional layers): one product per output position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.base.sparse import checked_sparse
from traces.formats import element_bits, from_bits, pack, to_bits
from traces.layout.kind import Space
from traces.layout.settings import INT8, NEURON_FORMATS
from traces.trace.chunks import Memory
from traces.trace.plan import memory_of

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SpmvProblem:
    """A matrix and its vectors, laid out: y[r * y_stride + y_shift[p]] = sum of a[r, c] x[c + x_shift[p]], for every p.

    start: int64[rows + 1] of each row. column: int64[nnz]. weight: float32[nnz] as stored. x: float32, as stored.
    x_shift, y_shift: int64[P], elements. memory: regions values, column_ids, row_pointers, x, y; y is zero at first.
    value_bits, id_bytes, vector_bytes: element sizes. zeroed: weights that became zero in the format.
    """

    start: Int64Array
    column: Int64Array
    weight: npt.NDArray[np.float32]
    x: npt.NDArray[np.float32]
    x_shift: Int64Array
    y_shift: Int64Array
    y_stride: int
    memory: Memory
    value_bits: int
    id_bytes: int
    vector_bytes: int
    vector_format: int
    zeroed: int

    @property
    def n_rows(self) -> int:
        return len(self.start) - 1

    def address(self, region: str) -> int:
        return self.memory.region(region).base_address

    def products(self, p: int) -> npt.NDArray[np.float32]:
        """Return float32[rows]: y of position p, summed in float64 and rounded once."""
        terms = self.weight.astype(np.float64) * self.x[self.column + self.x_shift[p]]
        sums = np.concatenate(([0.0], np.cumsum(terms)))
        return (sums[self.start[1:]] - sums[self.start[:-1]]).astype(np.float32)


def lay_out_spmv(
    matrix: Any,
    x: npt.ArrayLike,
    *,
    positions: npt.ArrayLike | None = None,
    shifts: tuple[Int64Array, Int64Array, int] | None = None,
    value_format: str = "fp16",
    vector_format: str = "fp32",
    id_bits: int = 16,
    base_address: int = 0,
    alignment_bytes: int = 256,
) -> SpmvProblem:
    """Lay out a SciPy sparse matrix (or dense array) and a vector float[columns].

    positions: int64[nnz], new -> old index of the stored tuples, a permutation inside each row (order_tuples gives
    it); None keeps the stored order. shifts: x_shift, y_shift and y_stride of several products, as those of a
    convolution's output positions; None: one. vector_format: fp32, fp16 or bf16, of x and y. id_bits: 8, 16 or 32.
    """
    from cython_ext.trace.walk import neuron_bits, neuron_values

    csr, vector = _csr(matrix), np.asarray(x, np.float32)
    if vector.shape != (csr.shape[1],):
        raise InputError(f"x has shape {vector.shape}, expected ({csr.shape[1]},): one value per column")
    x_shift, y_shift, y_stride = (np.zeros(1, np.int64), np.zeros(1, np.int64), 1) if shifts is None else shifts
    start, column = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
    values = np.asarray(csr.data, np.float32)
    if positions is not None:
        moved = _inside_rows(np.asarray(positions), start)
        column, values = column[moved], values[moved]
    known = [name for name in NEURON_FORMATS if name != INT8]  # sums are in it, too
    if vector_format not in known:
        raise InputError(f"unknown vector format {vector_format!r} (known: {', '.join(known)})")
    if id_bits not in (8, 16, 32) or int(column.max()) >= 2**id_bits:
        raise InputError(f"column id {int(column.max())} does not fit id_bits {id_bits}: use 8, 16 or 32 bits")
    bits, scale, report = to_bits(values, value_format)
    vector_bytes, number = NEURON_FORMATS[vector_format], list(NEURON_FORMATS).index(vector_format)
    stored_x = neuron_bits(np.ascontiguousarray(vector), number)
    pointer = "<u4" if start[-1] < 2**32 else "<u8"
    space = Space(base_address, alignment_bytes)
    space.add("values", pack(bits, value_format))
    space.add("column_ids", column.astype(f"<u{id_bits // 8}").view(np.uint8))
    space.add("row_pointers", start.astype(pointer).view(np.uint8))
    space.add("x", stored_x)
    space.add("y", np.zeros((len(start) - 1) * y_stride * vector_bytes, np.uint8))
    return SpmvProblem(
        start=start,
        column=column,
        weight=from_bits(bits, value_format, scale=scale),
        x=neuron_values(stored_x, number),
        x_shift=x_shift,
        y_shift=y_shift,
        y_stride=y_stride,
        memory=memory_of(space),
        value_bits=element_bits(value_format),
        id_bytes=id_bits // 8,
        vector_bytes=vector_bytes,
        vector_format=number,
        zeroed=report.zeroed,
    )


def _csr(matrix: Any) -> Any:
    from scipy.sparse import csr_array, issparse

    try:
        csr = csr_array(checked_sparse(matrix) if issparse(matrix) else matrix)
    except (TypeError, ValueError) as error:
        raise InputError(f"this is not a matrix: {error}") from error
    if csr.ndim != 2 or not csr.nnz:
        raise InputError(f"the matrix of shape {csr.shape} has no stored element")
    finite = np.isfinite(np.asarray(csr.data, np.float32))
    if not finite.all():
        raise InputError(f"stored element {int(np.argmin(finite))} is not finite")
    return csr


def _inside_rows(positions: npt.NDArray[Any], start: Int64Array) -> Int64Array:
    nnz = int(start[-1])
    if positions.shape != (nnz,) or not np.issubdtype(positions.dtype, np.integer):
        raise InputError(f"positions must be {nnz} whole numbers, one per stored element")
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    moved = positions.astype(np.int64)
    if (np.sort(moved) != np.arange(nnz)).any():
        raise InputError("positions are not a permutation of the stored elements")
    wrong = np.flatnonzero(row[moved] != row)
    if wrong.size:
        raise InputError(f"positions[{wrong[0]}] moves an element of row {row[moved[wrong[0]]]} to row {row[wrong[0]]}")
    return moved
