"""greedy: always the ready operator that leaves the fewest live bytes."""

from __future__ import annotations

from reorder.schedule import constructive
from reorder.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.schedule.operator_problem import OperatorProblem


@SCHEDULERS.register("greedy", summary="always the ready operator that leaves the fewest live bytes")
def greedy(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    """See Scheduler."""
    return SearchResult.of(problem, constructive.greedy(problem))
