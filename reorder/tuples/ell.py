"""ELLPACK: rows padded to the longest, stored column by column, so a tuple's neighbour in memory is in another row.

Slot k of row r is element ``k * R + r`` of every array (Bell and Garland 2008). What a row's slots hold meets only the
rows above and below it, so the best order of one row, the others given, is an assignment problem, solved exactly;
sweeps over the rows repeat until nothing improves. Padding (zeros) stays behind a row's tuples. With one row ELLPACK is
CSR. `ell_bound` is a lower bound for all orders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reorder.tuples.base import EllSweeps
from reorder.tuples.tuple_problem import Field, Int64Array
from traces.base.errors import InputError

MAX_PADDED = 1 << 27  # elements of the padded arrays
_WEIGHT = np.array([x.bit_count() for x in range(256)], np.uint8)
_DBI = np.minimum(_WEIGHT, 9 - _WEIGHT)


@dataclass(frozen=True, eq=False)
class EllProblem:
    """fields: of the stored entries in row order. rows: int64[N] ascending. interval: bytes between bases or None."""

    fields: tuple[Field, ...]
    counted: tuple[int, ...]
    rows: Int64Array
    n_rows: int
    dbi: bool
    interval: int | None

    @property
    def width(self) -> int:
        """Entries of the longest row."""
        return int(np.bincount(self.rows, minlength=1).max(initial=0)) if len(self.rows) else 0

    def slots(self) -> Int64Array:
        """int64[N]: the element index of each entry in the order given."""
        counts = np.bincount(self.rows, minlength=self.n_rows)
        first = np.cumsum(counts) - counts
        return (np.arange(len(self.rows)) - first[self.rows]) * self.n_rows + self.rows

    def arrays(self, order: Int64Array) -> list[npt.NDArray[np.uint64]]:
        """Each field's padded array, uint64[width * R]."""
        size = self.width * self.n_rows
        if size > MAX_PADDED:
            raise InputError(f"ell would pad {len(self.rows)} entries to {size}: the longest row is too long for it")
        padded = []
        for f in self.fields:
            array = np.zeros(size, np.uint64)
            array[self.slots()] = f.bits[order]
            padded.append(array)
        return padded

    def bases(self, f: Field) -> npt.NDArray[np.bool_]:
        """bool[width * R]: the element is sent as it is."""
        at = np.arange(self.width * self.n_rows)
        plain: npt.NDArray[np.bool_] = (
            at == 0 if self.interval is None else at % (self.interval // f.element_bytes) == 0
        )
        return plain

    def _ones(self, words: npt.NDArray[np.uint64], f: Field) -> npt.NDArray[np.int64]:
        table = _DBI if self.dbi else _WEIGHT
        data = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(*words.shape, 8)[..., : f.element_bytes]
        ones: Int64Array = table[data].sum(axis=-1, dtype=np.int64)
        return ones

    def field_ones(self, order: Int64Array) -> list[int]:
        """Ones of each padded array under Base+XOR, DBI counted."""
        totals = []
        for f, array in zip(self.fields, self.arrays(order), strict=True):
            sent = array.copy()
            sent[1:] ^= np.where(self.bases(f)[1:], np.uint64(0), array[:-1])
            totals.append(int(self._ones(sent, f).sum()))
        return totals

    def slot_costs(
        self, tuples: Int64Array, at: Int64Array, padded: list[npt.NDArray[np.uint64]], look_ahead: bool
    ) -> npt.NDArray[np.int64]:
        """int64[T, S]: ones when a tuple takes a slot, its own and, with look_ahead, its successor's."""
        cost = np.zeros((len(tuples), len(at)), np.int64)
        for k in self.counted:
            f, array, base = self.fields[k], padded[k], self._base[k]
            before = np.where(base[at] | (at == 0), np.uint64(0), array[at - 1])
            cost += self._ones(f.bits[tuples][:, None] ^ before[None, :], f)
            if look_ahead:
                follows = np.minimum(at + 1, len(array) - 1)
                free = base[follows] | (at + 1 == len(array))
                after = self._ones(f.bits[tuples][:, None] ^ array[follows][None, :], f)
                cost += np.where(free[None, :], 0, after)
        return cost

    def __post_init__(self) -> None:
        object.__setattr__(self, "_base", [self.bases(f) for f in self.fields])

    _base: list[npt.NDArray[np.bool_]] = None  # type: ignore[assignment]


def ell_bound(problem: EllProblem, bounds: Int64Array) -> int:
    """Return ones that every order inside the strides sends. O(N * stride) plus the assignments.

    What a slot costs depends on its tuple and on the one in memory before it, which is any tuple of the stride (of
    another row) that owns the slot before. A tuple is let off with the cheapest of them; the tuples of a stride then
    take their slots at least cost (an assignment problem), and padding follows the lightest tuple that can precede it.
    """
    from scipy.optimize import linear_sum_assignment

    slots, size = problem.slots(), problem.width * problem.n_rows
    stride_of = np.full(size + 1, -1, np.int64)  # of each slot; -1: padding, and before the first slot
    stride_of[slots] = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    before = stride_of[np.arange(size) - 1]
    masks = sum(problem.bases(problem.fields[k]).astype(np.int64) << j for j, k in enumerate(problem.counted))
    kinds = before << len(problem.counted) | masks  # what a slot's cost depends on

    def least(tuples: Int64Array | None, kind: int) -> npt.NDArray[np.int64]:
        """Ones of each tuple (None: of padding) in a slot of a kind, behind the best tuple for it."""
        stride = kind >> len(problem.counted)
        ahead = np.arange(bounds[stride], bounds[stride + 1]) if stride >= 0 else None
        total = np.zeros((1, 1), np.int64)
        for j, k in enumerate(problem.counted):
            f = problem.fields[k]
            own = f.bits[tuples] if tuples is not None else np.zeros(1, np.uint64)
            other = np.zeros(1, np.uint64) if ahead is None or kind >> j & 1 else f.bits[ahead]
            total = total + problem._ones(own[:, None] ^ other[None, :], f)
        lowest: Int64Array = total.min(axis=1)
        return lowest

    bound = 0
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        distinct, which = np.unique(kinds[slots[start:stop]], return_inverse=True)
        cost = np.stack([least(np.arange(start, stop), kind) for kind in distinct.tolist()], axis=-1)[:, which]
        bound += int(cost[linear_sum_assignment(cost)].sum())
    distinct, times = np.unique(kinds[stride_of[:size] < 0], return_counts=True)
    for kind, n in zip(distinct.tolist(), times.tolist(), strict=True):
        bound += n * int(least(None, kind)[0])
    return bound


def order_ell(problem: EllProblem, bounds: Int64Array, sweeps: EllSweeps) -> Int64Array:
    """Return int64[N] new -> old position. bounds: strides, which cut rows as in CSR.

    O(sweeps * N * stride) plus the assignments.
    """
    from scipy.optimize import linear_sum_assignment

    order, slots = np.arange(len(problem.rows), dtype=np.int64), problem.slots()
    padded = problem.arrays(order)
    for sweep in range(sweeps.most):
        changed = False
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            tuples, at = order[start:stop], slots[start:stop]
            cost = problem.slot_costs(tuples, at, padded, look_ahead=sweeps.look_ahead and sweep > 0)
            taken, slot = linear_sum_assignment(cost)
            chosen = np.empty_like(tuples)
            chosen[slot] = tuples[taken]
            if cost[np.arange(len(tuples)), np.arange(len(tuples))].sum() <= cost[taken, slot].sum():
                continue
            changed = True
            order[start:stop] = chosen
            for f, array in zip(problem.fields, padded, strict=True):
                array[at] = f.bits[chosen]
        if not changed:
            break
    return order
