"""large: fuse operators without losing the optimum, then search."""

from __future__ import annotations

from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.fusion import fuse
from reorder.operators.schedule.operator_problem import OperatorProblem
from reorder.operators.schedule.schedulers.best_first import BestFirstParameters
from reorder.operators.schedule.state_search import best_first, best_simple_order


@SCHEDULERS.register(
    "large", summary="fuse operators without losing the optimum, then best-first", parameters=BestFirstParameters
)
def large(problem: OperatorProblem, task: ScheduleTask, parameters: BestFirstParameters) -> SearchResult:
    """See Scheduler. details: operators after fusion."""
    fused = fuse(problem)
    start = best_simple_order(problem)
    result = best_first(
        fused.problem,
        lower_bound_bytes=int(problem.single_operator_bytes.max()),
        max_states=parameters.max_states,
        deadline=task.deadline,
        progress=task.progress,
    )
    order = fused.expand(result.order)
    peak = int(problem.costs.peak(order))
    if int(problem.costs.peak(start)) < peak:
        order, peak = start, int(problem.costs.peak(start))
    lower = min(result.lower_bound_bytes, peak)
    details = {"operators_after_fusion": fused.problem.graph.n_nodes}
    return SearchResult(order, peak, lower, result.states, result.truncated, details)
