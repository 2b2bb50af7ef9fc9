"""local-search: Or-opt, 2-opt and exchange of segments over neighbour lists, with kicks (the default)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import cython_ext.cdr.tuples as kernels
from reorder.cdr.base import TUPLE_ORDERS, EllSweeps, TupleOrderMethod
from reorder.cdr.strides import MAX_STRIDE, pieces, presort, run_kernel
from reorder.cdr.tuple_problem import Int64Array, TupleProblem
from traces.base.errors import InputError
from traces.base.progress import Progress

_KICKS_FRESH, _KICKS_REFINE = 8.0, 2.0  # per tuple at effort 1
_GREEDY_MOST = 1 << 15  # longer strides are presorted, and greedy orders pieces of this size: it costs n^2


@dataclass(frozen=True)
class LocalSearchParameters:
    """effort: work relative to the default (about 0.2 ms per tuple)."""

    effort: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.effort <= 1e6:
            raise InputError(f"effort must be from 0 to 1e6, not {self.effort}")


class LocalSearch(TupleOrderMethod):
    """Search each stride left to right, then again knowing what follows; more effort adds rounds of the second kind."""

    layouts = TupleOrderMethod.layouts | {"ell"}
    guards = ("greedy", "given")  # strides do not look ahead, so the sum may rise although each stride falls

    def guards_of(self, problem: TupleProblem) -> tuple[str, ...]:
        """See TupleOrderMethod. Of very long strides greedy would take longer than the search."""
        return self.guards if _longest(problem.bounds) <= _GREEDY_MOST else ("given",)

    def order(
        self,
        problem: TupleProblem,
        order: Int64Array,
        first: int,
        last: int,
        seed: int,
        parameters: LocalSearchParameters,
        progress: Progress,
    ) -> None:
        """See TupleOrderMethod."""
        model, bounds = problem.model, problem.bounds
        if _longest(bounds[first : last + 1]) > MAX_STRIDE:
            return _improve_greedy(problem, order, first, last, seed, parameters.effort, progress)
        fresh = min(parameters.effort, 1.0) * _KICKS_FRESH
        rest = parameters.effort * (_KICKS_FRESH + _KICKS_REFINE) - fresh
        run_kernel(problem, model, order, first, last, kernels.SEARCH, kicks=fresh, seed=seed, progress=progress)
        round_ = 0
        while rest > 0:
            round_ += 1
            kicks = min(rest, _KICKS_FRESH)
            run_kernel(
                problem,
                model,
                order,
                first,
                last,
                kernels.SEARCH,
                refine=True,
                kicks=kicks,
                seed=seed + round_,
                progress=progress,
            )
            rest -= kicks

    def ell_sweeps(self, parameters: LocalSearchParameters) -> EllSweeps:
        """Up to 1 + 3 * effort sweeps; all but the first also look at the row below."""
        return EllSweeps(1 + max(1, round(3 * parameters.effort)), look_ahead=True)


def _longest(bounds: Int64Array) -> int:
    return int(np.diff(bounds).max(initial=0))


def _improve_greedy(
    problem: TupleProblem, order: Int64Array, first: int, last: int, seed: int, effort: float, progress: Progress
) -> None:
    """Order strides too long for one search: greedily, then in pieces of that order, whose ends move by turns."""
    model, bounds = problem.model, problem.bounds[first : last + 1]
    presort(problem, order, first, last, _GREEDY_MOST)
    chunks = pieces(bounds, _GREEDY_MOST)
    run_kernel(problem, model, order, 0, len(chunks) - 1, kernels.GREEDY, bounds=chunks)
    kicks = effort * (_KICKS_FRESH + _KICKS_REFINE)
    rounds = max(2, round(kicks / _KICKS_FRESH))
    for k in range(rounds):
        cut = pieces(bounds, MAX_STRIDE, k % 2 * MAX_STRIDE // 2)
        run_kernel(
            problem,
            model,
            order,
            0,
            len(cut) - 1,
            kernels.SEARCH,
            bounds=cut,
            refine=True,
            kicks=kicks / rounds,
            seed=seed + k,
            progress=progress,
        )


TUPLE_ORDERS.register(
    "local-search", summary="Or-opt, 2-opt, segment exchange and kicks (default)", parameters=LocalSearchParameters
)(LocalSearch())
