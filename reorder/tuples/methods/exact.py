"""exact: the optimum of each stride of up to 12 tuples."""

from __future__ import annotations

import numpy as np

import cython_ext.cdr.tuples as kernels
from reorder.tuples.base import TUPLE_ORDERS, TupleOrderMethod
from reorder.tuples.strides import run_kernel
from reorder.tuples.tuple_problem import Int64Array, TupleProblem
from traces.base.errors import InputError
from traces.base.progress import Progress

MAX_TUPLES = 12


class HeldKarp(TupleOrderMethod):
    """Dynamic programming over subsets (Held and Karp 1962), each stride given the last tuple of the one before."""

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
        """See TupleOrderMethod. Raises InputError for longer strides. O(2^n n^2) per stride."""
        lengths = np.diff(problem.bounds[first : last + 1])
        if lengths.max(initial=0) > MAX_TUPLES:
            k = int(np.argmax(lengths > MAX_TUPLES))
            raise InputError(
                f"exact orders at most {MAX_TUPLES} tuples: stride {first + k} has {lengths[k]} "
                f"(use a stride of {MAX_TUPLES} or less, or 'local-search')"
            )
        run_kernel(problem, problem.model, order, first, last, kernels.EXACT, progress=progress)


TUPLE_ORDERS.register("exact", summary="the optimum of each stride of up to 12 tuples")(HeldKarp())
