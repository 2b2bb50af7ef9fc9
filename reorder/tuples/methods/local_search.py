"""local-search: Or-opt, 2-opt and exchange of segments over neighbour lists, with kicks (the default)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

import cython_ext.cdr.tuples as kernels
from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.strides import MAX_STRIDE, pieces, presort, run_kernel
from reorder.tuples.tuple_problem import Int64Array, TupleProblem
from traces.base.errors import InputError, unknown_name
from traces.base.progress import Progress

_KICKS_FRESH, _KICKS_REFINE = 8.0, 2.0  # per tuple at effort 1
EFFORTS = {"fast": 0.03, "default": 1.0, "best": 4.0}  # chosen by the front in docs/performance/wires.md


@dataclass(frozen=True)
class LocalSearchParameters:
    """effort: work relative to the default (about 40 us per tuple with AVX-512), or a name of EFFORTS."""

    effort: float | Literal["fast", "default", "best"] = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.effort, str) and self.effort not in EFFORTS:
            raise unknown_name("effort", self.effort, EFFORTS)
        if not 0 <= self.work <= 1e6:
            raise InputError(f"effort must be from 0 to 1e6, not {self.effort}")

    @property
    def work(self) -> float:
        return EFFORTS[self.effort] if isinstance(self.effort, str) else self.effort


class LocalSearch(TupleOrderMethod):
    """Search each stride left to right, then again knowing what follows; more effort adds rounds of the second kind."""

    workers = "threads"
    guards = ("greedy", "given")  # strides do not look ahead, so the sum may rise although each stride falls

    def guards_of(self, problem: TupleProblem) -> tuple[str, ...]:
        """See TupleOrderMethod. Of very long strides greedy would take longer than the search."""
        return self.guards if _longest(problem.bounds) <= MAX_STRIDE else ("given",)

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
        cuts = [problem.bounds]
        if _longest(problem.bounds[first : last + 1]) > MAX_STRIDE:  # pieces of the order, whose ends move by turns
            presort(problem, order, first, last)
            here, first, last = problem.bounds[first : last + 1], 0, 0
            cuts = [pieces(here, 0), pieces(here, MAX_STRIDE // 2)]
        fresh = min(parameters.work, 1.0) * _KICKS_FRESH
        rest = parameters.work * (_KICKS_FRESH + _KICKS_REFINE) - fresh
        rounds = [fresh, *[min(_KICKS_FRESH, rest - _KICKS_FRESH * k) for k in range(ceil(rest / _KICKS_FRESH))]]
        for k, kicks in enumerate(rounds):
            bounds = cuts[k % len(cuts)]
            run_kernel(
                problem, order, first, last or len(bounds) - 1, kernels.SEARCH,
                bounds=bounds, refine=k > 0, kicks=kicks, seed=seed + k, progress=progress,
            )  # fmt: skip


def _longest(bounds: Int64Array) -> int:
    return int(np.diff(bounds).max(initial=0))


TUPLE_ORDERS.register(
    "local-search", summary="Or-opt, 2-opt, segment exchange and kicks (default)", parameters=LocalSearchParameters
)(LocalSearch())
