"""Among orders of the least peak, one whose buffers fit the smallest arena; and what no order's arena can be below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reorder.arena.base import ALLOCATORS, PlacementTask
from reorder.base import Progress
from reorder.schedule.arena import arena_of
from reorder.schedule.base import SCHEDULERS, ScheduleTask
from reorder.schedule.improve import Effort, local_search
from reorder.schedule.operator_problem import OperatorProblem, Order


def rounded_problem(problem: OperatorProblem, alignment: int) -> OperatorProblem:
    """Return the problem with every buffer as large as the room it takes where offsets are aligned."""
    nodes = tuple(
        replace(node, outputs=tuple(replace(t, n_bytes=-(-t.n_bytes // alignment) * alignment) for t in node.outputs))
        for node in problem.graph.nodes
    )
    return OperatorProblem(problem.graph.with_(nodes=nodes), problem.work_bytes)


def aligned_order(problem: OperatorProblem, alignment: int, task: ScheduleTask) -> tuple[Order, int]:
    """Return (the order of least peak where every buffer takes its aligned room, a height no order's arena is below).

    Of the buffers that are live together all but the highest take their room: the bound is that peak less the most that
    one buffer leaves unused. It holds for every placement of every order.
    """
    entry = SCHEDULERS["best-first"]
    found = entry.item(rounded_problem(problem, alignment), task, entry.make_parameters({}))
    return found.order, found.lower_bound_bytes - int((-problem.graph.buffer_bytes % alignment).max())


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
