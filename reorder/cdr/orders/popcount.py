"""popcount: by the number of ones of the value (Chen et al., arXiv 2509.00500, the affiliated form)."""

from __future__ import annotations

import numpy as np

from reorder.cdr.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.cdr.strides import sort_strides
from reorder.cdr.tuple_problem import Int64Array, TupleProblem
from traces.base.progress import Progress


class Popcount(TupleOrderMethod):
    """Most ones first, as the paper has it; ids stay with their values and equal numbers keep their order."""

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
        sort_strides(problem, order, first, last, [-np.bitwise_count(problem.fields[0].bits[here]).astype(np.int64)])


TUPLE_ORDERS.register("popcount", summary="by the ones of the value, ids along (Chen et al. 2025, affiliated)")(
    Popcount()
)
