"""Commutative data reordering: the order of a sparse matrix's tuples that sends few ones (Feinberg et al. 2020).

``order_tuples(matrix, value_format="fp16", stride=128)`` permutes tuples inside strides; ids travel with their values,
so the matrix stays the same and no index is added. Conventions: docs/concepts/tuple-orders.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import reorder.cdr.routing  # noqa: F401 - registers its methods
from reorder.cdr.cost import field_edges, field_ones, objective_cost
from reorder.cdr.ell import EllProblem, ell_bound, order_ell
from reorder.cdr.matrix import LAYOUTS, Entries, entries_of, id_field, stride_bounds, value_field
from reorder.cdr.methods import TUPLE_METHODS, Progress, metric_bound
from reorder.cdr.parallel import order_all
from reorder.cdr.pareto import Tradeoff, pareto_orders
from reorder.cdr.problem import Field, Int64Array, Problem
from reorder.cdr.runs import order_run_tuples
from reorder.cdr.separated import SeparatedOrder, popcount_separated
from reorder.cdr.windows import BothOrder, order_both, still_windows
from traces.base.errors import InputError, unknown_name

__all__ = [
    "LAYOUTS",
    "TUPLE_METHODS",
    "BothOrder",
    "SeparatedOrder",
    "Tradeoff",
    "TupleOrder",
    "order_both",
    "order_run_tuples",
    "order_tuples",
    "pareto_orders",
    "popcount_separated",
    "still_windows",
]


@dataclass(frozen=True, eq=False)
class TupleOrder:
    """An order of the stored entries of a matrix and what it sends.

    positions: int64[N], new position -> old position in the storage order of the layout.
    ones_values, ones_ids: ones on the wires, DBI wires counted where the encoder has them (ids: row and column ids).
    original_ones_values, original_ones_ids: the same for the order given. cost, original_cost: the objective.
    toggles: of all arrays, each sent alone, where the metric is toggles or energy; else None.
    lower_bound: no order inside these strides has a lower cost (None: not asked for, or none is known:
        methods.metric_bound).
    zeroed: stored non-zeros that are zero in the format. parameters: what was asked for.
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
    method: str
    parameters: Mapping[str, Any]
    entries: Entries

    @property
    def ones(self) -> int:
        """Ones of values and ids."""
        return self.ones_values + self.ones_ids

    @property
    def original_ones(self) -> int:
        """Ones of values and ids in the order given."""
        return self.original_ones_values + self.original_ones_ids

    def matrix(self) -> Any:
        """Return the SciPy matrix (csr, csc or coo) whose stored order is this order; it equals the given matrix."""
        import scipy.sparse

        e, p = self.entries, self.positions
        major, minor, values = e.major[p], e.minor[p], e.values[p]
        if e.layout == "coo":
            return scipy.sparse.coo_matrix((values, (major, minor)), shape=e.shape)
        n_major = e.shape[0] if e.layout == "csr" else e.shape[1]
        pointers = np.concatenate(([0], np.cumsum(np.bincount(major, minlength=n_major))))
        kind = scipy.sparse.csr_matrix if e.layout == "csr" else scipy.sparse.csc_matrix
        return kind((values, minor, pointers), shape=e.shape)


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
    rows: str = "packed",
    method: str = "local-search",
    effort: float = 1.0,
    seed: int = 0,
    workers: int = 1,
    bound: bool = True,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    **parameters: Any,
) -> TupleOrder:
    """Order the tuples of a sparse matrix so that sending its arrays costs little. The matrix itself does not change.

    matrix: SciPy sparse or dense (its non-zeros); the stored order is the order to start from, sorted or not. Stored
        zeros stay. value_format: of traces.formats. id_bits: 8, 16 or 32. layout: csr, csc, coo,
        or ell (local-search and greedy; positions refer to the csr order, `.matrix()` is csr).
    stride: tuples that may change places, 'row', or 'matrix' (coo). stride_restart: 'row' starts strides at each row,
        'continuous' runs them on. rows: 'packed', or 'padded' to whole blocks with zeros.
    encoder: a chain of Base+XOR and DBI-DC; 'raw' and 'dbi-dc' for metric 'toggles'. block_bytes: bases are sent at
        each block start; base_interval replaces it: bytes between bases, 'row' (once per row) or 'matrix' (once).
    objective: 'joint', 'values' or 'ids'. metric: 'ones' (terminated buses), 'toggles' (unterminated; each array alone
        on `bus_bytes` lanes, default the width of its elements, wires at 0 before) or 'energy' by energy_pj =
        (per one, per rising edge), of a part. Under Base+XOR ones stand in for toggles and energy in the search.
    method: of TUPLE_METHODS; `parameters` are its own. effort: work of 'local-search' (1 is about 0.2 ms a tuple). The
        result depends on the seed, not on `workers`. bound: also compute the spanning-tree bound. checkpoint: file that
        lets a killed run continue.

    Returns a TupleOrder. Raises InputError saying which entry, id, stride or name cannot be used.
    """
    if rows not in ("packed", "padded"):
        raise unknown_name("row storage", rows, ("packed", "padded"))
    entry = TUPLE_METHODS[method]
    if method == "local-search":
        parameters = {"effort": effort, **parameters}
    own = entry.make_parameters(parameters)
    if block_bytes < 1:
        raise InputError(f"block_bytes is {block_bytes}: a block has at least one byte")
    interval: int | str | None = block_bytes if base_interval is None else base_interval
    if isinstance(interval, str):
        if interval not in ("row", "matrix"):
            raise InputError(f"base_interval is {interval!r}: a number of bytes, 'row' or 'matrix'")
        interval = None if interval == "matrix" else interval
    entries = entries_of(matrix, "csr" if layout == "ell" else layout)
    values, report = value_field(entries.values, value_format)
    names = {"csr": ("column ids",), "ell": ("column ids",), "csc": ("row ids",), "coo": ("row ids", "column ids")}[
        layout
    ]
    ids = (entries.major, entries.minor) if layout == "coo" else (entries.minor,)
    fields = (values, *(id_field(name, column, id_bits) for name, column in zip(names, ids, strict=True)))
    if layout == "ell":
        if metric != "ones" or "base-xor" not in encoder or "transition" in encoder:
            raise InputError("layout 'ell' is ordered for ones under base-xor or base-xor+dbi-dc")
        if isinstance(interval, str) or (interval is not None and interval % 4):
            raise InputError(
                "layout 'ell' needs bases at whole elements: base_interval in multiples of 4 bytes, or 'matrix'"
            )
        if values.element_bits < 8:
            raise InputError("layout 'ell' has no order for int4: two values of different rows share a byte")
        return _order_ell(
            entries, fields, encoder, interval, objective, stride, stride_restart, method, own, report.zeroed, bound
        )
    bounds = stride_bounds(entries.major, stride, stride_restart, rows_may_mix=layout == "coo")
    if rows == "padded" and layout == "coo":
        raise InputError("coo has no rows to pad: use rows='packed'")
    problem = Problem(
        fields, bounds, entries.major, encoder, interval, objective, metric, rows == "padded", bus_bytes, energy_pj
    )
    given = np.arange(problem.size, dtype=np.int64)
    found = order_all(
        problem, method, seed=seed, parameters=own, workers=workers, progress=progress, checkpoint=checkpoint
    )
    if method == "local-search":  # strides do not look ahead, so the sum may rise although each stride falls
        for other in (order_all(problem, "greedy"), given):
            if objective_cost(problem, other) < objective_cost(problem, found):
                found = other
    limit = metric_bound(problem, found) if bound else None
    edges = metric != "ones"
    return TupleOrder(
        found,
        field_ones(problem, values, found),
        sum(field_ones(problem, f, found) for f in fields[1:]),
        field_ones(problem, values, given),
        sum(field_ones(problem, f, given) for f in fields[1:]),
        objective_cost(problem, found),
        objective_cost(problem, given),
        sum(field_edges(problem, f, found)[0] for f in fields) if edges else None,
        sum(field_edges(problem, f, given)[0] for f in fields) if edges else None,
        limit,
        report.zeroed,
        method,
        {"stride": stride, "value_format": value_format, "seed": seed, **parameters},
        entries,
    )


