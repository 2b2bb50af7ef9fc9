"""Checked arguments of a tuple order, and the problem that they define."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.matrix import LAYOUTS, Entries, MatrixLayout, entries_of, id_field, stride_bounds, value_field
from reorder.tuples.tuple_problem import OBJECTIVES, Field, Int64Array, TupleProblem
from traces.base.errors import InputError, shown, unknown_name
from traces.base.workers import Each, in_turn


@dataclass(frozen=True)
class WireRequest:
    """How the arrays are sent and what is counted; the names are those of `order_tuples`."""

    encoder: str
    block_bytes: int
    base_interval: int | str | None
    objective: str
    metric: str
    bus_bytes: int | None
    energy_pj: tuple[float, float] | None

    def __post_init__(self) -> None:
        if self.block_bytes < 1:
            raise InputError(f"block_bytes is {self.block_bytes}: a block has at least one byte")
        if isinstance(self.base_interval, str) and self.base_interval not in ("row", "matrix"):
            raise InputError(f"base_interval is {shown(self.base_interval)}: a number of bytes, 'row' or 'matrix'")
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, OBJECTIVES)

    @property
    def interval(self) -> int | str | None:
        """Bytes between bases, 'row', or None for one base at the start."""
        if self.base_interval is None:
            return self.block_bytes
        return None if self.base_interval == "matrix" else self.base_interval


@dataclass(frozen=True)
class Storage:
    """How the matrix is stored and which tuples may change places; the names are those of `order_tuples`."""

    layout: str
    value_format: str
    id_bits: int
    stride: int | str
    stride_restart: str

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise unknown_name("layout", self.layout, LAYOUTS)

    @property
    def kind(self) -> MatrixLayout:
        """The layout's arrays."""
        return LAYOUTS[self.layout]


@dataclass(frozen=True)
class TupleRequest:
    """Storage, wires, method and its parameters. Names and parameters are checked before any work."""

    storage: Storage
    wires: WireRequest
    method: str
    parameters: Mapping[str, Any]

    def __post_init__(self) -> None:
        _ = self.member, self.own

    @cached_property
    def member(self) -> TupleOrderMethod:
        """The method; InputError where it does not serve the layout or the objective."""
        member = TUPLE_ORDERS[self.method].item
        for what, name, served in (
            ("layout", self.storage.layout, "layouts"),
            ("objective", self.wires.objective, "objectives"),
        ):
            if name not in getattr(member, served):
                able = [key for key, entry in TUPLE_ORDERS.loadable().items() if name in getattr(entry.item, served)]
                others = ", ".join(map(repr, able))
                raise InputError(f"{self.method!r} does not order for {what} {name!r}: use {others}")
        return member

    @cached_property
    def own(self) -> Any:
        """The method's own parameter object."""
        return TUPLE_ORDERS[self.method].make_parameters(self.parameters)


@dataclass(frozen=True, eq=False)
class StoredTuples:
    """The entries of a matrix in storage order, as the arrays that are sent. zeroed, saturated: as of TupleOrder."""

    entries: Entries
    fields: tuple[Field, ...]
    zeroed: int
    saturated: int

    @classmethod
    def of(cls, matrix: Any, storage: Storage, each: Each = in_turn) -> StoredTuples:
        """Read a matrix; errors as `entries_of`, `value_field` and `id_field` raise them."""
        entries = entries_of(matrix, storage.kind, each)
        values, *lost = value_field(entries.values, storage.value_format, each)
        names = storage.kind.ids
        ids = zip(names, (entries.major, entries.minor)[-len(names) :], strict=True)
        fields = (
            values,
            *(id_field(name, column, storage.id_bits, each) for name, column in ids),
        )
        return cls(entries, fields, *lost)

    def bounds(self, storage: Storage) -> Int64Array:
        """int64[S + 1]: the strides."""
        mix = self.entries.layout.rows_mix
        return stride_bounds(self.entries.major, storage.stride, storage.stride_restart, rows_may_mix=mix)

    def problem(self, storage: Storage, wires: WireRequest) -> TupleProblem:
        """Return the problem."""
        return TupleProblem(
            self.fields,
            self.bounds(storage),
            self.entries.major,
            wires.encoder,
            wires.interval,
            wires.objective,
            wires.metric,
            wires.bus_bytes,
            wires.energy_pj,
        )
