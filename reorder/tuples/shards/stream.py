"""A matrix as groups of strides, read row by row: the groups that `order_tuples` cuts, and no more of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import reorder.tuples.groups as groups
from reorder.tuples.matrix import id_field, stride_bounds
from reorder.tuples.tuple_order import Storage, WireRequest
from reorder.tuples.tuple_problem import Field, Int64Array, Piece, TupleProblem, TuplesBefore
from traces.base.errors import InputError
from traces.formats import element_bits
from traces.readers.parts.weights import RowMatrix

_READ_TUPLES = 1 << 16  # that are read at a time, at least a row

_EXPONENT = {"fp32": 0x7F800000, "fp16": 0x7C00, "bf16": 0x7F80}


@dataclass(frozen=True, eq=False)
class TupleGroup:
    """One group: tuples [start, start + n) of the matrix, and the piece of a problem that orders them.

    columns int64[n], words uint16 or uint32[n]: its own tuples as they are stored.
    """

    start: int
    piece: Piece
    columns: Int64Array
    words: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class TupleRange:
    """Consecutive tuples of a matrix: columns, bits of their values, rows."""

    columns: Int64Array
    words: npt.NDArray[Any]
    rows: Int64Array

    def __len__(self) -> int:
        return len(self.rows)

    def since(self, at: int) -> TupleRange:
        return TupleRange(self.columns[at:], self.words[at:], self.rows[at:])

    def then(self, other: TupleRange) -> TupleRange:
        both = (np.concatenate((getattr(self, name), getattr(other, name))) for name in ("columns", "words", "rows"))
        return TupleRange(*both)

    def problem(
        self, bounds: Int64Array, value_format: str, id_bits: int, wires: WireRequest, before: TuplesBefore
    ) -> TupleProblem:
        values = Field("values", self.words.astype(np.uint64), element_bits(value_format))
        ids = id_field("column ids", self.columns, id_bits)
        return wires.problem((values, ids), bounds, self.rows, before)


def read_tuples(matrix: RowMatrix) -> Iterator[TupleRange]:
    """Yield the tuples of whole rows, about _READ_TUPLES at a time. Raises InputError for one that is not finite."""
    pointers, rows = matrix.pointers, matrix.shape[0]
    row = 0
    while row < rows:
        stop = int(np.searchsorted(pointers, pointers[row] + _READ_TUPLES, side="right")) - 1
        stop = min(max(stop, row + 1), rows)
        columns, words = matrix.entries(row, stop)
        if len(columns) != pointers[stop] - pointers[row]:
            raise InputError(f"{matrix.values.file}: {matrix.name!r} changed while it was read")
        where = np.repeat(np.arange(row, stop), np.diff(pointers[row : stop + 1]))
        exponent = words.dtype.type(_EXPONENT[matrix.value_format])
        odd = (words & exponent) == exponent
        if odd.any():
            k = int(np.argmax(odd))
            raise InputError(
                f"{matrix.values.file}: {matrix.name!r}: entry ({where[k]}, {columns[k]}) is not finite: only finite "
                "numbers can be sent"
            )
        yield TupleRange(columns, words, where)
        row = stop


def read_groups(matrix: RowMatrix, storage: Storage, wires: WireRequest) -> Iterator[TupleGroup]:
    """Yield the groups of a matrix from its first row to its last; what they hold does not grow with the matrix."""
    source = read_tuples(matrix)
    held = next(source, None)
    before, lead, ended = TuplesBefore(), 0, False  # lead: whether the tuple before comes first, which a group follows
    least = 2 * groups.GROUP_TUPLES
    while held is not None:
        while not ended and len(held) < least:
            more = next(source, None)
            held, ended = (held, True) if more is None else (held.then(more), False)
        bounds = stride_bounds(held.rows[lead:], storage.stride, "row", rows_may_mix=False) + lead
        bounds = np.concatenate((np.zeros(lead, np.int64), bounds))
        problem = held.problem(bounds, matrix.value_format, storage.id_bits, wires, before)
        cut = lead
        for first, last in groups.groups(problem, lead):
            if not ended and last == len(bounds) - 1:
                break  # the group may go on in the next rows
            start, stop = int(bounds[first]), int(bounds[last])
            own = held.columns[start:stop], held.words[start:stop]
            yield TupleGroup(before.slots + start, problem.piece(first, last), *own)
            cut = last
        if ended:
            return
        if cut == lead:  # a group longer than what is held
            least = len(held) + 1
            continue
        least = 2 * groups.GROUP_TUPLES
        at = int(bounds[cut]) - 1
        before = TuplesBefore(before.slots + at, int(held.rows[at - 1]) if at else before.row, before.strides + cut - 1)
        held, lead = held.since(at), 1
