"""Medians with distribution-free confidence intervals from order statistics; what is left to compute, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from papers.figure import Figure, seconds_left
from traces.base.workers import available_cores

MEASURED_ON = "an AMD EPYC VM (Zen 5), 2 cores, 2026-11-26"


@dataclass(frozen=True)
class Median:
    """Median of n values and an interval that holds the population's median with probability `coverage`."""

    median: float
    low: float
    high: float
    n: int
    coverage: float


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Median:
    """Return the median and its narrowest symmetric order-statistic interval of at least the given confidence.

    The interval from the k-th smallest to the k-th largest of n independent values holds the median with probability
    1 - 2 P(Bin(n, 1/2) < k), whatever their (continuous) distribution. Below six values no interval reaches 95 %: then
    the extremes are returned with the coverage they have, 1 - 2^(1 - n), which is 93.75 % for five.
    """
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        raise ValueError("no values")
    k, tail = 1, 2.0**-n  # tail = P(Bin(n, 1/2) < k)
    while 2 * (k + 1) <= n and 1 - 2 * (tail + comb(n, k) * 2.0**-n) >= confidence:
        tail += comb(n, k) * 2.0**-n
        k += 1
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return Median(middle, ordered[k - 1], ordered[n - k], n, max(0.0, 1 - 2 * tail))


def interval_words(n: int, confidence: float = 0.95) -> str:
    """Say what the interval of n values is and what it covers."""
    interval = median_interval(range(n), confidence)
    if n == 1:
        return "one network: no interval"
    covers = f"coverage {100 * interval.coverage:.4g} %"
    if interval.coverage >= confidence:
        return f"intervals: order statistics {interval.low + 1:g} to {interval.high + 1:g} of {n}, {covers}"
    return f"intervals: least to greatest of {n} networks, {covers} (95 % would take six)"


def words(seconds: float) -> str:
    """Return a span of time as people say it: 50 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def time_left(figures: Sequence[Figure], results: str, workers: int | None, **settings: Any) -> str:
    """Say about how long the figures will take, '' for less than half a minute."""
    cores = workers or available_cores()
    left = [seconds_left(figure, results, **settings) for figure in figures]
    alone = sum(sum(jobs.values()) for figure, jobs in zip(figures, left, strict=True) if figure.alone)
    total = sum({job: seconds for jobs in left for job, seconds in jobs.items()}.values())  # figures share jobs
    shared = f", {words(alone + (total - alone) / cores)} with {cores} workers" if cores > 1 else ""
    return f"about {words(total)} of CPU time to go{shared} (as measured on {MEASURED_ON})" if total > 30 else ""
