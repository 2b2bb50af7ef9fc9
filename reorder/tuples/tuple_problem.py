"""Tuples in slots: what each tuple puts on the wires, where blocks begin, and which tuples may change places.

A sparse format keeps one array per field, packed and sent in blocks whose first element is a base (Feinberg et al.
2020, section III). Slot i of every array belongs to tuple i; reordering permutes tuples inside strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traces.base.checks import whole_number
from traces.base.errors import InputError, unknown_name

Int64Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

METRICS = ("ones", "toggles", "energy")
OBJECTIVES = ("joint", "values", "ids")


@dataclass(frozen=True)
class Coding:
    """Which encoders a chain has."""

    xor: bool = False
    dbi: bool = False
    transition: bool = False


CHAINS: Mapping[str, Coding] = {
    "base-xor+dbi-dc": Coding(xor=True, dbi=True),
    "base-xor": Coding(xor=True),
    "raw": Coding(),
    "dbi-dc": Coding(dbi=True),
    "base-xor+transition": Coding(xor=True, transition=True),
    "base-xor+dbi-dc+transition": Coding(xor=True, dbi=True, transition=True),
}


@dataclass(frozen=True, eq=False)
class Field:
    """One array of the format. bits: uint64[N], one element each, little endian; element_bits: 4, 8, 16 or 32."""

    name: str
    bits: Words
    element_bits: int

    @property
    def element_bytes(self) -> int:
        """Whole bytes of one element (1 for int4, two of which share a byte)."""
        return max(1, self.element_bits // 8)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle elements at their own width."""
        return {**self.__dict__, "bits": self.bits.astype(f"<u{self.element_bytes}")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, bits=state["bits"].astype(np.uint64))


def first_of_rows(rows: Int64Array, before: int = -1) -> npt.NDArray[np.bool_]:
    """bool[N]: the slot is the first of its row; before: the row of the slot in front of all."""
    first = np.empty(len(rows), bool)
    first[:1] = rows[:1] != before
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    return first


@dataclass(frozen=True)
class TuplesBefore:
    """Position of a piece in the problem that it was cut from.

    slots, strides: their numbers before it; strides seed the search. row: of the slot before, -1 where there is none.
    """

    slots: int = 0
    row: int = -1
    strides: int = 0


