"""Who computes which point: several processes, on one machine or many, share a store and do no point twice.

A claim is a lock on one byte of a file, so that it ends with the process that holds it, however that ends. Where the
file system knows no locks everything can be claimed, and two sweeps may compute the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from pathlib import Path
from types import TracebackType

from edgewatt.results.record import hash_of_text

_WHOLE = (0, 0)  # a length of 0 reaches to the end, wherever that is


class Claims:
    """The claims of this process in a folder; leaving the block gives all of them up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = os.path.join(folder, "points")
        self._descriptor = -1
        self._file: tuple[int, int] | None = None  # which file it is open on
        self._held: set[str] = set()

    def __enter__(self) -> Claims:
        with contextlib.suppress(OSError):  # a store that cannot be written is reported by its first record
            self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.clear()
        with contextlib.suppress(OSError, ImportError):
            if self._descriptor >= 0 and lock(self._descriptor, _WHOLE) and self._is_there():
                os.unlink(self._path)
        self._close()

    def take(self, name: str) -> bool:
        """Claim a point; False if another process has it, or this one already."""
        if name in self._held:
            return False
        try:
            while True:
                if self._descriptor < 0:
                    self._open()
                if not lock(self._descriptor, byte_of(name)):
                    return False
                if self._is_there():
                    self._held.add(name)
                    return True
                self._close()  # its last holder has deleted it meanwhile, so that we hold nothing else in it
        except (OSError, ImportError):  # no locks here, or not a POSIX system
            return True

    def give_up(self, name: str) -> None:
        """End a claim; nothing happens where there is none."""
        if name in self._held:
            self._held.remove(name)
            with contextlib.suppress(OSError, ImportError):
                lock(self._descriptor, byte_of(name), end=True)

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        state = os.fstat(self._descriptor)
        self._file = state.st_dev, state.st_ino

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _is_there(self) -> bool:
        try:
            state = os.stat(self._path)
        except FileNotFoundError:
            return False
        return (state.st_dev, state.st_ino) == self._file


def byte_of(name: str) -> tuple[int, int]:
    """Return first byte and length of what stands for a point: a file may end before it."""
    return int(hash_of_text(name)[:15], 16), 1


def lock(descriptor: int, place: tuple[int, int], *, end: bool = False, wait: bool = False) -> bool:
    """Lock a place of a file for this open file, or end its lock; False if it is locked elsewhere. Raises OSError.

    wait: until it is not locked elsewhere any more.

    A lock of the process, all that systems other than Linux have, does not part two threads that share a store.
    """
    import fcntl

    start, length = place
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            kind = fcntl.F_UNLCK if end else fcntl.F_WRLCK
            how = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
            fcntl.fcntl(descriptor, how, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))
        else:
            fcntl.lockf(
                descriptor, fcntl.LOCK_UN if end else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), length, start
            )
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True
