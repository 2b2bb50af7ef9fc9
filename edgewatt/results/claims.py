"""Who computes which point: several processes, on one machine or many, share a store and do no point twice.

A claim is a lock on a file of its own, so that it ends with the process that holds it, however that ends. Where the
file system knows no locks everything can be claimed, and two sweeps may compute the same.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType


class Claims:
    """The claims of this process in a folder; leaving the block gives all of them up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: dict[str, int] = {}

    def __enter__(self) -> Claims:
        with contextlib.suppress(OSError):  # a store that cannot be written is reported by its first record
            self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name in list(self._held):
            self.give_up(name)

    def take(self, name: str) -> bool:
        """Claim a point; False if another process has it."""
        try:
            import fcntl
        except ImportError:  # not a POSIX system
            return True
        path = os.path.join(self.folder, name)
        try:
            while True:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if _is_at(path, descriptor):  # not a file that its last holder has deleted meanwhile
                        self._held[name] = descriptor
                        return True
                except BaseException:
                    os.close(descriptor)
                    raise
                os.close(descriptor)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def give_up(self, name: str) -> None:
        """End a claim; nothing happens where there is none."""
        descriptor = self._held.pop(name, None)
        if descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, name))
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
