"""greedy: nearest neighbour on the joint cost, left to right."""

from __future__ import annotations

import cython_ext.cdr.tuples as kernels
from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.strides import run_kernel
from reorder.tuples.tuple_problem import Int64Array, TupleProblem
from traces.base.progress import Progress


class Greedy(TupleOrderMethod):
    """Each slot takes the tuple that is cheapest there; ties go to the first in storage order."""

    workers = "threads"

    def order(
        self,
        problem: TupleProblem,
        order: Int64Array,
        first: int,
        last: int,
        seed: int,
        parameters: None,
        progress: Progress,
    ) -> None:
        """See TupleOrderMethod. O(n^2) per stride."""
        run_kernel(problem, order, first, last, kernels.GREEDY, progress=progress)


TUPLE_ORDERS.register("greedy", summary="nearest neighbour on the joint cost, left to right")(Greedy())
