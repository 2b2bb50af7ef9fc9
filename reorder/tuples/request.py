"""Checked arguments of a tuple order, and the problem that they define."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.matrix import LAYOUTS, Entries, entries_of, id_field, stride_bounds, value_field
from reorder.tuples.tuple_problem import OBJECTIVES, Field, Int64Array, TupleProblem, TuplesBefore
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

    def problem(
        self, fields: tuple[Field, ...], bounds: Int64Array, rows: Int64Array, before: TuplesBefore = TuplesBefore()
    ) -> TupleProblem:
        return TupleProblem(
            fields, bounds, rows, self.encoder, self.interval, self.objective, self.metric, self.bus_bytes,
            self.energy_pj, before,
        )  # fmt: skip


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


class TupleRequest:
    """Storage, wires, method and its parameters, checked before any work. effort: for methods that have one.

    member: the method. own: its parameter object. InputError where it does not serve the layout or the objective.
    """

    def __init__(
        self, storage: Storage, wires: WireRequest, method: str, effort: float | str, parameters: Mapping[str, Any]
    ) -> None:
        self.storage, self.wires, self.method = storage, wires, method
        entry = TUPLE_ORDERS[method]
        self.member = entry.item
        for what, name, served in (("layout", storage.layout, "layouts"), ("objective", wires.objective, "objectives")):
            if name not in getattr(self.member, served):
                able = [key for key, each in TUPLE_ORDERS.loadable().items() if name in getattr(each.item, served)]
                raise InputError(f"{method!r} does not order for {what} {name!r}: use {', '.join(map(repr, able))}")
        has_effort = "effort" in getattr(entry.parameters, "__dataclass_fields__", ())
        self.parameters = {"effort": effort, **parameters} if has_effort else dict(parameters)
        self.own = entry.make_parameters(self.parameters)


def stored_tuples(
    matrix: Any, storage: Storage, wires: WireRequest, each: Each = in_turn
) -> tuple[TupleProblem, Entries, int, int]:
    """Return a matrix as a problem, its entries in storage order, and how many values became zero and how many
    the largest of the format. Errors as `entries_of`, `value_field` and `id_field` raise them."""
    kind = LAYOUTS[storage.layout]
    entries = entries_of(matrix, kind, each)
    values, zeroed, saturated = value_field(entries.values, storage.value_format, each)
    columns = zip(kind.ids, (entries.major, entries.minor)[-len(kind.ids) :], strict=True)
    ids = [id_field(name, column, storage.id_bits, each) for name, column in columns]
    bounds = stride_bounds(entries.major, storage.stride, storage.stride_restart, rows_may_mix=kind.rows_mix)
    return wires.problem((values, *ids), bounds, entries.major), entries, zeroed, saturated
