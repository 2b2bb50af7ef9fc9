"""Best-first bottleneck search by peak, from both ends: the exact default.

States are downsets (sets of executed operators), taken in order of the smallest peak of a path to them; a complete
order that is taken first is optimal. Three things keep the search small:

* **Safe moves.** Let live(S) be the bytes live after the downset S has run. A buffer is live while some writer has run
  and some user has not, so live is submodular: the more has run, the less an operator adds. Hence, if from S one can
  run the operators X without passing a peak that cannot be avoided anyway, and no downset of X leaves fewer bytes than
  X itself, then X may be run at once: every completion T of S can be exchanged for T with X first, and at each of its
  points live(T + X) <= live(T) + live(X) - live(T * X) <= live(T). Single operators that do not add bytes, and chains
  (each operator made ready by the one before) that end no higher than they began, meet the condition.
* **Looking one operator ahead.** If every next operator needs more than the peak so far, the least is unavoidable.
* **Both ends.** One direction often needs a thousand times fewer states. Both run in turn.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import cython_ext.schedule.schedule as kernel
from reorder.operators.schedule.base import ScheduleTask, SearchResult
from reorder.operators.schedule.bounds import lower_bound
from reorder.operators.schedule.operator_problem import OperatorProblem, Order

SLICE_WORK = 50_000  # states x operators between two looks at the clock and at Ctrl-C
QUICK_STATES = 8192  # of the first search
DESCENT_STATES = 10_000  # of each budgeted descent
MANY_OPERATORS = 512  # beyond, states have hundreds of successors: descents follow the best few, and come first
WORK = 4_000_000_000  # successors x operators after which a search gives up, unless max_states says otherwise
MEMORY_BYTES = 1_500_000_000  # held by all states of a search, unless max_states says otherwise


class _Search:
    """Best order, bound and work so far, and the three ways to improve them."""

    def __init__(
        self, problem: OperatorProblem, task: ScheduleTask, max_states: int | None, start: Order | None
    ) -> None:
        self.problem, self.task = problem, task
        n = problem.graph.n_nodes
        self.most_generated = kernel.NEVER if max_states is not None else WORK // n
        self.max_states = min(20_000_000, MEMORY_BYTES // (n // 8 + 100)) if max_states is None else max_states
        starts = problem.simple_orders() if start is None else [start]
        self.peak, self.best = min(((int(problem.costs.peak(order)), order) for order in starts), key=lambda at: at[0])
        self.floor = min(int(problem.single_operator_bytes.max()), self.peak)
        self.states = self.generated = 0
        self.truncated = False

    @property
    def over(self) -> bool:
        return self.floor >= self.peak or self.truncated or self.generated >= self.most_generated

    def _run(self, search: Any, states: int) -> int:
        """Expand up to `states` states in slices; return the last status."""
        status, done, most = kernel.RUNNING, 0, max(4, SLICE_WORK // self.problem.graph.n_nodes)
        while status == kernel.RUNNING and done < states and not self.over:
            before, generated = search.n_expanded, search.n_generated
            status = search.best_first(min(most, states - done))
            self.generated += search.n_generated - generated
            done += search.n_expanded - before
            self.states += search.n_expanded - before
            if self.task.progress is not None:
                self.task.progress(self.states, None, f"peak {self.peak}, at least {self.floor}")
            self.truncated = self.task.deadline is not None and time.monotonic() > self.task.deadline
        if status == kernel.NO_MEMORY:
            raise MemoryError(f"{self.problem.graph.name}: out of memory after {self.states} states: lower max_states")
        return int(status)

    def _take(self, search: Any, backwards: bool) -> None:
        if search.goal_peak is None:
            return
        order = search.order()
        if backwards:
            order = np.ascontiguousarray(len(order) - 1 - order[::-1], np.int32)
        peak = int(self.problem.costs.peak(order))
        if peak < self.peak:
            self.best, self.peak = order, peak

    def exact(self, states: int) -> None:
        """Best-first from both ends in turn, `states` in all."""
        held = max(2, min(self.max_states, states * 64) // 2)
        searches = [
            (kernel.Search(graph, self.floor, self.peak, held), backwards)
            for graph, backwards in ((self.problem.reversed, True), (self.problem.compiled, False))
        ]
        status = [kernel.RUNNING, kernel.RUNNING]
        until, turn = self.states + states, 64
        while not self.over and self.states < until and kernel.RUNNING in status:
            for i, (search, backwards) in enumerate(searches):
                if status[i] != kernel.RUNNING:
                    continue
                status[i] = self._run(search, min(turn, until - self.states))
                self._take(search, backwards)
                if status[i] in (kernel.EXHAUSTED, kernel.SOLVED):  # nothing below the best known peak is left
                    self.floor = self.peak
                self.floor = max(self.floor, min(self.peak, int(search.lower_bound)))
                if self.over:
                    return
            turn *= 2

    def descend(self, states: int) -> None:
        """Depth-first under a budget below the best peak, lowered by halves of the gap: better orders, better bound.

        Under a budget every move that fits is weighed as unavoidable, so the search runs far ahead; what it cannot
        decide within `states` states it leaves open (compare the soft budgets of Ahn et al. 2020, Algorithm 2).
        """
        children = 0 if self.problem.graph.n_nodes <= MANY_OPERATORS else 8  # beyond: no bound from descents
        share = 2
        while share <= 64 and not self.over:
            budget = max(self.floor, self.peak - 1 - (self.peak - self.floor) // share * (share < 64))
            decided = False
            for graph, backwards in ((self.problem.reversed, True), (self.problem.compiled, False)):
                search = kernel.Search(graph, budget, budget + 1, self.max_states, max_children=children)
                status = self._run(search, states)
                if status == kernel.SOLVED:
                    self._take(search, backwards)
                    decided = True
                elif status == kernel.EXHAUSTED:
                    self.floor = max(self.floor, min(self.peak, int(search.pruned_peak)))
                    decided = True
                if decided or self.over:
                    break
            if not decided:
                share *= 2


@dataclass(frozen=True)
class BestFirstParameters:
    """max_states: states to expand and to hold; None: what fits in 1.5 GB."""

    max_states: int | None = None


def best_first(
    problem: OperatorProblem, task: ScheduleTask, parameters: BestFirstParameters, *, start: Order | None = None
) -> SearchResult:
    """Search for an order of least peak; exact unless it is stopped.

    A first search of QUICK_STATES settles most networks; else cuts raise the bound, descents lower the peak, and the
    search starts again. start: an order to beat. Stopped, the result has the best order and the bound proved.
    """
    search = _Search(problem, task, parameters.max_states, start)
    max_states, deadline = search.max_states, task.deadline
    if not search.over and problem.graph.n_nodes <= MANY_OPERATORS:
        search.exact(min(QUICK_STATES, max_states))
    if not search.over and search.states < max_states:
        share = 3 if problem.graph.n_nodes <= MANY_OPERATORS else 2  # beyond, nothing else raises the bound
        until = None if deadline is None else time.monotonic() + (deadline - time.monotonic()) / share
        search.floor = lower_bound(problem, known=search.floor, enough=search.peak, deadline=until)
        search.descend(min(DESCENT_STATES, max_states))
        search.exact(max_states)
    return SearchResult(search.best, search.peak, search.floor, search.states, search.truncated)
