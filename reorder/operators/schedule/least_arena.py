"""Among orders of the least peak, one whose buffers fit the smallest arena; and what no order's arena can be below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reorder.base import Progress
from reorder.operators.arena.base import ALLOCATORS, PlacementTask
from reorder.operators.schedule.arena import arena_of
from reorder.operators.schedule.base import ScheduleTask
from reorder.operators.schedule.improve import Effort, local_search
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from reorder.operators.schedule.state_search import best_first


def aligned_order(problem: OperatorProblem, start: Order, alignment: int, task: ScheduleTask) -> tuple[Order, int]:
    """Return (the order of least peak where every buffer takes its aligned room, a height no order's arena is below).

    start: an order to beat. Of the buffers that are live together all but the highest take their room: the bound is
    that peak less the most that one buffer leaves unused. It holds for every placement of every order.
    """
    spare = -problem.graph.buffer_bytes % alignment
    rounded = problem.with_sizes(problem.graph.buffer_bytes + spare)
    result = best_first(rounded, start=start, deadline=task.deadline, progress=task.progress)
    return result.order, result.lower_bound_bytes - int(spare.max())


def least_arena(
    problem: OperatorProblem,
    starts: Sequence[Order],
    allocator: str,
    *,
    goal: int,
    effort: Effort,
    seed: int,
    peak_cap: int,
    alignment: int,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> tuple[Order, bool]:
    """Return (order, whether the deadline ended the search). starts: orders whose peak is at most `peak_cap`.

    An allocator with a compiled rule is evaluated for every order that the local search tries. Any other one places
    the starts, then what the local search finds under each compiled rule, and stops at `goal` bytes.
    """
    limits = {"goal": goal, "effort": effort, "seed": seed, "peak_cap": peak_cap, "deadline": deadline}
    rule = ALLOCATORS[allocator].item.rule
    if rule is not None:
        order, _, late = local_search(problem, problem.costs, rule, starts, progress=progress, **limits)  # type: ignore[arg-type]
        return order, late
    late = False

    def candidates() -> Iterator[Order]:
        nonlocal late
        yield from starts
        rules = sorted({e.item.rule for e in ALLOCATORS.sound().values() if e.item.rule is not None})
        for compiled in rules:
            order, _, stopped = local_search(problem, problem.costs, compiled, starts, progress=progress, **limits)  # type: ignore[arg-type]
            late = late or stopped
            yield order

    best: tuple[int, Order] | None = None
    for order in candidates():
        height = arena_of(problem, order, allocator, alignment=alignment, task=PlacementTask(goal, deadline)).n_bytes
        if best is None or height < best[0]:
            best = height, order
        if best[0] <= goal:
            break
    assert best is not None
    return best[1], late
