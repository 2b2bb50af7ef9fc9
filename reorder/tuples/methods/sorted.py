"""popcount: by the number of ones of the value (Chen et al., arXiv 2509.00500, the affiliated form). sort: by value
bits, then id, inside each stride."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.strides import sort_strides
from reorder.tuples.tuple_problem import Int64Array, TupleProblem
from traces.base.progress import Progress


class SortedStrides(TupleOrderMethod):
    """Sorts each stride by keys, as `numpy.lexsort` takes them; equal tuples keep their order. O(n log n)."""

    workers = "threads"

    def __init__(self, keys: Callable[[TupleProblem, Int64Array], list[np.ndarray]]) -> None:
        self.keys = keys

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
        here = order[problem.bounds[first] : problem.bounds[last]]
        sort_strides(problem, order, first, last, self.keys(problem, here))


def most_ones(problem: TupleProblem, tuples: Int64Array) -> list[np.ndarray]:
    return [-np.bitwise_count(problem.fields[0].bits[tuples]).astype(np.int64)]


def value_bits(problem: TupleProblem, tuples: Int64Array) -> list[np.ndarray]:
    return [field.bits[tuples] for field in reversed(problem.fields)]


TUPLE_ORDERS.register("popcount", summary="by the ones of the value, ids along (Chen et al. 2025, affiliated)")(
    SortedStrides(most_ones)
)
TUPLE_ORDERS.register("sort", summary="by value bits, then id, inside each stride")(SortedStrides(value_bits))
