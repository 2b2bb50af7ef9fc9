"""Ways to order the tuples of a stride, and the registry that names them.

local-search: Or-opt, 2-opt and exchange of segments over neighbour lists, with kicks (the default).
greedy: nearest neighbour. sort: by value, then id. exact: dynamic programming over subsets, strides up to 12 tuples.
popcount: by the number of ones of the value (Chen et al., arXiv 2509.00500, the affiliated form: ids stay with values).
or-tools-tsp, or-tools-cvrp: the formulations of Feinberg et al. 2020, section IV (module reorder.cdr.routing).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

import cython_ext.cdr.tuples as kernels
from reorder.cdr.cost import field_ones
from reorder.cdr.problem import CostModel, Int64Array, Problem, first_order
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.base.registry import Registry

MAX_EXACT_TUPLES = 12
_SLICE_TUPLES = 2048  # a kernel call takes about half a second at most, so that Ctrl-C and progress work
_KICKS_FRESH, _KICKS_REFINE = 8.0, 2.0  # per tuple at effort 1
_MAX_STRIDE = 4096  # longer strides are presorted and searched in pieces of this size: neighbour lists cost n^2


class TupleMethod(Protocol):
    """A method: orders strides [first, last) of a problem, left to right, in place in `order` (int64[N])."""

    def __call__(
        self, problem: Problem, order: Int64Array, first: int, last: int, seed: int, parameters: Any, progress: Progress
    ) -> None: ...


TUPLE_METHODS: Registry[TupleMethod] = Registry("tuple order", "edgewatt.tuple_orders")


@dataclass(frozen=True)
class SearchParameters:
    """effort: work relative to the default (about 0.2 ms per tuple)."""

    effort: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.effort <= 1e6:
            raise InputError(f"effort must be from 0 to 1e6, not {self.effort}")


def run_kernel(
    problem: Problem,
    model: CostModel,
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
    bounds = problem.bounds if bounds is None else bounds
    ends = model.end_class if len(model.end_class) == len(bounds) - 1 else np.full(len(bounds) - 1, 255, np.uint8)
    at = first
    while at < last:
        stop = int(np.searchsorted(bounds, bounds[at] + _SLICE_TUPLES, side="right")) - 1
        stop = min(max(stop, at + 1), last)
        kernels.order_strides(
            model.out,
            model.into,
            model.keep,
            model.slot_class,
            ends,
            bounds,
            at,
            stop,
            order,
            method,
            refine,
            kicks,
            seed % 2**64,
            model.dbi,
            model.symmetric,
        )
        if progress:
            progress(int(bounds[stop] - bounds[at]), None, "")
        at = stop


def lower_bounds(problem: Problem, order: Int64Array, first: int, last: int, rounds: int = 40) -> float | None:
    """Return the sum of the strides' spanning-tree bounds (whole ones each), None where a stride is too long for it."""
    longest = int(np.diff(problem.bounds).max(initial=0))
    if longest > 2 * _MAX_STRIDE:
        return None
    model = first_order(problem)
    bound = np.zeros(len(problem.bounds) - 1)
    for at in range(first, last, 16):
        stop = min(at + 16, last)
        kernels.stride_bounds(
            model.out,
            model.into,
            model.keep,
            model.slot_class,
            model.end_class,
            problem.bounds,
            at,
            stop,
            order,
            rounds if longest <= 1024 else 5,
            model.dbi,
            model.symmetric,
            bound,
        )
    return float(np.ceil(bound - 1e-6).sum())


def metric_bound(problem: Problem, order: Int64Array) -> float | None:
    """Return a lower bound on the objective of all orders inside the strides, None where there is none.

    Energy: ones by their own bound (without XOR every order sends the same ones) and, without XOR, rising edges as half
    the bound on toggles, for wires that start at 0 rise at least as often as they fall. There is no bound on edges of
    XORed data, which depend on three tuples, so energy counts none there and toggles have no bound; nor has int4.
    """
    if any(f.element_bits < 8 for f in problem.counted):
        return None
    last = len(problem.bounds) - 1
    if problem.metric != "energy":
        return lower_bounds(problem, order, 0, last) if problem.model_is_exact else None
    assert problem.energy_pj is not None
    per_one, per_rise = problem.energy_pj
    if problem.xor:
        ones = lower_bounds(replace(problem, metric="ones"), order, 0, last)
        return None if ones is None else per_one * ones
    toggles = lower_bounds(replace(problem, metric="toggles"), order, 0, last)
    ones = sum(field_ones(problem, f, order) for f in problem.counted)
    return per_one * ones + per_rise * (toggles or 0.0) / 2


