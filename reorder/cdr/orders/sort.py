"""sort: by value bits, then id, inside each stride."""

from __future__ import annotations

from reorder.cdr.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.cdr.strides import sort_strides
from reorder.cdr.tuple_problem import Int64Array, TupleProblem
from traces.base.progress import Progress


class Sort(TupleOrderMethod):
    """Sort each stride; equal tuples keep their order."""

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
        """See TupleOrderMethod. O(n log n)."""
        here = order[problem.bounds[first] : problem.bounds[last]]
        sort_strides(problem, order, first, last, [f.bits[here] for f in reversed(problem.fields)])


TUPLE_ORDERS.register("sort", summary="by value bits, then id, inside each stride")(Sort())