def _order_ell(
    entries: Entries,
    fields: tuple[Field, ...],
    encoder: str,
    interval: int | None,
    objective: str,
    stride: int | str,
    restart: str,
    method: str,
    own: Any,
    zeroed: int,
    bound: bool,
) -> TupleOrder:
    counted = {"joint": (0, 1), "values": (0,), "ids": (1,)}
    if objective not in counted:
        raise unknown_name("objective", objective, counted)
    problem = EllProblem(fields, counted[objective], entries.major, entries.shape[0], "dbi" in encoder, interval)
    effort = own.effort if own else 1.0
    bounds = stride_bounds(entries.major, stride, restart, rows_may_mix=False)
    limit: float | None = None
    if entries.shape[0] == 1:  # one row: memory order is the row's own
        plain = Problem(fields, bounds, entries.major, encoder, interval, objective)
        found = order_all(plain, method, parameters=own)
        limit = metric_bound(plain, found) if bound else None
    else:
        found = order_ell(problem, stride, restart, method, effort)
        limit = float(ell_bound(problem, bounds)) if bound else None
    given = np.arange(len(found), dtype=np.int64)
    before, after = problem.field_ones(given), problem.field_ones(found)
    costs = [sum(ones[k] for k in counted[objective]) for ones in (after, before)]
    if costs[0] > costs[1]:
        found, after, costs = given, before, [costs[1], costs[1]]
    parameters = {"stride": stride, "layout": "ell"}
    return TupleOrder(
        found,
        after[0],
        after[1],
        before[0],
        before[1],
        costs[0],
        costs[1],
        toggles=None,
        original_toggles=None,
        lower_bound=limit,
        zeroed=zeroed,
        method=method,
        parameters=parameters,
        entries=entries,
    )