@dataclass(frozen=True, eq=False)
class TupleProblem:
    """Input of an ordering method.

    fields: the arrays, first the values. bounds: int64[S + 1], stride k is slots bounds[k] to bounds[k+1].
    rows: int64[N] row of each slot (which row owns a slot never changes, except where a stride spans rows).
    encoder: one of CHAINS. block_bytes: distance of bases in bytes; None: a base only at the start of an array;
    'row': at the start of each row. objective: which fields count ('joint': all). metric: see METRICS.
    bus_bytes: byte lanes for toggles, None: as wide as one element. energy_pj: (per one, per rising edge).
    before: position of a problem that is a piece of another.
    """

    fields: tuple[Field, ...]
    bounds: Int64Array
    rows: Int64Array
    encoder: str = "base-xor+dbi-dc"
    block_bytes: int | str | None = 32
    objective: str = "joint"
    metric: str = "ones"
    bus_bytes: int | None = None
    energy_pj: tuple[float, float] | None = None
    before: TuplesBefore = TuplesBefore()

    def __post_init__(self) -> None:
        for what, value, known in (
            ("encoder of tuple orders", self.encoder, CHAINS),
            ("objective", self.objective, OBJECTIVES),
            ("wire metric", self.metric, METRICS),
        ):
            if value not in known:
                raise unknown_name(what, value, known)
        if self.bus_bytes is not None:
            whole_number(self.bus_bytes, "bus_bytes", 1, 1 << 16)
        if self.metric == "energy" and self.energy_pj is None:
            raise InputError("metric 'energy' needs energy_pj (--part), the picojoules of a one and of a rising edge")
        if self.metric == "energy" and self.coding.transition:
            raise InputError("transition signalling is for unterminated buses: use metric 'toggles', not 'energy'")
        if self.energy_pj is not None and not all(0 <= pj < float("inf") for pj in self.energy_pj):
            raise InputError(f"energy_pj is {self.energy_pj}: picojoules of at least 0")
        for f in self.fields:
            if isinstance(self.block_bytes, int) and (
                self.block_bytes < 1 or self.block_bytes * 8 % f.element_bits or self.block_bytes < f.element_bytes
            ):
                raise InputError(
                    f"bases every {self.block_bytes} bytes: no whole number of {f.element_bits}-bit {f.name}"
                )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle rows in the narrowest type, without cached properties."""
        lowest = int(self.rows[0]) if self.size else 0
        apart = self.rows - lowest
        if not self.size or apart.min() < 0:
            lowest, apart = 0, self.rows
        else:
            apart = apart.astype(np.min_scalar_type(int(apart.max())))
        return {**{f.name: getattr(self, f.name) for f in dataclass_fields(self)}, "rows": (lowest, apart)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        lowest, apart = state["rows"]
        self.__dict__.update(state, rows=apart.astype(np.int64) + lowest)

    @property
    def coding(self) -> Coding:
        return CHAINS[self.encoder]

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def dbi(self) -> bool:
        return self.coding.dbi

    @property
    def xor(self) -> bool:
        return self.coding.xor

    @property
    def counts_edges(self) -> bool:
        """The metric looks at edges on the wires, not at ones alone (transition signalling turns ones into edges)."""
        return self.metric != "ones" and not self.coding.transition

    @property
    def model_is_exact(self) -> bool:
        """The search minimises the metric itself.

        Not so where an edge depends on two tuples before (toggles or energy of an XORed array: fewer ones stand in for
        them), for energy (edges stand in; ones do not change) and for int4 (two values to a byte).
        """
        surrogate = (self.counts_edges and self.xor) or self.metric == "energy"
        return not surrogate and all(f.element_bits >= 8 for f in self.counted)

    @property
    def counted(self) -> tuple[Field, ...]:
        if self.objective == "values":
            return self.fields[:1]
        return self.fields[1:] if self.objective == "ids" else self.fields

    @cached_property
    def row_starts(self) -> npt.NDArray[np.bool_]:
        return first_of_rows(self.rows, self.before.row)

    def piece(self, first: int, last: int, before: int = 1) -> Piece:
        """Return strides [first, last) with `before` slots before them and one behind, on which their orders depend."""
        start, stop = int(self.bounds[first]), int(self.bounds[last])
        low, high = max(start - before, 0), min(stop + 1, self.size)
        own = self.bounds[first : last + 1] - low
        leads = int(low < start)
        bounds = np.concatenate(([0] * leads, own, [high - low] * (stop < high))).astype(np.int64)
        slots = low + self.before.slots
        there = TuplesBefore(
            slots, int(self.rows[low - 1]) if low else self.before.row, self.before.strides + first - leads
        )
        fields = tuple(replace(f, bits=f.bits[low:high]) for f in self.fields)
        cut = replace(self, fields=fields, bounds=bounds, rows=self.rows[low:high], before=there)
        return Piece(cut, leads, leads + last - first, low)

    def is_base(self, f: Field) -> npt.NDArray[np.bool_]:
        """bool[N]: the field's slot is sent as it is."""
        base = np.zeros(self.size, bool)
        base[:1] = self.before.row < 0
        if self.block_bytes == "row":
            base |= self.row_starts
        if isinstance(self.block_bytes, int):
            per_block = self.block_bytes * 8 // f.element_bits
            base[-self.before.slots % per_block :: per_block] = True
        return base

    @cached_property
    def model(self) -> CostModel:
        """The kernels' words of the whole problem and slot classes, made once: groups of strides share them."""
        toggles = self.counts_edges and not self.xor
        n, out, into = self.size, [], []
        classes = np.zeros(n, np.uint8)
        for k, f in enumerate(self.counted):
            if toggles:
                beats = sent_beats(self, f)
                out.append(beats[-1])
                into.append(beats[0])
                base = np.zeros(n, bool)
                base[:1] = self.before.row < 0  # the wires rest at 0 before the first beat
            else:
                bits = f.bits if self.xor else np.zeros_like(f.bits)
                out.append((bits, f.element_bytes))
                into.append((f.bits, f.element_bytes))
                base = self.is_base(f)
            classes |= (base << k).astype(np.uint8)
        n_fields = len(self.counted)
        same = all(a is b or np.array_equal(a, b) for (a, _), (b, _) in zip(out, into, strict=True))
        return CostModel(
            _pack(out, n),
            _pack(into, n),
            _keep_masks(tuple(size for _, size in out)),
            classes,
            self.dbi and not toggles,
            same and n_fields > 0,
        )


