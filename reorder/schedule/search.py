"""Best-first bottleneck search by peak, from both ends: the exact default.

States are downsets (sets of executed operators), taken in order of the smallest peak of a path to them; a complete order
that is taken first is optimal. Three things keep the search small:

* **Safe moves.** Let live(S) be the bytes live after the downset S has run. A buffer is live while some writer has run
  and some user has not, so live is submodular: the more has run, the less an operator adds. Hence, if from S one can
  run the operators X without passing a peak that cannot be avoided anyway, and no downset of X leaves fewer bytes than
  X itself, then X may be run at once: every completion T of S can be exchanged for T with X first, and at each of its
  points live(T + X) <= live(T) + live(X) - live(T * X) <= live(T). Single operators that do not add bytes, and chains
  (each operator made ready by the one before) that end no higher than they began, meet the condition.
* **Looking one operator ahead.** If every next operator needs more than the peak so far, the least of them is
  unavoidable, and under this higher limit more moves are safe.
* **Both ends.** An order read backwards is an order of the reversed problem with the same peak (Problem.reversed), and
  one direction often needs a thousand times fewer states. Both run in turn; the first to finish proves the optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from reorder.base import Progress
from reorder.schedule import constructive
from reorder.schedule.problem import Order, Problem

SLICE_STATES = 4096  # states between two looks at the clock and at Ctrl-C


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best order found, its peak, a proved lower bound of any order's peak, and the work done.

    proved: peak and lower bound are equal. truncated: a wall-clock limit ended the search.
    """

    order: Order
    peak_bytes: int
    lower_bound_bytes: int
    states: int
    truncated: bool = False

    @property
    def proved(self) -> bool:
        """The order is optimal."""
        return self.peak_bytes == self.lower_bound_bytes


class _Direction:
    """One of the two searches."""

    def __init__(self, problem: Problem, backwards: bool, floor: int, upper: int, max_states: int) -> None:
        from cython_ext import schedule as kernel

        graph = problem.reversed if backwards else problem.compiled
        self.backwards = backwards
        self.search = kernel.Search(graph, floor, upper, max_states)
        self.status = kernel.RUNNING

    def order(self) -> Order | None:
        found = self.search.order()
        if found is None or not self.backwards:
            return found
        return np.ascontiguousarray(len(found) - 1 - found[::-1], np.int32)


def best_first(
    problem: Problem,
    *,
    lower_bound_bytes: int = 0,
    start: Order | None = None,
    max_states: int = 8_000_000,
    deadline: float | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Search for an order of least peak.

    lower_bound_bytes: a proved bound, if one is known. start: an order to beat (default: the best simple one).
    max_states: states held by both searches together; where it is reached, the best order found and the bound proved so
    far are returned. deadline: value of time.monotonic() at which to stop likewise.
    """
    from cython_ext import schedule as kernel

    floor = max(lower_bound_bytes, int(problem.single_operator_bytes.max()))
    best = best_simple_order(problem) if start is None else start
    peak = int(problem.costs.peak(best))
    if peak <= floor:
        return SearchResult(best, peak, floor, 0)
    searches = [_Direction(problem, backwards, floor, peak, max_states // 2) for backwards in (False, True)]
    budget, truncated = 64, False
    while floor < peak:
        running = [one for one in searches if one.status == kernel.RUNNING]
        if not running:
            break
        for one in running:
            step = 0
            while one.status == kernel.RUNNING and step < budget and not truncated:
                one.status = one.search.best_first(min(SLICE_STATES, budget - step))
                step += SLICE_STATES
                if progress is not None:
                    progress(_states(searches), None, f"peak {peak}, at least {floor}")
                truncated = deadline is not None and time.monotonic() > deadline
            if one.status == kernel.NO_MEMORY:
                raise MemoryError(f"{problem.graph.name}: out of memory after {_states(searches)} states: lower max_states")
            if one.status == kernel.EXHAUSTED:  # nothing below the best known peak is left
                floor = peak
            elif one.search.goal_peak is not None and one.search.goal_peak < peak:
                best, peak = one.order(), int(one.search.goal_peak)
            floor = max(floor, min(peak, int(one.search.lower_bound)))
            if floor >= peak or truncated:
                break
        if truncated:
            break
        budget *= 2
    return SearchResult(best, peak, floor, _states(searches), truncated)


def _states(searches: list[_Direction]) -> int:
    return sum(int(one.search.n_expanded) for one in searches)


def best_simple_order(problem: Problem) -> Order:
    """Return the best of the file's order, both of Kahn's and the greedy one (ties: in this order)."""
    orders = (
        constructive.file_order(problem),
        constructive.kahn(problem),
        constructive.kahn(problem, stack=True),
        constructive.greedy(problem),
    )
    return min(orders, key=lambda order: int(problem.costs.peak(order)))
