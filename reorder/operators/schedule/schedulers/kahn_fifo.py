"""kahn-fifo: Kahn's algorithm with a queue, as TensorFlow Lite orders operators."""

from __future__ import annotations

from reorder.operators.schedule import constructive
from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem


@SCHEDULERS.register("kahn-fifo", summary="Kahn's algorithm with a queue, as TensorFlow Lite orders operators")
def kahn_fifo(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    """See Scheduler."""
    return SearchResult.of(problem, constructive.kahn(problem))
