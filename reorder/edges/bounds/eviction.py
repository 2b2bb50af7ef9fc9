"""The best evictions for a given order: MIN minimises reads only, this minimises reads plus writes.

Between two consecutive accesses a value is either kept or not. With C = M - 1, a step of connection (a, b) leaves C - 2
slots for values kept across it. Not keeping costs a read, plus a write if the value was updated at the earlier access
and is updated again at the later one; among the accesses from a value's last update on, one write is due if any
interval is not kept (none for an output, whose one write is due anyway). That is an integer program with one variable
per contested interval and, per computed value, one for that write; see docs/concepts/bounds.md. Its relaxation is a
flow along time but for those writes, so it is nearly integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.iomodel.counts as kernel
from traces.base.errors import InputError, MissingExtraError
from traces.networks.checks import checked_memory
from traces.networks.network import Network
from traces.networks.processing import processing_arrays

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EvictionBound:
    """The least I/Os of an order over all evictions lie between the two; `proved` says they are equal.

    total: reached by some evictions (MIN's count if the program found nothing better). lower_bound: no evictions do
    better with this order.
    """

    total: int
    lower_bound: int
    proved: bool


@dataclass(frozen=True)
class Intervals:
    """Intervals between accesses that compete for slots. start, end: int64[K], the steps [start, end) crossed.

    extra: int64[K] cost of not keeping (1 or 2). group: int64[K], the neuron whose single write it may cause, or -1.
    capacity: slots for kept values. n_steps: contested steps. fixed: I/Os that every choice of evictions has.
    """

    start: Int64Array
    end: Int64Array
    extra: Int64Array
    group: Int64Array
    capacity: int
    n_steps: int
    fixed: int


def contested_intervals(network: Network, order: Any, memory: int) -> Intervals:
    """Return the intervals that cannot all be kept, by runs of equal steps. O(W log W)."""
    sources, targets = processing_arrays(network, order)
    w = len(sources)
    positions = np.arange(2 * w)
    following = kernel.find_next_uses(sources, targets, network.is_output.view(np.uint8)).astype(np.int64)
    first = positions[following < 2 * w]
    then = following[first]
    low, high = first // 2 + 1, then // 2  # the steps strictly between: [low, high)
    crossing = low < high
    first, then, low, high = first[crossing], then[crossing], low[crossing], high[crossing]
    load = np.cumsum(np.bincount(low, minlength=w + 1) - np.bincount(high, minlength=w + 1))[:w]
    capacity = checked_memory(memory) - 3
    contested = load > capacity
    place = np.concatenate(([0], np.cumsum(contested)))
    start, end = place[low], place[high]
    kept = start < end
    first, then, start, end = first[kept], then[kept], start[kept], end[kept]
    neuron = np.where(first % 2, targets[first // 2], sources[first // 2])
    updated_again = then % 2 == 1  # a later access as target: all before it were updates too
    may_write = ~updated_again & (network.in_degree[neuron] > 0) & ~network.is_output[neuron]
    computed_outputs = int((network.in_degree[network.outputs] > 0).sum())
    fixed = w + int(network.touched.sum()) + computed_outputs
    return Intervals(
        start, end, 1 + updated_again.astype(np.int64), np.where(may_write, neuron, -1), capacity,
        int(contested.sum()), fixed,
    )  # fmt: skip


def optimal_eviction(
    network: Network, order: Any, *, memory: int, time_limit_s: float = 60, relax: bool = False
) -> EvictionBound:
    """Return the least reads plus writes over all evictions for this order, or bounds on it when time runs out.

    relax: solve the linear relaxation only; its value, rounded up, is the lower bound (for large orders).
    Raises InputError as count_io does.
    """
    try:
        from ortools.linear_solver import pywraplp
    except ImportError as error:
        raise MissingExtraError("ortools", "exact") from error

    contested = contested_intervals(network, order, memory)
    upper = _min_total(network, order, memory)
    if not len(contested.start):
        return EvictionBound(contested.fixed, contested.fixed, True)
    solver = pywraplp.Solver.CreateSolver("GLOP" if relax else "SCIP")
    solver.SetTimeLimit(max(1, int(1000 * min(time_limit_s, 1e6))))  # 0 is none
    # Row i says: values kept across step i, plus slots left free, are C - 2. Less row i - 1, each value is in two rows.
    free = [solver.NumVar(0, contested.capacity, "") for _ in range(contested.n_steps)]
    rows = []
    for step in range(contested.n_steps):
        bound = contested.capacity if step == 0 else 0
        row = solver.Constraint(bound, bound)
        row.SetCoefficient(free[step], 1)
        if step:
            row.SetCoefficient(free[step - 1], -1)
        rows.append(row)
    goal = solver.Objective()
    goal.SetMinimization()
    writes: dict[int, Any] = {}
    constant = contested.fixed
    for start, end, extra, group in zip(
        contested.start.tolist(),
        contested.end.tolist(),
        contested.extra.tolist(),
        contested.group.tolist(),
        strict=True,
    ):
        keep = solver.NumVar(0, 1, "") if relax else solver.IntVar(0, 1, "")
        rows[start].SetCoefficient(keep, 1)
        if end < contested.n_steps:
            rows[end].SetCoefficient(keep, -1)
        goal.SetCoefficient(keep, -extra)
        constant += extra
        if group >= 0:
            if group not in writes:
                writes[group] = solver.NumVar(0, 1, "")
                goal.SetCoefficient(writes[group], 1)
            solver.Add(writes[group] + keep >= 1)
    status = solver.Solve()
    if status == pywraplp.Solver.INFEASIBLE:
        raise InputError("the eviction program is infeasible")  # cannot happen: keeping nothing is feasible
    solved = status in (
        pywraplp.Solver.OPTIMAL,
        pywraplp.Solver.FEASIBLE,
    )  # else no figure of the solver's means anything
    value = goal.Value() if solved else np.inf
    if relax:
        lower = int(np.ceil(constant + value - 1e-6)) if status == pywraplp.Solver.OPTIMAL else contested.fixed
        return EvictionBound(upper, max(lower, contested.fixed), lower == upper)
    proved = goal.BestBound() if solved else -np.inf
    lower = max(contested.fixed, int(np.ceil(constant + proved - 1e-6)) if np.isfinite(proved) else 0)
    total = min(upper, round(constant + value)) if np.isfinite(value) else upper
    return EvictionBound(total, min(lower, total), lower >= total)


def _min_total(network: Network, order: Any, memory: int) -> int:
    sources, targets = processing_arrays(network, order)
    outputs = network.is_output.astype(np.uint8)
    counts = kernel.count(sources, targets, network.n_neurons, outputs, memory, kernel.MIN, kernel.LITERAL)
    return len(sources) + int(counts[0] + counts[1] + counts[2])
