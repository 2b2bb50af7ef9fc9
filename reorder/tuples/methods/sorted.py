"""popcount: by the number of ones of the value (Chen et al., arXiv 2509.00500, the affiliated form). sort: by value
bits, then id, inside each stride."""

from __future__ import annotations

import numpy as np

from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.strides import SortedStrides
from reorder.tuples.tuple_problem import Int64Array, TupleProblem


class Popcount(SortedStrides):
    """Most ones first, as the paper has it; equal numbers keep their order."""

    def keys(self, problem: TupleProblem, tuples: Int64Array) -> list[np.ndarray]:
        return [-np.bitwise_count(problem.fields[0].bits[tuples]).astype(np.int64)]


class Sort(SortedStrides):
    """Sort each stride; equal tuples keep their order."""

    def keys(self, problem: TupleProblem, tuples: Int64Array) -> list[np.ndarray]:
        return [field.bits[tuples] for field in reversed(problem.fields)]


TUPLE_ORDERS.register("popcount", summary="by the ones of the value, ids along (Chen et al. 2025, affiliated)")(
    Popcount()
)
TUPLE_ORDERS.register("sort", summary="by value bits, then id, inside each stride")(Sort())