@TUPLE_METHODS.register("sort", summary="by value bits, then id, inside each stride")
def sort(
    problem: Problem, order: Int64Array, first: int, last: int, seed: int, parameters: Any, progress: Progress
) -> None:
    """Sort each stride; equal tuples keep their order."""
    keys = [f.bits[order[problem.bounds[first] : problem.bounds[last]]] for f in reversed(problem.fields)]
    _sort_strides(problem, order, first, last, keys)


@TUPLE_METHODS.register("popcount", summary="by the ones of the value, ids along (Chen et al. 2025, affiliated)")
def popcount(
    problem: Problem, order: Int64Array, first: int, last: int, seed: int, parameters: Any, progress: Progress
) -> None:
    """Most ones first, as the paper has it; equal numbers keep their order."""
    here = order[problem.bounds[first] : problem.bounds[last]]
    _sort_strides(problem, order, first, last, [-np.bitwise_count(problem.fields[0].bits[here]).astype(np.int64)])


def _sort_strides(problem: Problem, order: Int64Array, first: int, last: int, keys: list[np.ndarray]) -> None:
    start, stop = problem.bounds[first], problem.bounds[last]
    stride = np.repeat(np.arange(first, last), np.diff(problem.bounds[first : last + 1]))
    order[start:stop] = order[start:stop][np.lexsort((*keys, stride))]


@TUPLE_METHODS.register("greedy", summary="nearest neighbour on the joint cost, left to right")
def greedy(
    problem: Problem, order: Int64Array, first: int, last: int, seed: int, parameters: Any, progress: Progress
) -> None:
    """Each slot takes the tuple that is cheapest there; ties go to the first in storage order. O(n^2) per stride."""
    run_kernel(problem, first_order(problem), order, first, last, kernels.GREEDY, progress=progress)


@TUPLE_METHODS.register("exact", summary="the optimum of each stride of up to 12 tuples")
def exact(
    problem: Problem, order: Int64Array, first: int, last: int, seed: int, parameters: Any, progress: Progress
) -> None:
    """Dynamic programming over subsets (Held and Karp 1962), each stride given the last tuple of the one before."""
    lengths = np.diff(problem.bounds)
    if lengths.max(initial=0) > MAX_EXACT_TUPLES:
        k = int(np.argmax(lengths > MAX_EXACT_TUPLES))
        raise InputError(
            f"exact orders at most {MAX_EXACT_TUPLES} tuples: stride {k} has {lengths[k]} "
            f"(use a stride of {MAX_EXACT_TUPLES} or less, or 'local-search')"
        )
    run_kernel(problem, first_order(problem), order, first, last, kernels.EXACT, progress=progress)


@TUPLE_METHODS.register(
    "local-search", summary="Or-opt, 2-opt, segment exchange and kicks (default)", parameters=SearchParameters
)
def local_search(
    problem: Problem,
    order: Int64Array,
    first: int,
    last: int,
    seed: int,
    parameters: SearchParameters,
    progress: Progress,
) -> None:
    """Search each stride left to right, then again knowing what follows; more effort adds rounds of the second kind."""
    model, bounds = first_order(problem), problem.bounds
    if np.diff(bounds[first : last + 1]).max(initial=0) > _MAX_STRIDE:
        first, last, bounds = _cut_long_strides(problem, order, first, last)
    fresh = min(parameters.effort, 1.0) * _KICKS_FRESH
    rest = parameters.effort * (_KICKS_FRESH + _KICKS_REFINE) - fresh
    run_kernel(
        problem, model, order, first, last, kernels.SEARCH, bounds=bounds, kicks=fresh, seed=seed, progress=progress
    )
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
            bounds=bounds,
            refine=True,
            kicks=kicks,
            seed=seed + round_,
            progress=progress,
        )
        rest -= kicks


def _cut_long_strides(problem: Problem, order: Int64Array, first: int, last: int) -> tuple[int, int, Int64Array]:
    """Presort long strides, so that like stands with like, and return the bounds of pieces short enough to search."""
    keys = [f.bits[order[problem.bounds[first] : problem.bounds[last]]] for f in reversed(problem.fields)]
    lengths = np.diff(problem.bounds[first : last + 1])
    long = np.repeat(lengths > _MAX_STRIDE, lengths)
    for key in keys:
        key[~long] = 0
    _sort_strides(problem, order, first, last, keys)
    cuts = [
        np.arange(a, b, _MAX_STRIDE)
        for a, b in zip(problem.bounds[first:last], problem.bounds[first + 1 :], strict=False)
    ]
    bounds = np.concatenate((*cuts, [problem.bounds[last]])).astype(np.int64)
    return 0, len(bounds) - 1, bounds
