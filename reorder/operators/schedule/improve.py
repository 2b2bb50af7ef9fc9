"""Orders for traffic and for the arena: local search from the best simple and searched orders.

Both searches move operators within the room that their neighbours leave, as a cooling random walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

import cython_ext.schedule.schedule as kernel
from reorder.base import Progress
from reorder.operators.arena.base import ALLOCATORS, PlacementTask
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.base import ScheduleTask
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from reorder.operators.schedule.state_search import BestFirstParameters, best_first
from reorder.operators.schedule.traffic import seconds_until, too_late

START_S = 0.5  # that each start is evaluated at least, even where the time is over: one of them is the result
HEATS = (0.0, 0.02, 0.05, 0.1)  # share of its cost that a step may add at first: a walk each, which share the work
TRAFFIC = 3  # the kernel's number of this cost; 0 to 2 are the allocators'


def local_search(
    problem: OperatorProblem,
    costs: Any,
    kind: int,
    starts: Sequence[Order],
    *,
    goal: int,
    evaluations: int,
    seed: int,
    peak_cap: int | None = None,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> tuple[Order, int, bool]:
    """Return (best order, its cost, whether the deadline ended the search). Never worse than any of `starts`.

    starts: orders whose peak is at most `peak_cap`. goal: a cost that cannot be undercut. Raises InputError where the
    deadline ends before one of them is evaluated.
    """
    cap = kernel.NEVER if peak_cap is None else peak_cap
    state = np.array([seed & (2**64 - 1)], np.uint64)

    def left(least: float = 0.0) -> float | None:
        return None if deadline is None else max(least, seconds_until(deadline))

    def cost_of(order: Order) -> int:
        try:
            return int(costs.improve(order.copy(), order.copy(), kind, cap, goal, 0, 0, 1, 0.0, state, left(START_S)))
        except TimeoutError:
            return int(kernel.NEVER)

    known = [cost_of(start) for start in starts]
    if min(known) == kernel.NEVER:
        raise too_late(problem.graph)
    ranked = [starts[k] for k in np.argsort(known, kind="stable")]  # the first of equals
    best, best_cost = ranked[0].copy(), min(known)
    walks = [ranked[i % len(ranked)] for i in range(len(HEATS))]
    each = max(1, evaluations // len(HEATS))
    step = max(1, min(each, 200_000 // problem.graph.n_nodes))
    truncated = left() == 0
    for number, (start, heat) in enumerate(zip(walks, HEATS, strict=True)):
        walk, current = start.copy(), start.copy()
        done = 0
        while done < each and best_cost > goal and not truncated:
            work = min(step, each - done)
            try:
                cost = int(costs.improve(walk, current, kind, cap, goal, work, done, each, heat, state, left()))
            except TimeoutError:
                return best, best_cost, True
            done += step
            if cost < best_cost:
                best, best_cost = walk.copy(), cost
            if progress is not None:
                progress(number * each + done, len(HEATS) * each, f"{best_cost} bytes")
            truncated = left() == 0
    return best, best_cost, truncated


def aligned_order(problem: OperatorProblem, start: Order, alignment: int, task: ScheduleTask) -> tuple[Order, int]:
    """Return (the order of least peak where every buffer takes its aligned room, a height no order's arena is below).

    start: an order to beat. The bound, that peak less the most that one buffer leaves unused, holds for every order.
    """
    spare = -problem.graph.buffer_bytes % alignment
    rounded = problem.with_sizes(problem.graph.buffer_bytes + spare)
    result = best_first(rounded, task, BestFirstParameters(), start=start)
    return result.order, result.lower_bound_bytes - int(spare.max())


def least_arena(
    problem: OperatorProblem, starts: Sequence[Order], allocator: str, *, alignment: int, **limits: Any
) -> tuple[Order, bool]:
    """Return (order, whether the deadline ended the search). limits: those of `local_search`.

    An allocator without a compiled rule places the starts and what the local search finds under each such rule.
    """
    rule = ALLOCATORS[allocator].item.rule
    if rule is not None:
        order, _, late = local_search(problem, problem.costs, rule, starts, **limits)
        return order, late
    rules = sorted({e.item.rule for e in ALLOCATORS.loadable().values() if e.item.rule is not None})
    searched = (local_search(problem, problem.costs, compiled, starts, **limits) for compiled in rules)
    goal, deadline = limits["goal"], limits["deadline"]
    best: tuple[int, Order] | None = None
    late = False
    for order, _, stopped in chain(((start, 0, False) for start in starts), searched):
        late = late or stopped
        height = arena(problem, order, allocator, alignment=alignment, task=PlacementTask(goal, deadline)).height
        if best is None or height < best[0]:
            best = height, order
        if best[0] <= goal:
            break
    assert best is not None
    return best[1], late
