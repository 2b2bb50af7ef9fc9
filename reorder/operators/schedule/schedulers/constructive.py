"""The orders made without search, as schedulers."""

from __future__ import annotations

from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem


@SCHEDULERS.register("file", summary="the order of the file")
def _file(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, problem.file_order())


@SCHEDULERS.register("greedy", summary="always the ready operator that leaves the fewest live bytes")
def _greedy(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, problem.greedy())


@SCHEDULERS.register("kahn-fifo", summary="Kahn's algorithm with a queue, as TensorFlow Lite orders operators")
def _kahn_fifo(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, problem.kahn())


@SCHEDULERS.register("kahn-lifo", summary="Kahn's algorithm with a stack")
def _kahn_lifo(problem: OperatorProblem, task: ScheduleTask, parameters: None) -> SearchResult:
    return SearchResult.of(problem, problem.kahn(stack=True))
