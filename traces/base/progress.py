"""How work reports its progress, and a time limit that all work of one command shares."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from traces.base.errors import InputError

Progress = Callable[[int, int | None, str], None]
"""Called with (work done, total work or None where it is not known, short text)."""

REPORT_S = 0.1  # between two reports of progress


class Limit:
    """Wall-clock seconds from now on (None: none). reached: whether it has ended anything."""

    def __init__(self, seconds: float | None = None, progress: Progress | None = None) -> None:
        if seconds is not None and not seconds > 0:
            raise InputError(f"a time limit of {seconds} s: it must be above 0")
        self._progress, self._next = progress, 0.0
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.reached = False

    def over(self, done: int = 0, total: int | None = None, text: str = "") -> bool:
        now = time.monotonic()
        if self._progress is not None and text and now >= self._next:
            self._next = now + REPORT_S
            self._progress(done, total, text)
        self.reached = self.reached or now >= self._deadline
        return self.reached


def left_of(time_limit_s: float | None) -> Callable[[], float | None]:
    """Start a clock, before anything is read; the result says how many seconds are left of the limit, None without."""
    started = time.monotonic()
    if time_limit_s is None or not time_limit_s > 0:  # which is refused where it is used
        return lambda: time_limit_s
    return lambda: max(1e-9, time_limit_s - (time.monotonic() - started))
