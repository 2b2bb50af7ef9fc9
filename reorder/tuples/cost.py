"""Ones, toggles and energy of an order of tuples: exact, array by array, independent of the search kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import cython_ext.cdr.tuples as kernels
from reorder.tuples.groups import groups
from reorder.tuples.strides import MAX_STRIDE
from reorder.tuples.tuple_problem import Field, Int64Array, Piece, TupleProblem, Words
from traces.base.workers import PART, Each, Workers, in_turn

Levels = tuple[np.ndarray, np.ndarray]

_WEIGHT = np.array([x.bit_count() for x in range(256)], np.int64)
# ones of a byte, and of two, with DBI-DC or without
_SENT = {False: _WEIGHT.astype(np.uint8), True: np.minimum(_WEIGHT, 9 - _WEIGHT).astype(np.uint8)}
_SENT_PAIRS = {dbi: (ones[:, None] + ones).ravel() for dbi, ones in _SENT.items()}
_CHUNK = 1 << 14
"""Slots counted at once, so that what is gathered stays in the cache."""


def _ones(words: Words, element_bytes: int, dbi: bool) -> int:
    data = words.astype(f"<u{element_bytes}")
    if element_bytes % 2:
        return int(_SENT[dbi][data].sum(dtype=np.int64))
    return int(_SENT_PAIRS[dbi][data.view("<u2")].sum(dtype=np.int64))


def field_ones(problem: TupleProblem, f: Field, order: Int64Array, skip: int = 0, each: Each = in_turn) -> int:
    """Return the ones sent for one array in an order, DBI wires counted, without those of the first `skip`."""
    if f.element_bits < 8:
        return _ones(_packed(problem, f, order), 1, problem.dbi)
    base = problem.is_base(f)
    totals = []

    def count(start: int, stop: int) -> None:
        for at in range(start + skip, stop + skip, _CHUNK):
            here = slice(at, min(at + _CHUNK, stop + skip))
            sent = f.bits[order[here]]
            if problem.xor:
                before = np.concatenate((f.bits[order[max(at - 1, 0) : at]], sent[:-1]))
                before[base[len(sent) - len(before) + at : at + len(sent)]] = 0
                sent[len(sent) - len(before) :] ^= before
            totals.append(_ones(sent, f.element_bytes, problem.dbi))

    each(count, max(problem.size - skip, 0), PART)
    return sum(totals)


def _packed(problem: TupleProblem, f: Field, order: Int64Array) -> np.ndarray:
    """Return the bytes of an int4 array, uint8[ceil(slots / 2)], before DBI: two values share one, and bytes are the
    elements of Base+XOR."""
    slots = problem.before.slots + np.arange(problem.size)
    n = int(slots[-1]) + 1 if len(slots) else 0
    nibbles = np.zeros(n + n % 2, np.uint64)
    nibbles[slots] = f.bits[order]
    data = nibbles[0::2] | nibbles[1::2] << np.uint64(4)
    sent = data.copy()
    if problem.xor and len(data):
        base = np.zeros(len(data), bool)
        if isinstance(problem.block_bytes, int):
            base = np.arange(len(data)) % problem.block_bytes == 0
        elif problem.block_bytes == "row":
            base[slots[problem.row_starts] // 2] = True
        sent[1:] ^= np.where(base[1:], np.uint64(0), data[:-1])
    return sent.astype(np.uint8)


def field_levels(problem: TupleProblem, f: Field, order: Int64Array) -> tuple[Levels, int]:
    """Return the levels of the wires beat by beat (data bytes and flags) of one array, and the bus width in bytes."""
    lanes = problem.bus_bytes or f.element_bytes
    if f.element_bits < 8:
        return _with_flags(problem, _packed(problem, f, order)), lanes
    data = np.ascontiguousarray(f.bits[order], "<u8").view(np.uint8).reshape(-1, 8)[:, : f.element_bytes].reshape(-1)
    if problem.xor and len(data):
        sent = data.copy().reshape(-1, f.element_bytes)
        before = np.where(problem.is_base(f)[1:, None], np.uint8(0), data.reshape(-1, f.element_bytes)[:-1])
        sent[1:] ^= before
        data = sent.reshape(-1)
    return _with_flags(problem, data), lanes


def _with_flags(problem: TupleProblem, data: np.ndarray) -> Levels:
    if not problem.dbi:
        return data, np.zeros(len(data), np.uint8)
    flags = (_WEIGHT[data] > 4).astype(np.uint8)
    return data ^ flags * np.uint8(255), flags


def field_edges(problem: TupleProblem, f: Field, order: Int64Array) -> tuple[int, int]:
    """Return (toggles, rising edges) of one array sent alone from wires at rest, flag wires counted."""
    (data, flags), lanes = field_levels(problem, f, order)
    if problem.coding.transition:
        return int(_WEIGHT[data].sum() + flags.sum()), -1
    before, flag_before = np.zeros_like(data), np.zeros_like(flags)
    before[lanes:], flag_before[lanes:] = data[:-lanes], flags[:-lanes]
    flips, flag_flips = data ^ before, flags ^ flag_before
    toggles = int(_WEIGHT[flips].sum() + flag_flips.sum())
    return toggles, int(_WEIGHT[flips & data].sum() + (flag_flips & flags).sum())


@dataclass(frozen=True)
class WireCost:
    """Counts of an order on the wires.

    ones, toggles: of each field, DBI wires counted (toggles: () where the metric is ones).
    cost: the objective: ones, toggles or picojoules of the counted fields.
    """

    ones: tuple[int, ...]
    toggles: tuple[int, ...]
    cost: float


def wire_cost(problem: TupleProblem, order: Int64Array, each: Each = in_turn) -> WireCost:
    counted = [k for k, f in enumerate(problem.fields) if any(f is other for other in problem.counted)]
    ones = tuple(field_ones(problem, f, order, each=each) for f in problem.fields)
    if problem.metric == "ones":
        return WireCost(ones, (), sum(ones[k] for k in counted))
    edges = [field_edges(problem, f, order) for f in problem.fields]
    toggles = tuple(both for both, _ in edges)
    if problem.metric == "toggles":
        return WireCost(ones, toggles, sum(toggles[k] for k in counted))
    assert problem.energy_pj is not None
    per_one, per_rise = problem.energy_pj
    cost = per_one * sum(ones[k] for k in counted) + per_rise * sum(edges[k][1] for k in counted)
    return WireCost(ones, toggles, cost)


def lower_bounds(problem: TupleProblem, order: Int64Array, workers: int | Workers = 1) -> float | None:
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
            yield first, (piece, here, 40 if longest <= 1024 else 5)

    with Workers.of(workers) as team:
        return float(sum(bound for _, bound in team.map(piece_bound, calls())))


def piece_bound(piece: Piece, order: Int64Array, rounds: int) -> float:
    """Return the sum of the bounds of a piece's own strides. order: a good order of all its slots."""
    problem = piece.problem
    model = problem.model
    bound = np.zeros(len(problem.bounds) - 1)
    for at in range(piece.first, piece.last, 16):
        until = min(at + 16, piece.last)
        kernels.stride_bounds(*model[:4], problem.bounds, at, until, order, rounds, *model[4:], bound)
    return float(np.ceil(bound - 1e-6).sum())


def metric_bound(problem: TupleProblem, order: Int64Array, workers: int | Workers = 1) -> float | None:
    """Return a lower bound on the objective of all orders inside the strides, None where there is none.

    Ones without XOR are the same in any order. Energy: ones by their own bound and, without XOR, rising edges as half
    the bound on toggles. There is no bound on edges of XORed data, which depend on three tuples; nor has int4 one.
    """
    if any(f.element_bits < 8 for f in problem.counted):
        return None
    if problem.metric == "ones" and not problem.xor:
        return float(sum(field_ones(problem, f, order) for f in problem.counted))
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
