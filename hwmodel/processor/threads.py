"""Threads that work for one compiled network: started at its first call, ended with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class Threads:
    """The caller and `count` - 1 others."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0  # that started the pool: one that is forked from it has none

    def each(self, part: Callable[[int], None]) -> None:
        """Call part(number) in every thread, number 0 in the caller's, and wait for all."""
        if self.count > 1 and (self._pool is None or self._process != os.getpid()):
            self._pool = ThreadPoolExecutor(self.count - 1, thread_name_prefix="edgewatt-inference")
            self._process = os.getpid()
        others = [self._pool.submit(part, number) for number in range(1, self.count)] if self._pool else []
        part(0)
        for other in others:
            other.result()
