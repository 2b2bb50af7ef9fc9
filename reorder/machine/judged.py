"""The orders that a search for a machine saw: what the judge said of them, and which wait for its word.

The judge is slow, so a time limit may leave room for a few orders only. Those that wait are judged as the surrogate
ranks them, and it learns from every word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from reorder.base import Progress
from reorder.machine.shape import Int64Array, Judge
from reorder.machine.surrogate import Float64Array, Surrogate
from reorder.search.budget import Budget

GRACE_S = 0.8  # for all constructions, whatever the limit; and beyond a limit, for those that may be the best of all


@dataclass
class JudgedOrders:
    """Every order that was judged, and its value; the best one; the curve of best values; orders that wait.

    judged: value by a digest of the order. constructions: value by name. judge_s: what the judge took last, in seconds
    of the budget. ends: share of the time limit for searches. waiting: name -> (order, its counts), constructions until
    the judge has them.
    """

    judge: Judge
    budget: Budget
    surrogate: Surrogate
    progress: Progress | None = None
    best: Int64Array | None = None
    value: float = math.inf
    found_by: str = ""
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    judged: dict[bytes, float] = field(default_factory=dict)
    constructions: dict[str, float] = field(default_factory=dict)
    judge_s: float = 0.0
    ends: float = 1.0
    waiting: dict[str, tuple[Int64Array, Float64Array]] = field(default_factory=dict)

    def offer(self, edges: Int64Array, found_by: str) -> float:
        """Judge an order, keep it if it is the best so far, and let the surrogate learn from it."""
        key = blake2b(np.ascontiguousarray(edges).data, digest_size=16).digest()
        if key not in self.judged:
            began = self.budget.spent()
            value = self.judge(edges)
            self.judge_s = self.budget.spent() - began
            self.judged[key] = value
            self.surrogate.learn(self.surrogate.counts(edges), value)
            if value < self.value:
                self.best, self.value, self.found_by = edges, value, found_by
                self.curve.append((len(self.judged), self.budget.spent(), value))
            if self.progress is not None:
                limit = self.budget.limit_s
                share = round(1000 * min(1.0, self.budget.spent() / limit)) if limit else len(self.judged)
                self.progress(share, 1000 if limit else None, f"{self.value:.6g}")
        return self.judged[key]

    def before(self, share: float, more_s: float = 0.0) -> bool:
        """Whether the judge would be done before this share of the time limit and `more_s` seconds; always without."""
        limit = self.budget.limit_s
        return limit is None or self.budget.spent() + self.judge_s < share * limit + more_s

    def wait(self, name: str, edges: Int64Array) -> None:
        """Let a construction wait for the judge."""
        self.waiting[name] = edges, self.surrogate.counts(edges)

    def likeliest(self) -> tuple[str, float]:
        """Return the name of the construction that waits and that the surrogate likes best, and what it expects."""
        expected = {name: self.surrogate.predict(counts) for name, (_, counts) in self.waiting.items()}
        name = min(expected, key=lambda name: expected[name])
        return name, expected[name]

    def call(self, name: str) -> None:
        """Judge a construction that waits."""
        edges, _ = self.waiting.pop(name)
        self.constructions[name] = self.offer(edges, name)

    def judge_waiting(self, share: float) -> None:
        """Judge what waits, the likeliest first, until this share of the time limit or a grace have passed; then, until
        a grace after the limit itself, what may still be the best."""
        while self.waiting:
            name, expected = self.likeliest()
            hopeless = expected > (1 + self.surrogate.error) * self.value
            within = self.before(share) or self.before(0.0, GRACE_S)
            if not within and (hopeless or not self.before(1.0, GRACE_S)):
                return
            self.call(name)
