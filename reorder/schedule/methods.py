"""The registered scheduling methods."""

from __future__ import annotations

from dataclasses import dataclass

from reorder.schedule import constructive
from reorder.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.schedule.cpsat import CpSatParameters, cp_sat
from reorder.schedule.fusion import fuse
from reorder.schedule.problem import Order, Problem
from reorder.schedule.search import best_first, best_simple_order
from reorder.schedule.serenity import SerenityParameters, serenity


def _plain(problem: Problem, order: Order) -> SearchResult:
    peak = int(problem.costs.peak(order))
    return SearchResult(order, peak, int(problem.single_operator_bytes.max()), 0)


@SCHEDULERS.register("file", summary="the order of the file")
def _file(problem: Problem, task: ScheduleTask, parameters: None) -> SearchResult:
    return _plain(problem, constructive.file_order(problem))


@SCHEDULERS.register("kahn-fifo", summary="Kahn's algorithm with a queue, as TensorFlow Lite orders operators")
def _kahn_fifo(problem: Problem, task: ScheduleTask, parameters: None) -> SearchResult:
    return _plain(problem, constructive.kahn(problem))


@SCHEDULERS.register("kahn-lifo", summary="Kahn's algorithm with a stack")
def _kahn_lifo(problem: Problem, task: ScheduleTask, parameters: None) -> SearchResult:
    return _plain(problem, constructive.kahn(problem, stack=True))


@SCHEDULERS.register("greedy", summary="always the ready operator that leaves the fewest live bytes")
def _greedy(problem: Problem, task: ScheduleTask, parameters: None) -> SearchResult:
    return _plain(problem, constructive.greedy(problem))


@dataclass(frozen=True)
class SearchParameters:
    """max_states: states to expand and to hold; None: what fits in 1.5 GB."""

    max_states: int | None = None


@SCHEDULERS.register(
    "best-first", summary="exact search by peak with safe moves, from both ends", parameters=SearchParameters
)
def _best_first(problem: Problem, task: ScheduleTask, parameters: SearchParameters) -> SearchResult:
    return best_first(problem, max_states=parameters.max_states, deadline=task.deadline, progress=task.progress)


@SCHEDULERS.register(
    "large", summary="fuse operators without losing the optimum, then best-first", parameters=SearchParameters
)
def _large(problem: Problem, task: ScheduleTask, parameters: SearchParameters) -> SearchResult:
    fused = fuse(problem)
    start = best_simple_order(problem)
    found = best_first(
        fused.problem,
        lower_bound_bytes=int(problem.single_operator_bytes.max()),
        max_states=parameters.max_states,
        deadline=task.deadline,
        progress=task.progress,
    )
    order = fused.expand(found.order)
    peak = int(problem.costs.peak(order))
    if int(problem.costs.peak(start)) < peak:
        order, peak = start, int(problem.costs.peak(start))
    lower = min(found.lower_bound_bytes, peak)
    details = {"operators_after_fusion": fused.problem.graph.n_nodes}
    return SearchResult(order, peak, lower, found.states, found.truncated, details)


SCHEDULERS.register(
    "serenity",
    summary="Ahn et al. 2020: dynamic programme, divide and conquer, adaptive soft budgeting",
    parameters=SerenityParameters,
)(serenity)
SCHEDULERS.register(
    "cp-sat", summary="constraint model for OR-Tools, an independent check", parameters=CpSatParameters
)(cp_sat)
