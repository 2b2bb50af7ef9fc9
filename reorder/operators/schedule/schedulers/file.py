"""file: the order of the file."""

from __future__ import annotations

from reorder.operators.schedule import constructive
from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem


@SCHEDULERS.register("file", summary="the order of the file")
def file(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    """See Scheduler."""
    return SearchResult.of(problem, constructive.file_order(problem))
