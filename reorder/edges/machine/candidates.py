"""Candidate orders of a search for a machine: simulated ones with their values, and those that wait.

Simulations are slow, so a time limit may leave room for a few only, or for none. Waiting candidates are ranked by a
sample where simulations take long against the limit, else by the surrogate, which learns from each value. What was
never simulated is kept by name, so that the result can say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from reorder.base import Progress
from reorder.edges.machine.surrogate import CostFunction, Float64Array, Int64Array, Sampler, Surrogate
from reorder.edges.search.budget import Budget


@dataclass(frozen=True)
class CandidateLimits:
    """When candidates are sampled, and when they are simulated.

    grace_s: seconds for all constructions whatever the limit, and beyond a limit for those that may be the best of all.
    sample: connections of a sample. probe: connections of a shorter one, which tells how long each takes. least_ratio:
    sample only orders that are this many times as long as a sample. memory_rows: the connections of each quarter of a
    sample, in values that fast memory holds. simulate_all: simulate all constructions without samples if that takes at
    most this share of the limit, or a simulation takes less than `gain` samples. reserve: share of the limit kept at
    most for candidates that wait. leaders: orders that are simulated in other layouts.
    """

    grace_s: float = 0.8
    sample: int = 2048
    probe: int = 256
    least_ratio: int = 4
    memory_rows: int = 2
    simulate_all: float = 0.3
    gain: float = 2.0
    reserve: float = 0.5
    leaders: int = 2


LIMITS = CandidateLimits()


@dataclass
class CandidatePool:
    """Every order that was evaluated, and its value; the best one; the curve of best values; orders that wait.

    sampler: None where a sample is not worth its while. by_sample: whether not even one order can be evaluated in time,
    and values are those of samples. evaluated: value by a digest of the order. evaluation_s,
    sample_s: what the simulation and a sample took lately, in seconds of the budget. ends: share of the time limit for
    searches. waiting: digest -> (order, its counts), constructions until the simulation has them. names: of each order
    that is a construction, by digest. leaders: the best few orders with their values; plain: the one that a search for
    I/Os alone found. estimates: of samples, by digest. missed: constructions there was no time to make.
    """

    cost_of: CostFunction
    budget: Budget
    surrogate: Surrogate
    progress: Progress | None = None
    sampler: Sampler | None = None
    best: Int64Array | None = None
    value: float = math.inf
    found_by: str = ""
    by_sample: bool = False
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    evaluated: dict[bytes, float] = field(default_factory=dict)
    leaders: list[tuple[float, Int64Array]] = field(default_factory=list)
    plain: tuple[float, Int64Array] | None = None
    evaluation_s: float = 0.0
    sample_s: float = 0.0
    ends: float = 1.0
    waiting: dict[bytes, tuple[Int64Array, Float64Array]] = field(default_factory=dict)
    names: dict[bytes, list[str]] = field(default_factory=dict)
    estimates: dict[bytes, float] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = self.sample_size
        if self.budget.limit_s is None or LIMITS.least_ratio * size > self.surrogate.network.n_connections:
            self.sampler = None

    @property
    def sample_size(self) -> int:
        """Return the connections of a sample: more where fast memory holds many rows, which each stretch fetches."""
        return max(LIMITS.sample, 4 * LIMITS.memory_rows * self.surrogate.shape.memory)

    def offer(self, edges: Int64Array, found_by: str) -> float:
        """Evaluate an order, keep it if it is the best so far, and let the surrogate learn from it."""
        key = _digest(edges)
        if key not in self.evaluated:
            self._evaluate(key, edges, self.surrogate.counts(edges), found_by)
        return self.evaluated[key]

    def _evaluate(self, key: bytes, edges: Int64Array, counts: Float64Array, found_by: str) -> None:
        began = self.budget.spent()
        value = self.estimate(key, edges, counts) if self.by_sample else self.cost_of(edges)
        if not self.by_sample:
            self.evaluation_s = self.budget.spent() - began
        self.evaluated[key] = value
        self.leaders = sorted([*self.leaders, (value, edges)], key=lambda one: one[0])[: LIMITS.leaders]
        self.surrogate.learn(counts, value)
        if value < self.value:
            self.best, self.value, self.found_by = edges, value, found_by
            self.curve.append((len(self.evaluated), self.budget.spent(), value))
        if self.progress is not None:
            limit = self.budget.limit_s
            share = round(1000 * min(1.0, self.budget.spent() / limit)) if limit else len(self.evaluated)
            self.progress(share, 1000 if limit else None, f"{len(self.evaluated)} orders tried")

    def estimate(self, key: bytes, edges: Int64Array, counts: Float64Array) -> float:
        """Return what a sample says that an order costs: its own cost by how the counts of both relate."""
        assert self.sampler is not None
        if key not in self.estimates:
            began = self.budget.spent()
            part, value = self.sampler(edges, self.sample_size)
            its = Surrogate(part, self.surrogate.shape).counts(np.arange(part.n_connections))
            weights = self.surrogate.prior[:-1]
            self.estimates[key] = value * float((weights @ counts[:-1]) / (weights @ its[:-1]))
            self.sample_s = self.budget.spent() - began
        return self.estimates[key]

    def measure(self, orders: int) -> None:
        """Learn from samples of a construction that waits how long the simulation would take, and from the simulation
        where that leaves time. If it is too long for so many orders they are all to be sampled first, else none; none
        either where a sample takes as long."""
        if self.sampler is None:
            return
        key, (edges, counts) = next(iter(self.waiting.items()))
        self.sampler(edges, LIMITS.probe)  # the first one prepares what all need
        began = self.budget.spent()
        self.sampler(edges, LIMITS.probe)
        short_s = self.budget.spent() - began
        self.estimate(key, edges, counts)
        each_s = max(self.sample_s - short_s, self.sample_s / 4) / (self.sample_size - LIMITS.probe)
        self.evaluation_s = each_s * self.surrogate.network.n_connections
        if not self.fits(LIMITS.simulate_all, orders) and self.before(LIMITS.simulate_all):
            self.call(key)
        if self.fits(LIMITS.simulate_all, orders) or self.evaluation_s < LIMITS.gain * self.sample_s:
            self.sampler = None

    def sample_waiting(self) -> None:
        """Sample what waits, as far as the simulation has time for two orders after that, or has none in any case."""
        if self.sampler is None:
            return
        for key, waits in self.waiting.items():
            each_s = self.sample_s + (0 if self.too_slow else 2 * self.evaluation_s)
            if self.before(1.0, LIMITS.grace_s, each_s):
                self.estimate(key, *waits)

    @property
    def too_slow(self) -> bool:
        return not self.before(1.0, LIMITS.grace_s, 2 * self.evaluation_s)

    def decide(self) -> None:
        """Let samples decide if the simulation has no time for two orders; what was sampled has its value then."""
        if self.sampler is None or not self.too_slow:
            return
        self.by_sample = True
        for key in [key for key in self.waiting if key in self.estimates]:
            self.call(key)

    def before(self, share: float, more_s: float = 0.0, each_s: float | None = None) -> bool:
        """Whether the simulation (or what takes `each_s`) would be done before this share of the time limit and
        `more_s` seconds; always without a limit."""
        limit = self.budget.limit_s
        took = (self.sample_s if self.by_sample else self.evaluation_s) if each_s is None else each_s
        return limit is None or self.budget.spent() + took < share * limit + more_s

    def fits(self, share: float, orders: int) -> bool:
        """Whether the simulation would be done with so many orders before this share of the time limit, or a grace."""
        each_s = orders * self.evaluation_s
        return self.before(share, each_s=each_s) or self.before(0.0, LIMITS.grace_s, each_s)

    def wait(self, name: str, edges: Int64Array) -> bytes:
        """Let a construction wait for the simulation; return its digest."""
        key = _digest(edges)
        self.names.setdefault(key, []).append(name)
        if key not in self.evaluated and key not in self.waiting:
            self.waiting[key] = edges, self.surrogate.counts(edges)
        return key

    def expected(self) -> dict[bytes, float]:
        """Return what is expected of each construction that waits, by digest."""
        off = [
            self.evaluated[key] / sampled
            for key, sampled in self.estimates.items()
            if key in self.evaluated and sampled
        ]
        scale = float(np.median(off)) if off else 1.0
        return {
            key: scale * self.estimates[key] if key in self.estimates else self.surrogate.predict(counts)
            for key, (_, counts) in self.waiting.items()
        }

    def likeliest(self) -> tuple[bytes, float]:
        """Return the digest of the construction that waits and that is expected to be best, and what is expected; the
        surrogate does not compare with samples, so what was not sampled comes after."""
        expected = self.expected()
        key = min(expected, key=lambda key: (bool(self.estimates) and key not in self.estimates, expected[key]))
        return key, expected[key]

    def may_win(self, expected: float) -> bool:
        """Whether the best order is no further below what is expected than expectations err."""
        return expected <= (1 + self.surrogate.error) * self.value

    def call(self, key: bytes) -> None:
        self._evaluate(key, *self.waiting.pop(key), self.names[key][0])

    def evaluate_waiting(self, share: float) -> None:
        """Evaluate what waits, the likeliest first, until this share of the time limit or a grace have passed; then,
        until a grace after the limit itself, what may still be the best."""
        while self.waiting:
            key, expected = self.likeliest()
            within = self.before(share) or self.before(0.0, LIMITS.grace_s)
            if not within and not (self.may_win(expected) and self.before(1.0, LIMITS.grace_s)):
                return
            self.call(key)

    @property
    def constructions(self) -> dict[str, float]:
        """Return the values of constructions that were evaluated, by name."""
        return {
            name: self.evaluated[key] for key, names in self.names.items() if key in self.evaluated for name in names
        }

    def keep_time(self) -> None:
        """Let searches end early enough for what waits, but leave them half of the time: on a scratchpad, whose moves
        are counted exactly, for what may win; on a cache for all, as far as that goes, the likeliest first."""
        if self.budget.limit_s:
            cached = self.surrogate.shape.cache is not None
            waits = sum(cached or self.may_win(expected) for expected in self.expected().values())
            rest = min(LIMITS.reserve, waits * self.evaluation_s / self.budget.limit_s)
            self.ends = min(self.ends, 1 - rest)

    @property
    def not_evaluated(self) -> tuple[str, ...]:
        """Return the constructions that the simulation has not seen, by name."""
        seen = () if self.by_sample else self.evaluated
        return (*(name for key, names in self.names.items() if key not in seen for name in names), *self.missed)


def _digest(edges: Int64Array) -> bytes:
    return blake2b(np.ascontiguousarray(edges).data, digest_size=16).digest()
