"""`order_tuples`: the order of a sparse matrix's tuples that sends few ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reorder.tuples.cost import metric_bound, wire_cost
from reorder.tuples.groups import order_all
from reorder.tuples.matrix import Entries
from reorder.tuples.request import Storage, TupleRequest, WireRequest, stored_tuples
from reorder.tuples.tuple_problem import Int64Array
from traces.base.checks import check_seed
from traces.base.progress import Progress
from traces.base.reprs import OneLineRepr
from traces.base.workers import Workers


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
