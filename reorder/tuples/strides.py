"""Shared by the members of TUPLE_ORDERS: running the kernel, sorting, and cutting long strides into pieces."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np

import cython_ext.cdr.tuples as kernels
from reorder.tuples.tuple_problem import Int64Array, TupleProblem
from traces.base.progress import Progress

MAX_STRIDE = 1 << 17  # longer strides are searched in pieces of this size: neighbour lists cost n^2
_SLICE_TUPLES = 2048
"""Of a kernel call, which takes half a second at most, so that Ctrl-C and progress work; one stride is one call."""


def run_kernel(
    problem: TupleProblem,
    order: Int64Array,
    first: int,
    last: int,
    method: int,
    *,
    bounds: Int64Array | None = None,
    refine: bool = False,
    kicks: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> None:
    """Call the kernel on strides [first, last), a slice at a time."""
    bounds, model = problem.bounds if bounds is None else bounds, problem.model
    before = problem.before.strides if bounds is problem.bounds else 0  # pieces of long strides count from 0
    at = first
    while at < last:
        stop = int(np.searchsorted(bounds, bounds[at] + _SLICE_TUPLES, side="right")) - 1
        stop = min(max(stop, at + 1), last)
        kernels.order_strides(
            *model[:4], bounds, at, stop, order, method, refine, kicks, seed % 2**64, *model[4:], before
        )
        if progress:
            progress(int(bounds[stop] - bounds[at]), None, "")
        at = stop


def sort_strides(problem: TupleProblem, order: Int64Array, first: int, last: int, keys: list[np.ndarray]) -> None:
    start, stop = problem.bounds[first], problem.bounds[last]
    stride = np.repeat(np.arange(first, last), np.diff(problem.bounds[first : last + 1]))
    order[start:stop] = order[start:stop][np.lexsort((*keys, stride))]


def presort(problem: TupleProblem, order: Int64Array, first: int, last: int) -> None:
    """Sort the strides of more than MAX_STRIDE tuples by what they send, so that like stands with like."""
    lengths = np.diff(problem.bounds[first : last + 1])
    keys = [f.bits[order[problem.bounds[first] : problem.bounds[last]]] for f in reversed(problem.fields)]
    short = np.repeat(lengths <= MAX_STRIDE, lengths)
    for key in keys:
        key[short] = 0
    sort_strides(problem, order, first, last, keys)


def pieces(bounds: Int64Array, offset: int) -> Int64Array:
    """Return the bounds of strides cut into pieces of MAX_STRIDE tuples; the first piece is shorter by `offset`."""
    cuts = [[a, *range(int(a) + MAX_STRIDE - offset, int(b), MAX_STRIDE)] for a, b in pairwise(bounds)]
    return np.array([*chain.from_iterable(cuts), bounds[-1]], np.int64)
