"""What a scheduler is asked for, what it returns, and the registry of methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reorder.base import Progress
from reorder.operators.schedule.operator_problem import OperatorProblem, Order
from traces.base.registry import Registry


@dataclass(frozen=True)
class ScheduleTask:
    """The budget of a search. deadline: value of time.monotonic() at which to stop, None: the steps decide."""

    deadline: float | None = None
    seed: int = 0
    progress: Progress | None = None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best order found, its peak, a proved lower bound of any order's peak, and the work done.

    truncated: a wall-clock limit ended the search. details: what a method reports beyond that (partitions, timings).
    given: the method has this order and no other to give.
    """

    order: Order
    peak_bytes: int
    lower_bound_bytes: int
    states: int
    truncated: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    given: bool = False

    @classmethod
    def of(cls, problem: OperatorProblem, order: Order) -> SearchResult:
        """The result of a method that makes an order without searching."""
        return cls(order, int(problem.costs.peak(order)), int(problem.single_operator_bytes.max()), 0, given=True)

    @property
    def proved(self) -> bool:
        return self.peak_bytes == self.lower_bound_bytes


Scheduler = Callable[[OperatorProblem, ScheduleTask, Any], SearchResult]
"""A method: a function of a problem, a task and its own frozen parameters."""

SCHEDULERS: Registry[Scheduler] = Registry(
    "scheduling method", "edgewatt.schedulers", folder="reorder.operators.schedule.schedulers"
)
