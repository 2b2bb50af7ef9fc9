"""best-first: the exact default (reorder.operators.schedule.state_search)."""

from __future__ import annotations

from dataclasses import dataclass

from reorder.operators.schedule import state_search
from reorder.operators.schedule.base import SCHEDULERS, ScheduleTask, SearchResult
from reorder.operators.schedule.operator_problem import OperatorProblem


@dataclass(frozen=True)
class BestFirstParameters:
    """max_states: states to expand and to hold; None: what fits in 1.5 GB."""

    max_states: int | None = None


@SCHEDULERS.register(
    "best-first", summary="exact search by peak with safe moves, from both ends", parameters=BestFirstParameters
)
def best_first(problem: OperatorProblem, task: ScheduleTask, parameters: BestFirstParameters) -> SearchResult:
    return state_search.best_first(
        problem, max_states=parameters.max_states, deadline=task.deadline, progress=task.progress
    )
