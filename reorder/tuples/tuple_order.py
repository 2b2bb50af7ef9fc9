"""`order_tuples`: the order of a sparse matrix's tuples that sends few ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.cost import metric_bound, wire_cost
from reorder.tuples.groups import order_all
from reorder.tuples.matrix import LAYOUTS, Entries, entries_of, id_field, stride_bounds, value_field
from reorder.tuples.tuple_problem import OBJECTIVES, Field, Int64Array, TupleProblem, TuplesBefore
from traces.base.checks import check_seed
from traces.base.errors import InputError, shown, unknown_name
from traces.base.progress import Progress
from traces.base.reprs import OneLineRepr
from traces.base.workers import Each, Workers, in_turn


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


@dataclass(frozen=True, eq=False)
class TupleOrder(OneLineRepr):
    """An order of the stored entries of a matrix and what it sends.

    positions: int64[N], new position -> old position in the storage order of the layout.
    ones_values, ones_ids: ones on the wires, DBI wires counted where the encoder has them (ids: row and column ids).
    original_ones_values, original_ones_ids: the same for the order given. cost, original_cost: the objective.
    toggles: of all arrays, each sent alone, where the metric is toggles or energy; else None.
    lower_bound: no order inside these strides has a lower cost (None: not asked for, or none is known:
        reorder.tuples.cost).
    zeroed: stored non-zeros that are zero in the format. saturated: values beyond its range, sent as its largest.
    parameters: what was asked for.
    """

    positions: Int64Array
    ones_values: int
    ones_ids: int
    original_ones_values: int
    original_ones_ids: int
    cost: float
    original_cost: float
    toggles: int | None
    original_toggles: int | None
    lower_bound: float | None
    zeroed: int
    saturated: int
    method: str
    parameters: Mapping[str, Any]
    entries: Entries

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        return {
            "tuples": len(self.positions), "method": self.method, "ones": self.ones, "as given": self.original_ones,
            "cost": self.cost, "cost as given": self.original_cost, "no order below": self.lower_bound,
            "stride": self.parameters.get("stride"),
        }  # fmt: skip

    @property
    def ones(self) -> int:
        return self.ones_values + self.ones_ids

    @property
    def original_ones(self) -> int:
        return self.original_ones_values + self.original_ones_ids

    def matrix(self) -> Any:
        """Return the SciPy matrix (csr, csc or coo) whose stored order is this order; it equals the given matrix."""
        e, p = self.entries, self.positions
        return e.layout.matrix(e.major[p], e.minor[p], e.given[p], e.shape)


def order_tuples(
    matrix: Any,
    *,
    value_format: str,
    id_bits: int = 16,
    stride: int | str,
    layout: str = "csr",
    encoder: str = "base-xor+dbi-dc",
    block_bytes: int = 32,
    base_interval: int | str | None = None,
    objective: str = "joint",
    metric: str = "ones",
    bus_bytes: int | None = None,
    energy_pj: tuple[float, float] | None = None,
    stride_restart: str = "row",
    method: str = "local-search",
    effort: float | str = 1.0,
    seed: int = 0,
    workers: int = 1,
    executor: str | None = None,
    scheduler: str | None = None,
    bound: bool = True,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    **parameters: Any,
) -> TupleOrder:
    """Order the tuples of a sparse matrix so that sending its arrays costs little. The matrix itself does not change.

    matrix: SciPy sparse or dense (its non-zeros); the stored order is the order to start from, sorted or not. Stored
        zeros stay. value_format: of traces.formats. id_bits: 8, 16 or 32. layout: csr, csc or coo.
    stride: tuples that may change places, 'row', or 'matrix' (coo). stride_restart: 'row' starts strides at each row,
        'continuous' runs them on.
    encoder: a chain of Base+XOR and DBI-DC; 'raw' and 'dbi-dc' for metric 'toggles'. block_bytes: bases are sent at
        each block start; base_interval replaces it: bytes between bases, 'row' (once per row) or 'matrix' (once).
    objective: 'joint', 'values' or 'ids'. metric: 'ones' (terminated buses), 'toggles' (unterminated; each array alone
        on `bus_bytes` lanes, default the width of its elements, wires at 0 before) or 'energy' by energy_pj =
        (per one, per rising edge), of a part. Under Base+XOR ones stand in for toggles and energy in the search.
    method: of TUPLE_ORDERS; `parameters` are its own. effort: work of methods that have it (local-search: 1 is
        about 40 us a tuple with AVX-512), or 'fast', 'default' or 'best'. The result depends on the seed, not on
        `workers`. executor: who they are, 'threads', 'processes', 'inline' or 'dask' (a local cluster of as many, or
        the one at the address `scheduler`); None: threads where the method is compiled, else processes, as are the
        workers of a local cluster. bound: also compute the spanning-tree bound. checkpoint: file that lets a killed run
        continue.

    Returns a TupleOrder. Raises InputError saying which entry, id, stride or name cannot be used.
    """
    check_seed(seed)
    storage = Storage(layout, value_format, id_bits, stride, stride_restart)
    wires = WireRequest(encoder, block_bytes, base_interval, objective, metric, bus_bytes, energy_pj)
    request = TupleRequest(storage, wires, method, effort, parameters)
    with Workers(workers, executor or request.member.workers, scheduler, request.member.workers) as team:
        problem, entries, zeroed, saturated = stored_tuples(matrix, storage, wires, team.each)
        positions = order_all(
            problem, method, seed=seed, parameters=request.own, workers=team, progress=progress, checkpoint=checkpoint
        )
        given = np.arange(problem.size, dtype=np.int64)
        after, before = wire_cost(problem, positions, team.each), wire_cost(problem, given, team.each)
        for name in request.member.guards_of(problem):
            other = given if name == "given" else order_all(problem, name, workers=team)
            sent = before if name == "given" else wire_cost(problem, other, team.each)
            if sent.cost < after.cost:
                positions, after = other, sent
        lower_bound = metric_bound(problem, positions, team) if bound else None
    return TupleOrder(
        positions=positions,
        ones_values=after.ones[0],
        ones_ids=sum(after.ones[1:]),
        original_ones_values=before.ones[0],
        original_ones_ids=sum(before.ones[1:]),
        cost=after.cost,
        original_cost=before.cost,
        toggles=sum(after.toggles) if after.toggles else None,
        original_toggles=sum(before.toggles) if before.toggles else None,
        lower_bound=lower_bound,
        zeroed=zeroed,
        saturated=saturated,
        method=method,
        parameters={"stride": stride, "value_format": value_format, "seed": seed, **request.parameters},
        entries=entries,
    )
