"""What a prefetcher of a cache level is: a class that registers in PREFETCHERS in `prefetchers/`.

After each line look-up of demand it says with which step to fetch on: the level then fetches `degree` lines, the first
of them `distance` steps ahead. It is compiled (a file cython_ext/cache/prefetchers/prefetch_NAME.h) or plain Python.
"""

from __future__ import annotations

from typing import Any, ClassVar

from traces.base.registry import Registry


class Prefetcher:
    """What one level prefetches.

    fetches: False for the one that never does. kernel: name of a compiled one; None: `step` decides.
    """

    fetches: ClassVar[bool] = True
    kernel: ClassVar[Any] = None

    def __init__(self, table_entries: int) -> None:
        self.table_entries = table_entries

    def step(self, stream: int, line: int, missed: bool, first_use: bool) -> int:
        """Return the step in lines to fetch on with, 0 for none, after a look-up of `line` by a stream.

        missed: it missed and filled the line. first_use: it is the first hit of a prefetched line.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither a kernel nor a method `step`")


PREFETCHERS: Registry[type[Prefetcher]] = Registry(
    "prefetcher", "edgewatt.prefetchers", folder="hwmodel.caches.prefetchers", subclasses_of=Prefetcher
)
