"""Costs of tuple orders, written plainly from the rules: blocks with bases, XOR with the predecessor, DBI per byte."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

DBI = (0, 1, 2, 3, 4, 4, 3, 2, 1)


def ones(value: int, element_bytes: int, dbi: bool) -> int:
    """Ones on the wires for one encoded element, flag wires counted."""
    data = value.to_bytes(element_bytes, "little")
    return sum(DBI[byte.bit_count()] if dbi else byte.bit_count() for byte in data)


def step(position: int, before: int | None, value: int, element_bytes: int, interval: int | None, dbi: bool) -> int:
    """Cost of `value` at element `position` of its array after `before`; interval: bytes between bases, or None."""
    base = before is None or (interval is not None and position * element_bytes % interval == 0)
    return ones(value if base else value ^ before, element_bytes, dbi)


def array_ones(values: Sequence[int], element_bytes: int, interval: int | None = 32, dbi: bool = True) -> int:
    """Ones of a whole array packed from offset 0."""
    total = 0
    for i, value in enumerate(values):
        total += step(i, values[i - 1] if i else None, value, element_bytes, interval, dbi)
    return total


def greedy(fields, windows, interval=32, dbi=True) -> list[int]:
    """Nearest neighbour inside each window, left to right; fields are (values, element_bytes); ties to the first."""
    order: list[int] = []
    for start, stop in windows:
        left = list(range(start, stop))
        while left:
            p = len(order)

            def cost(item, p=p):
                return sum(
                    step(p, values[order[-1]] if order else None, values[item], size, interval, dbi)
                    for values, size in fields
                )

            best = min(left, key=cost)
            left.remove(best)
            order.append(best)
    return order


def exact(fields, window, order_before, interval=32, dbi=True):
    """Cheapest order of one short window by trying all of them."""
    start, stop = window

    def total(items):
        sequence = [*order_before, *items]
        return sum(
            step(p, values[sequence[p - 1]] if p else None, values[sequence[p]], size, interval, dbi)
            for p in range(start, stop)
            for values, size in fields
        )

    return min(total(items) for items in permutations(range(start, stop)))
