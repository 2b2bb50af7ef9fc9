"""file: the order of the file."""

from __future__ import annotations

from reorder.schedule import constructive
from reorder.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.schedule.operator_problem import OperatorProblem


@SCHEDULERS.register("file", summary="the order of the file")
def file(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    """See Scheduler."""
    return SearchResult.of(problem, constructive.file_order(problem))
