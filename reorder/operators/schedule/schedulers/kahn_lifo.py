"""kahn-lifo: Kahn's algorithm with a stack."""

from __future__ import annotations

from reorder.operators.schedule import constructive
from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem


@SCHEDULERS.register("kahn-lifo", summary="Kahn's algorithm with a stack")
def kahn_lifo(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    """See Scheduler."""
    return SearchResult.of(problem, constructive.kahn(problem, stack=True))
