"""What an order of tuples costs on the wires: exact, array by array, independent of the search kernels."""

from __future__ import annotations

import numpy as np

from reorder.cdr.tuple_problem import Field, Int64Array, TupleProblem, Words

Levels = tuple[np.ndarray, np.ndarray]

_WEIGHT = np.array([x.bit_count() for x in range(256)], np.int64)
_DBI = np.minimum(_WEIGHT, 9 - _WEIGHT)


def _ones(words: Words, element_bytes: int, dbi: bool) -> Int64Array:
    table = _DBI if dbi else _WEIGHT
    data = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(-1, 8)[:, :element_bytes]
    return table[data].sum(axis=1)


def field_ones(problem: TupleProblem, f: Field, order: Int64Array) -> int:
    """Return the ones sent for one array in the given order, DBI wires counted."""
    if f.element_bits < 8:
        return _nibble_ones(problem, f, order)
    bits = f.bits[order]
    sent = bits.copy()
    if problem.xor and len(bits):
        sent[1:] ^= np.where(problem.is_base(f)[1:], np.uint64(0), bits[:-1])
        padding = bits[problem.ends_in_padding(f)]
        return int(_ones(sent, f.element_bytes, problem.dbi).sum() + _ones(padding, f.element_bytes, problem.dbi).sum())
    return int(_ones(sent, f.element_bytes, problem.dbi).sum())


def _nibble_ones(problem: TupleProblem, f: Field, order: Int64Array) -> int:
    """int4: two values share a byte and bytes are the elements of Base+XOR."""
    slots = problem.slots(f.element_bits)
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
    return int(_ones(sent, 1, problem.dbi).sum())


def field_levels(problem: TupleProblem, f: Field, order: Int64Array) -> tuple[Levels, int]:
    """Return the levels of the wires beat by beat (data bytes and flags) of one array, and the bus width in bytes."""
    lanes = problem.bus_bytes or f.element_bytes
    data = np.ascontiguousarray(f.bits[order], "<u8").view(np.uint8).reshape(-1, 8)[:, : f.element_bytes].reshape(-1)
    if problem.xor and len(data):
        sent = data.copy().reshape(-1, f.element_bytes)
        before = np.where(problem.is_base(f)[1:, None], np.uint8(0), data.reshape(-1, f.element_bytes)[:-1])
        sent[1:] ^= before
        data = sent.reshape(-1)
    flags = np.zeros(len(data), np.uint8)
    if problem.dbi:
        flags = (_WEIGHT[data] > 4).astype(np.uint8)
        data = data ^ flags * np.uint8(255)
    return (data, flags), lanes


def field_edges(problem: TupleProblem, f: Field, order: Int64Array) -> tuple[int, int]:
    """Return (toggles, rising edges) of one array sent alone from wires at rest, flag wires counted."""
    (data, flags), lanes = field_levels(problem, f, order)
    before, flag_before = np.zeros_like(data), np.zeros_like(flags)
    before[lanes:], flag_before[lanes:] = data[:-lanes], flags[:-lanes]
    if problem.coding.transition:
        n = int(_WEIGHT[data].sum() + flags.sum())
        return n, -1
    flips, flag_flips = data ^ before, flags ^ flag_before
    toggles = int(_WEIGHT[flips].sum() + flag_flips.sum())
    return toggles, int(_WEIGHT[flips & data].sum() + (flag_flips & flags).sum())


def objective_cost(problem: TupleProblem, order: Int64Array) -> float:
    """Return the objective of an order: ones, toggles or picojoules of the counted fields."""
    if problem.metric == "ones":
        return sum(field_ones(problem, f, order) for f in problem.counted)
    if problem.metric == "toggles":
        return sum(field_edges(problem, f, order)[0] for f in problem.counted)
    assert problem.energy_pj is not None
    per_one, per_rise = problem.energy_pj
    ones = sum(field_ones(problem, f, order) for f in problem.counted)
    return per_one * ones + per_rise * sum(field_edges(problem, f, order)[1] for f in problem.counted)
