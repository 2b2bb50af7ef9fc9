"""Looking for a placement of least height: rules first, then the compiled search at one capacity after another.

The search is started with several preferences in turn, each round four times as long as the one before: one of them
usually succeeds early (Gomes, Selman and Kautz, AAAI 1998). One that ends without any proves that there is none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import cython_ext.arena.arena as kernel
from reorder.operators.arena.base import Buffers, Int64Array, Placement, PlacementTask, by_size, place_in_sequence
from traces.base.errors import InputError

MAX_BUFFERS = 20_000  # of the exact search, which recurses once per buffer
MAX_PAIRS = 50_000_000  # overlapping pairs that are held (4 bytes each)
FIRST_NODES = 16  # per buffer, of the first start
NODE_GROWTH = 4  # factor from one round to the next
SHORT_NODES = 8  # per buffer, of the first starts of preferences that are drawn
KEPT = 8  # preferences that are tried in every round: those of the start and drawn ones that were lucky
# weights of the logarithms of width, size, largest load, mean load and number of neighbours, by which drawn preferences
# sort, and their spreads: one half starts where the load is largest, the other one anywhere
DRAWN = (((0.3, 0.5, 7.0, -1.0, 0.3), (1.0, 1.0, 3.0, 2.0, 1.0)), ((0.0,) * 5, (1.0, 1.0, 6.0, 3.0, 1.0)))
PREFERENCES = (  # what buffers are sorted by, and whether parts are ranked anew by their load
    (("load", "width", "area"), True),
    (("load", "area", "width"), True),
    (("load", "sections", "area"), False),
    (("width", "area", "load"), True),
    (("load", "size", "width"), False),
)
MISSES = 2  # heights that a round asks for in vain


@dataclass(frozen=True)
class ExactParameters:
    """nodes: placements of one buffer that are tried in all (about a microsecond each)."""

    nodes: int = 20_000_000

    def __post_init__(self) -> None:
        if self.nodes < 0:
            raise InputError(f"nodes is {self.nodes}: at least 0")


def sections(lower: Int64Array, upper: Int64Array) -> tuple[Any, Any, int]:
    """Return (first, last, count): the sections each buffer spans, half-open, int32[n].

    A section is a maximal set of buffers that are live together: a new one begins where a buffer begins after another
    has ended.
    """
    begins, ends = np.argsort(lower, kind="stable"), np.argsort(upper, kind="stable")
    first, last, count = kernel.sections(lower, upper, begins, ends)
    return first, last, int(count)


class _Decider:
    """Says whether buffers fit into a capacity. Buffers of no bytes are left out."""

    def __init__(self, buffers: Buffers, task: PlacementTask, nodes: int) -> None:
        self.task, self.left, self.spent, self.late = task, nodes, 0, False
        self.unit = buffers.alignment
        self.used = np.flatnonzero(buffers.size > 0)
        self.count = buffers.count
        self.bytes = buffers.size[self.used]
        self.units = np.ascontiguousarray(-(-self.bytes // self.unit))
        lower, upper = buffers.lower[self.used], buffers.upper[self.used]
        self.first, self.last, n_sections = sections(lower, upper)
        self.search = kernel.Search(self.units, self.first, self.last, n_sections, MAX_PAIRS)
        width = upper - lower
        self.keys = {
            "load": self.search.most,
            "width": width,
            "sections": self.last - self.first,
            "area": width.astype(float) * self.units,
            "size": self.units,
        }
        self.preferences: list[tuple[tuple[str, ...] | Any, bool]] = list(PREFERENCES)
        self.random = np.random.default_rng(0)

    @cached_property
    def features(self) -> Any:
        """float64[n, 5]: what drawn preferences sort by, see DRAWN."""
        sums = np.concatenate(([0], np.cumsum(self.search.load)))
        mean = (sums[self.last] - sums[self.first]) / (self.last - self.first)
        ended = np.searchsorted(np.sort(self.last), self.first, side="right")
        near = np.searchsorted(np.sort(self.first), self.last) - ended
        columns = (self.keys["width"], self.units, self.search.most, mean, near)
        return np.log(np.stack([a.astype(float) for a in columns], axis=1))

    @staticmethod
    def _ranks(keys: list[Any]) -> Any:
        """int32[n]: places when sorted by the keys, the largest first, of equals as they are."""
        order = np.lexsort([-key for key in reversed(keys)])
        ranks = np.empty(len(order), np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        return ranks

    def _stop(self) -> bool:
        self.late = self.task.deadline is not None and time.monotonic() > self.task.deadline
        return self.late

    def _starts(self, limit: int) -> Iterator[tuple[Any, bool, int]]:
        """Preferences to try in a round (ranks, whether parts are ranked anew) and the placements that each may try.

        A leash of drawn ones is twice as long as in the round before, where `limit` is four times as large.
        """
        for names, by_load in tuple(self.preferences):
            given = isinstance(names, tuple)
            yield self._ranks([self.keys[name] for name in names]) if given else names, by_load, limit
        short = int(SHORT_NODES * len(self.used) * math.sqrt(limit / (FIRST_NODES * len(self.used))))
        for k in range(len(self.preferences) * limit // short):
            weights = self.random.normal(*DRAWN[k // 2 % 2])
            yield self._ranks([self.features @ weights]), bool(k % 2), short

    def decide(self, capacity: int, limit: int) -> tuple[Int64Array | None, int]:
        """Return (offsets, capacity) of a placement in at most `capacity` bytes, or (None, bound).

        limit: placements of one buffer that each of the first preferences may try. bound: no placement is lower;
        `capacity` itself where the search was given up.
        """
        top = np.ascontiguousarray((capacity - self.bytes) // self.unit)
        units = -(-capacity // self.unit)
        for k, (ranks, by_load, most) in enumerate(self._starts(limit)):
            if self.left <= 0 or self.late:
                break
            status = self.search.run(units, top, ranks, min(most, self.left), by_load, self._stop)
            self.spent += self.search.nodes
            self.left -= self.search.nodes
            if status == kernel.FOUND:
                others = [kept for i, kept in enumerate(self.preferences) if i != k]
                self.preferences = [(ranks, by_load), *others][:KEPT]  # what was lucky is asked first
                offset = np.zeros(self.count, np.int64)
                offset[self.used] = self.search.offsets() * self.unit
                return offset, capacity
            if status == kernel.EXHAUSTED:
                return None, self._next(capacity, units, int(self.search.next_capacity))
        return None, capacity

    def _next(self, capacity: int, units: int, next_units: int) -> int:
        """The least height above `capacity` that a placement can have: ends are multiples of the unit plus a size."""
        least = capacity + 1
        if units < next_units < kernel.NEVER:
            least = max(least, (next_units - 1) * self.unit + 1)
        return least + int(((self.bytes - least) % self.unit).min())


def place(buffers: Buffers, task: PlacementTask, parameters: ExactParameters) -> Placement:
    lower, sizes = buffers.load, by_size(buffers)
    goal = lower if task.capacity is None else max(lower, task.capacity)
    best = place_in_sequence(buffers, sizes, best=False, deadline=task.deadline)
    for sequence in (sizes, np.argsort(buffers.lower, kind="stable")):
        if best.height > goal and not best.truncated:
            other = place_in_sequence(buffers, sequence, best=True, deadline=task.deadline)
            best = replace(min(best, other, key=lambda placed: placed.height), truncated=other.truncated)
    if best.height <= goal or best.truncated or buffers.count > MAX_BUFFERS:
        return best
    try:
        decider = _Decider(buffers, task, parameters.nodes)
    except MemoryError:  # too many overlapping pairs
        return best
    offset, height = best.offset, best.height
    limit = FIRST_NODES * len(decider.used)
    step = (height - goal) // 2

    def attempt(capacity: int) -> bool:
        nonlocal offset, height, lower
        offsets, bound = decider.decide(capacity, limit)
        if offsets is not None:
            offset, height = offsets, int((offsets + buffers.size).max())
        elif bound > capacity >= lower:
            lower = bound
        return offsets is not None

    while height > goal and decider.left > 0 and not decider.late:
        until = decider.left - 2 * limit * len(decider.preferences)
        while height > goal and not attempt(goal) and lower > goal and task.capacity is None:
            goal = lower  # proved too small: go on with the next height that is possible
            if decider.left <= until:
                break
        if task.capacity is not None and lower > goal:
            break
        misses = 0
        while task.capacity is None and misses < MISSES and height - 1 > goal and decider.left > 0 and not decider.late:
            step = min(max(step, 1), height - goal - 1)
            if attempt(height - step):
                step *= 2
            else:
                step //= 2
                misses += 1
        limit *= NODE_GROWTH
    return Placement(offset, height, min(lower, height), decider.spent, decider.late)