@dataclass(frozen=True, eq=False)
class Piece:
    """Strides [first, last) of `problem`, which begins at slot `offset` of the problem that it was cut from."""

    problem: TupleProblem
    first: int
    last: int
    offset: int


class CostModel(NamedTuple):
    """The cost model of the kernels (cython_ext/cdr/cost.h), see there: one or two 64-bit words per tuple."""

    out: Words
    into: Words
    keep: Words
    slot_class: npt.NDArray[np.uint8]
    dbi: bool
    symmetric: bool


def _pack(parts: Sequence[tuple[Words, int]], n: int) -> Words:
    """Pack (bits, bytes) parts side by side, none across a 64-bit border: uint64[n, 1 or 2]."""
    words, at = np.zeros((n, 2), np.uint64), 0
    for bits, size in parts:
        if at % 8 + size > 8:
            at = 8
        if at + size > 16:
            raise InputError("a tuple has more than 16 bytes: use narrower ids or count fewer fields")
        words[:, at // 8] |= bits << np.uint64(8 * (at % 8))
        at += size
    return np.ascontiguousarray(words[:, : 2 if at > 8 else 1])


@cache
def _keep_masks(sizes: tuple[int, ...]) -> Words:
    """uint64[8, 1 or 2]: what a slot of each class keeps of the fields, of so many bytes, of the tuple before."""
    masks = [[np.uint64(0 if c >> k & 1 else (1 << 8 * size) - 1) for k, size in enumerate(sizes)] for c in range(8)]
    rows = [_pack([(np.array([m]), size) for m, size in zip(row, sizes, strict=True)], 1) for row in masks]
    keep = np.ascontiguousarray(np.concatenate(rows))
    keep.setflags(write=False)
    return keep


def sent_beats(problem: TupleProblem, f: Field) -> list[tuple[Words, int]]:
    """For toggles: the beats of one element as (levels of the wires, bytes), flag wires as bits above the data."""
    lanes = problem.bus_bytes or f.element_bytes
    if f.element_bytes % lanes:
        raise InputError(
            f"toggles of {f.element_bits}-bit {f.name} on a {lanes}-byte bus depend on more than the tuple before: "
            f"use a bus of at most {f.element_bytes} bytes"
        )
    beats = []
    for start in range(0, f.element_bytes, lanes):
        data = (f.bits >> np.uint64(8 * start)) & np.uint64((1 << 8 * lanes) - 1)
        if problem.dbi:
            flags = np.zeros_like(data)
            for lane in range(lanes):
                heavy = np.bitwise_count((data >> np.uint64(8 * lane)) & np.uint64(255)) > 4
                data = np.where(heavy, data ^ np.uint64(255 << 8 * lane), data)
                flags |= heavy.astype(np.uint64) << np.uint64(lane)
            data |= flags << np.uint64(8 * lanes)
        beats.append((data, lanes + problem.dbi))
    return beats
