"""greedy: always the ready operator that leaves the fewest live bytes."""

from __future__ import annotations

from reorder.operators.schedule import constructive
from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem


@SCHEDULERS.register("greedy", summary="always the ready operator that leaves the fewest live bytes")
def greedy(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    """See Scheduler."""
    return SearchResult.of(problem, constructive.greedy(problem))
