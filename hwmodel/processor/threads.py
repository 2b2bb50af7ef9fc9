"""Threads that work for one compiled network: started at its first call, ended with it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from cython_ext.inference.team import Team


class Threads:
    """The caller and `count` - 1 others."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._team: tuple[int, Team | None] = (0, None)  # process, Team

    def each(self, part: Callable[[int], None]) -> None:
        """Call part(number) in every thread, number 0 in the caller's, and wait for all."""
        if self.count == 1:
            part(0)
            return
        others = [self._pool.submit(part, number) for number in range(1, self.count)]
        part(0)
        for other in others:
            other.result()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        # one worker for every thread but the caller's: all must run at once where they wait for each other
        return ThreadPoolExecutor(self.count - 1, thread_name_prefix="edgewatt-inference")

    def team(self, passes: Any, lanes: int) -> Team:
        """Return threads that share the lanes of passes, new ones in a process that was forked from this one."""
        if self._team[0] != os.getpid():
            made = Team(passes, self.count, lanes)
            for number in range(1, self.count):
                name = f"edgewatt-inference-{number}"
                threading.Thread(target=made.serve, args=(number,), name=name, daemon=True).start()
            weakref.finalize(self, made.close)
            self._team = os.getpid(), made
        team = self._team[1]
        assert team is not None
        return team
