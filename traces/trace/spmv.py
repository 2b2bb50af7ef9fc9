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

from traces.base.checks import whole_number
from traces.base.errors import InputError
from traces.base.sparse import checked_sparse
from traces.formats import element_bits, from_bits, pack, to_bits
from traces.layout.kind import Space
from traces.layout.settings import NEURON_FORMATS
from traces.trace.chunks import Memory
from traces.trace.plan import memory_of

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SpmvProblem:
    """A matrix and its vectors, laid out: y[r * y_stride + y_shift[p]] = sum of a[r, c] x[c + x_shift[p]], for every p.

    start: int64[rows + 1] of each row. column: int64[nnz]. weight: float32[nnz] as stored. x: float32, as stored.
    x_shift, y_shift: int64[P], elements. memory: regions values, column_ids, row_pointers, x, y; y is zero at first.
    *_at: addresses. value_bits, id_bytes, vector_bytes: element sizes. zeroed: weights that became zero in the format.
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
    value_format: str = "fp16",
    vector_format: str = "fp32",
    id_bits: int = 16,
    base_address: int = 0,
    alignment_bytes: int = 256,
) -> SpmvProblem:
    """Lay out a SciPy sparse matrix (or dense array) and a vector float[columns].

    positions: int64[nnz], new -> old index of the stored tuples, a permutation inside each row (order_tuples gives
    it); None keeps the stored order. vector_format: fp32, fp16 or bf16, of x and y. id_bits: 8, 16 or 32.
    Raises InputError for an empty matrix, ids that do not fit, a permutation that leaves its row.
    """
    stored = (value_format, vector_format, id_bits, base_address, alignment_bytes)
    csr, vector, zero = _csr(matrix), np.asarray(x, np.float32), np.zeros(1, np.int64)
    if vector.shape != (csr.shape[1],):
        raise InputError(f"x has shape {vector.shape}, expected ({csr.shape[1]},): one value per column")
    return _lay_out(csr, positions, vector, zero, zero, 1, *stored)


def convolution_matrix(weights: npt.ArrayLike, height: int, width: int) -> Any:
    """Return a convolution's weights float[Cout, Cin, R, S] as the matrix that direct sparse convolution stores.

    SciPy csr [Cout, Cin * height * width], height and width those of the padded image: the column is the offset of the
    weight's first input, c * height * width + r * width + s. Zero weights are not stored. Its tuples can be ordered.
    Raises InputError for other shapes and a kernel without weights or larger than the image.
    """
    from scipy.sparse import csr_array

    kernel = np.asarray(weights, np.float32)
    if kernel.ndim != 4:
        raise InputError(f"weights have shape {kernel.shape}, expected (Cout, Cin, R, S)")
    outputs, inputs, r, s = kernel.shape
    if r > height or s > width:
        raise InputError(f"the {r} x {s} kernel is larger than the padded image of {height} x {width}")
    row, channel, down, right = np.nonzero(kernel)
    if not len(row):
        raise InputError("the kernel has no non-zero weight")
    start = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=outputs))))
    offsets = (channel * height + down) * width + right
    return csr_array((kernel[np.nonzero(kernel)], offsets, start), shape=(outputs, inputs * height * width))


def lay_out_convolution(
    weights: npt.ArrayLike,
    image: npt.ArrayLike,
    *,
    positions: npt.ArrayLike | None = None,
    stride: int = 1,
    padding: int = 0,
    value_format: str = "fp16",
    vector_format: str = "fp32",
    id_bits: int = 16,
    base_address: int = 0,
    alignment_bytes: int = 256,
) -> SpmvProblem:
    """Lay out a direct sparse convolution: weights float[Cout, Cin, R, S], image float[Cin, H, W].

    The matrix is `convolution_matrix` of the padded image; output position (h, w) shifts its columns by
    (h * Wp + w) * stride. positions: as in lay_out_spmv, an order of its tuples. y is [Cout, Hout, Wout].
    """
    kernel, picture = np.asarray(weights, np.float32), np.asarray(image, np.float32)
    if kernel.ndim != 4 or picture.ndim != 3 or kernel.shape[1] != picture.shape[0]:
        raise InputError(
            f"weights {kernel.shape} and image {picture.shape}: expected (Cout, Cin, R, S) and (Cin, H, W)"
        )
    for name, value, least in (("stride", stride, 1), ("padding", padding, 0)):
        whole_number(value, name, least)
    padded = np.pad(picture, ((0, 0), (padding, padding), (padding, padding)))
    _, height, width = padded.shape
    matrix = _csr(convolution_matrix(kernel, height, width))
    rows, columns = (height - kernel.shape[2]) // stride + 1, (width - kernel.shape[3]) // stride + 1
    down, right = np.divmod(np.arange(rows * columns), columns)
    x_shift, y_shift = (down * width + right) * stride, np.arange(rows * columns)
    stored = (value_format, vector_format, id_bits, base_address, alignment_bytes)
    return _lay_out(matrix, positions, padded.reshape(-1), x_shift, y_shift, rows * columns, *stored)


def _csr(matrix: Any) -> Any:
    from scipy.sparse import csr_array, issparse

    try:
        csr = csr_array(checked_sparse(matrix) if issparse(matrix) else matrix)
    except (TypeError, ValueError) as error:
        raise InputError(f"this is no matrix: {error}") from error
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
        raise InputError("positions are no permutation of the stored elements")
    wrong = np.flatnonzero(row[moved] != row)
    if wrong.size:
        raise InputError(f"positions[{wrong[0]}] moves an element of row {row[moved[wrong[0]]]} to row {row[wrong[0]]}")
    return moved


def _lay_out(
    matrix: Any,
    positions: npt.ArrayLike | None,
    x: npt.NDArray[np.float32],
    x_shift: Int64Array,
    y_shift: Int64Array,
    y_stride: int,
    value_format: str,
    vector_format: str,
    id_bits: int,
    base_address: int,
    alignment_bytes: int,
) -> SpmvProblem:
    from cython_ext.trace.walk import neuron_bits, neuron_values

    start, column = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    values = np.asarray(matrix.data, np.float32)
    if positions is not None:
        moved = _inside_rows(np.asarray(positions), start)
        column, values = column[moved], values[moved]
    if vector_format not in NEURON_FORMATS:
        raise InputError(f"unknown vector format {vector_format!r} (known: {', '.join(NEURON_FORMATS)})")
    if id_bits not in (8, 16, 32) or int(column.max()) >= 2**id_bits:
        raise InputError(f"column id {int(column.max())} does not fit id_bits {id_bits}: use 8, 16 or 32 bits")
    bits, scale, report = to_bits(values, value_format)
    vector_bytes, number = NEURON_FORMATS[vector_format], list(NEURON_FORMATS).index(vector_format)
    stored_x = neuron_bits(np.ascontiguousarray(x), number)
    pointer = "<u4" if start[-1] < 2**32 else "<u8"
    space = Space(base_address, alignment_bytes)
    space.add("values", np.asarray(pack(bits, value_format), np.uint8))
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
