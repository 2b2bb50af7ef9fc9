"""Lower bounds on what any order inside the strides costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import cython_ext.cdr.tuples as kernels
from reorder.tuples.cost import field_ones
from reorder.tuples.groups import groups
from reorder.tuples.strides import MAX_STRIDE
from reorder.tuples.tuple_problem import Int64Array, Piece, TupleProblem
from traces.base.workers import Workers


def lower_bounds(
    problem: TupleProblem, order: Int64Array, workers: int | Workers = 1, rounds: int = 40
) -> float | None:
    """Return the sum of the strides' spanning-tree bounds (whole ones each), None where a stride is too long for it."""
    longest = int(np.diff(problem.bounds).max(initial=0))
    if longest > 2 * MAX_STRIDE:
        return None

    def calls() -> Iterator[tuple[int, tuple[Piece, Int64Array, int]]]:
        for first, last in groups(problem):
            start = problem.bounds[first]
            leader = int(np.searchsorted(problem.bounds, start, side="left")) - 1  # the last stride before with tuples
            piece = problem.piece(first, last, int(start - problem.bounds[leader]) if leader >= 0 else 1)
            here = order[piece.offset : piece.offset + piece.problem.size] - piece.offset
            here[piece.problem.bounds[piece.last] :] = np.arange(piece.problem.bounds[piece.last], len(here))
            yield first, (piece, here, rounds if longest <= 1024 else 5)

    with Workers.of(workers) as team:
        return float(sum(bound for _, bound in team.map(piece_bound, calls())))


def piece_bound(piece: Piece, order: Int64Array, rounds: int) -> float:
    """Return the sum of the bounds of a piece's own strides. order: a good order of all its slots."""
    problem = piece.problem
    model = problem.model
    bound = np.zeros(len(problem.bounds) - 1)
    for at in range(piece.first, piece.last, 16):
        kernels.stride_bounds(
            model.out,
            model.into,
            model.keep,
            model.slot_class,
            model.end_class,
            problem.bounds,
            at,
            min(at + 16, piece.last),
            order,
            rounds,
            model.dbi,
            model.symmetric,
            bound,
        )
    return float(np.ceil(bound - 1e-6).sum())


def metric_bound(problem: TupleProblem, order: Int64Array, workers: int | Workers = 1) -> float | None:
    """Return a lower bound on the objective of all orders inside the strides, None where there is none.

    Energy: ones by their own bound (without XOR every order sends the same ones) and, without XOR, rising edges as half
    the bound on toggles, for wires that start at 0 rise at least as often as they fall. There is no bound on edges of
    XORed data, which depend on three tuples, so energy counts none there and toggles have no bound; nor has int4.
    """
    if any(f.element_bits < 8 for f in problem.counted):
        return None
    if problem.metric != "energy":
        return lower_bounds(problem, order, workers) if problem.model_is_exact else None
    assert problem.energy_pj is not None
    per_one, per_rise = problem.energy_pj
    if problem.xor:
        ones = lower_bounds(replace(problem, metric="ones"), order, workers)
        return None if ones is None else per_one * ones
    toggles = lower_bounds(replace(problem, metric="toggles"), order, workers)
    ones = sum(field_ones(problem, f, order) for f in problem.counted)
    return per_one * ones + per_rise * (toggles or 0.0) / 2
