"""Timing that survives a busy machine: thread CPU time, shuffled rounds, medians of per-round ratios."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.base.progress import Progress

Step = Callable[[], object]
LEAST_ROUNDS = 11
WARM_UP = 3


@dataclass(frozen=True, eq=False)
class Rounds:
    """seconds[name]: float64[rounds], thread CPU seconds of one call, one value per round; same length for all.

    other_cpu: CPU time that the process spent outside the measuring thread, as a share of what was measured.
    """

    seconds: Mapping[str, npt.NDArray[np.float64]]
    other_cpu: float

    def median_s(self, name: str) -> float:
        return float(np.median(self.seconds[name]))

    def ratio(self, name: str, to: str) -> float:
        return float(np.median(self.seconds[name] / self.seconds[to]))

    def spread(self, name: str, to: str) -> tuple[float, float]:
        low, high = np.percentile(self.seconds[name] / self.seconds[to], [10, 90])
        return float(low), float(high)


@contextmanager
def one_core() -> Iterator[None]:
    """Pin the process to one of its cores (the last one) for as long as it lasts, where that can be done."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure(
    steps: Mapping[str, Step],
    *,
    rounds: int = LEAST_ROUNDS,
    sample_s: float = 0.005,
    seed: int = 0,
    progress: Progress | None = None,
) -> Rounds:
    """Time every step once a round, in a new random order; a sample is as many calls as fill `sample_s`."""
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < LEAST_ROUNDS:
        raise InputError(f"rounds must be an integer of at least {LEAST_ROUNDS}, not {rounds!r}")
    if not 0 < sample_s < 60:
        raise InputError(f"sample_s is {sample_s}: a number of seconds above 0 and below 60 is needed")
    names = list(steps)
    calls = {name: _calls(steps[name], sample_s) for name in names}
    seconds = {name: np.empty(rounds) for name in names}
    rng = np.random.default_rng(seed)
    process, measured = time.process_time(), 0.0
    for number in range(rounds):
        for position in rng.permutation(len(names)).tolist():
            name = names[position]
            step, repeat = steps[name], range(calls[name])
            step()  # brings its own data back into the caches
            started = time.thread_time()
            for _ in repeat:
                step()
            seconds[name][number] = (time.thread_time() - started) / len(repeat)
            measured += seconds[name][number] * (len(repeat) + 1)
        if progress:
            progress(number + 1, rounds, "rounds")
    spent = time.process_time() - process
    return Rounds(seconds, max(0.0, spent / measured - 1))


def _calls(step: Step, sample_s: float) -> int:
    for _ in range(WARM_UP):
        step()
    least = float("inf")
    for _ in range(WARM_UP):
        started = time.thread_time()
        step()
        least = min(least, time.thread_time() - started)
    return max(1, min(100_000, round(sample_s / max(least, 1e-7))))
