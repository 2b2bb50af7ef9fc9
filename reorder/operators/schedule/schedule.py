"""`schedule`: the order of an operator graph that needs the least memory, arena or traffic."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.base import Progress
from reorder.operators.arena.base import ALLOCATORS, Placement, PlacementTask
from reorder.operators.rewriting.rewrite import rewrite_graph
from reorder.operators.schedule.arena import ALIGNMENT, arena, own_alignment
from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.improve import TRAFFIC, aligned_order, least_arena, local_search
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.traffic import OffchipTraffic, traffic_costs
from traces.base.checks import check_seed
from traces.base.errors import InputError, shown, unknown_name
from traces.base.reprs import OneLineRepr
from traces.operators.opgraph import OpGraph

OBJECTIVES = ("peak", "arena", "traffic")


@dataclass(frozen=True, eq=False)
class Schedule(OneLineRepr):
    """A schedule and what it costs. ``order[k]`` is the k-th operator to run, an index into ``graph.nodes``.

    graph: the graph that is scheduled: the one given, or the rewritten one.
    lower_bound_bytes: no order of `graph` has a smaller peak. proved: no order is better by the objective (peak: the
    bound is reached; arena: the arena is no larger than its bound; traffic: there is none).
    arena_lower_bound_bytes: no order has a smaller arena at this `alignment`.
    offsets: int64[buffers], where the allocator places each of `graph.buffers`.
    traffic: off-chip traffic at `onchip_bytes`, None without it. states: work of the search.
    truncated: a wall-clock limit ended a search. details: what the method reports.
    """

    graph: OpGraph
    order: npt.NDArray[np.int64]
    objective: str
    method: str
    peak_bytes: int
    lower_bound_bytes: int
    arena_bytes: int
    arena_lower_bound_bytes: int
    alignment: int
    offsets: npt.NDArray[np.int64]
    traffic: OffchipTraffic | None
    proved: bool
    states: int
    truncated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        return {
            "graph": self.graph.name, "operators": len(self.order), "peak bytes": self.peak_bytes,
            "at least": self.lower_bound_bytes, "arena bytes": self.arena_bytes, "off-chip bytes": self.traffic_bytes,
            "method": self.method, "objective": self.objective, "proved": self.proved,
            "truncated": self.truncated or None,
        }  # fmt: skip

    @property
    def traffic_bytes(self) -> int | None:
        return None if self.traffic is None else self.traffic.total_bytes

    @property
    def names(self) -> list[str]:
        return [self.graph.nodes[v].name for v in self.order.tolist()]


def schedule(
    graph: OpGraph,
    *,
    objective: str = "peak",
    method: str = "best-first",
    rewrite: Sequence[str] | str = (),
    onchip_bytes: int | None = None,
    block_bytes: int = 256,
    allocator: str = "exact",
    alignment: int | str = ALIGNMENT,
    budget_bytes: int | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    evaluations: int = 5_000,
    progress: Progress | None = None,
    **parameters: Any,
) -> Schedule:
    """Order the operators of a graph.

    objective: 'peak' (least memory), 'arena' (among orders of the least peak found, the smallest arena under
        `allocator`) or 'traffic' (fewest off-chip bytes at `onchip_bytes`, never more than the file's or Kahn's order).
        Where the arena of the least-peak order is larger than its peak, 'peak' looks for a smaller one too, unless the
        allocator is a rule.
    alignment: of every offset in the arena; 'graph': the largest power of two up to 64 that divides every size.
    time_limit_s: stop then with the best found and the bound proved; without it, the number of steps alone decides.
    method, parameters, rewrite, budget_bytes, evaluations: as of edgewatt.operators.energy.schedule.

    Raises InputError for a budget that one operator alone exceeds (naming it) or that no order meets, and an on-chip
    memory that is missing or smaller than one block.
    """
    if objective not in OBJECTIVES:
        raise unknown_name("objective", objective, OBJECTIVES)
    if not isinstance(graph, OpGraph):
        raise InputError(
            f"schedule needs an operator graph, not {type(graph).__name__}: load the model with kind='opgraph'"
        )
    if objective == "traffic" and onchip_bytes is None:
        raise InputError("objective='traffic' needs onchip_bytes (--onchip-bytes): the size of the on-chip memory")
    if time_limit_s is not None and not time_limit_s > 0:
        raise InputError(f"time_limit_s must be above 0, not {time_limit_s}")
    if budget_bytes is not None and budget_bytes < 1:
        raise InputError(f"budget_bytes must be at least 1, not {budget_bytes}")
    if isinstance(alignment, str):
        if alignment != "graph":
            raise InputError(f"alignment is {shown(alignment)}: a number of bytes, or 'graph'")
    elif isinstance(alignment, bool) or not 0 < alignment <= 2**20:
        raise InputError(f"alignment is {shown(alignment)}: a whole number of bytes from 1 to 2^20")
    if evaluations < 0:
        raise InputError(f"evaluations must be at least 0, not {evaluations}")
    check_seed(seed)
    entry = SCHEDULERS[method]
    ALLOCATORS[allocator]  # an unknown name is refused before the work starts
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    problem = OperatorProblem(rewrite_graph(graph, rewrite))
    problem.check_room_for_arena()
    step = own_alignment(problem.graph) if isinstance(alignment, str) else alignment
    _check_budget(problem, budget_bytes, rewritten=bool(rewrite))
    until = deadline if objective == "traffic" else None
    costs = None if onchip_bytes is None else traffic_costs(problem, onchip_bytes, block_bytes, until)
    task = ScheduleTask(deadline, seed, progress)
    result = entry.item(problem, task, entry.make_parameters(parameters))
    order, proved, truncated = result.order, result.proved, result.truncated
    limits: dict[str, Any] = {"evaluations": evaluations, "seed": seed, "deadline": deadline, "progress": progress}
    floor = result.lower_bound_bytes  # of the arena

    def place(order: npt.NDArray[np.int32], goal: int | None) -> Placement:
        return arena(problem, order, allocator, alignment=step, task=PlacementTask(goal, deadline))

    placed = place(order, result.peak_bytes)
    searches = ALLOCATORS[allocator].item.rule is None  # a rule's height says nothing of what an order needs
    if placed.height > result.peak_bytes and objective in ("peak", "arena") and searches and not result.given:
        aligned, bound = aligned_order(problem, order, step, task)
        floor = max(floor, bound)
    else:
        aligned = None
    if objective == "arena" or (placed.height > floor and aligned is not None):
        others = ([] if aligned is None else [aligned], problem.simple_orders())
        starts = [o for o in (result.order, *chain(*others)) if problem.costs.peak(o) <= result.peak_bytes]
        order, late = least_arena(
            problem, starts, allocator, goal=floor, peak_cap=result.peak_bytes, alignment=step, **limits
        )
        truncated = truncated or late
    elif objective == "traffic":
        starts = [result.order, *problem.simple_orders()]
        if budget_bytes is not None:
            starts = [o for o in starts if problem.costs.peak(o) <= budget_bytes] or [result.order]
        order, total, late = local_search(problem, costs, TRAFFIC, starts, goal=0, peak_cap=budget_bytes, **limits)
        proved, truncated = total == 0, truncated or late
    peak = int(problem.costs.peak(order))
    if order is not result.order:
        placed = place(order, max(peak, floor))
    if placed.height > max(peak, floor):
        lowest = place(order, None)  # the capacity sought cannot be met: as low as can be
        placed = min(placed, lowest, key=lambda at: at.height)
    if objective == "arena":
        proved = placed.height == floor
    if budget_bytes is not None and peak > budget_bytes:
        raise _over_budget(problem, result, budget_bytes, rewritten=bool(rewrite))
    return Schedule(
        graph=problem.graph,
        order=order.astype(np.int64),
        objective=objective,
        method=method,
        peak_bytes=peak,
        lower_bound_bytes=result.lower_bound_bytes,
        arena_bytes=placed.height,
        arena_lower_bound_bytes=min(floor, placed.height),
        alignment=step,
        offsets=placed.offset,
        traffic=None if costs is None else OffchipTraffic(*costs.traffic(order)),
        proved=proved,
        states=result.states,
        truncated=truncated,
        details=result.details,
    )


def _check_budget(problem: OperatorProblem, budget_bytes: int | None, *, rewritten: bool) -> None:
    if budget_bytes is None:
        return
    needs = problem.single_operator_bytes
    v = int(needs.argmax())
    if needs[v] > budget_bytes:
        graph = problem.graph
        way = (
            "it is rewritten already: only a smaller operator can help"
            if rewritten
            else ("only rewriting can help (see `rewrite`)")
        )
        raise InputError(
            f"{graph.source or graph.name}: operator {graph.nodes[v].name!r} alone needs {needs[v]} bytes for its "
            f"inputs and outputs, more than the budget of {budget_bytes}: {way}"
        )


def _over_budget(problem: OperatorProblem, result: SearchResult, budget_bytes: int, *, rewritten: bool) -> InputError:
    where = problem.graph.source or problem.graph.name
    if result.lower_bound_bytes > budget_bytes:
        way = "" if rewritten else " (rewriting may lower this, see `rewrite`)"
        return InputError(
            f"{where}: every order needs at least {result.lower_bound_bytes} bytes, more than the budget of "
            f"{budget_bytes}{way}"
        )
    way = "search longer" if rewritten else "search longer or rewrite"
    return InputError(
        f"{where}: the best order found needs {result.peak_bytes} bytes, more than the budget of {budget_bytes}; it is "
        f"not proved that none fits (at least {result.lower_bound_bytes} bytes are needed): {way}"
    )
