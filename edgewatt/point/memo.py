"""What points share: an ordering, a tuple order or a replay is computed once per identity and kept in the store.

Each result of a step is one npz file of arrays under ``stages/STEP/KEY.npz``. A lock file makes a second worker wait
for the first instead of repeating its work; the lock dies with the process that holds it.
"""

from __future__ import annotations

import contextlib
import os
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt._version import __version__
from edgewatt.results.record import content_hash

Arrays = dict[str, np.ndarray]

_VERSION = 2  # of what is kept: raise it when the meaning of a step's result changes
_HELD_BYTES = 256 << 20  # arrays kept in memory per process


class Memo:
    """Results of steps by identity, in memory and (with a folder) on disk. `made` counts what was computed."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder) if folder is not None else None
        self.made: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self._held: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._held_bytes = 0

    def arrays(self, kind: str, identity: Any, make: Callable[[], Mapping[str, np.ndarray]]) -> Arrays:
        """Return the arrays of the step `kind` for an identity (JSON values), computing them only if nobody has."""
        key = content_hash([kind, _VERSION, __version__, identity])
        held = self._held.get((kind, key))
        if held is not None:
            self._held.move_to_end((kind, key))
            return dict(held)
        if self.folder is None:
            arrays = self._make(kind, make)
        else:
            path = self.folder / kind / f"{key}.npz"
            found = _read(path)
            if found is None:
                with _locked(path.with_suffix(".lock")):
                    found = _read(path)  # another worker may have finished it while we waited
                    if found is None:
                        found = self._make(kind, make)
                        _write(path, found)
            arrays = found
        self._hold((kind, key), arrays)
        return dict(arrays)

    def value(self, kind: str, identity: Any, make: Callable[[], Any]) -> Any:
        """Return an object that is cheap to make again: kept in this process only (a network, a part)."""
        key = content_hash([kind, identity])
        if (kind, key) not in self._held:
            self._hold((kind, key), self._make(kind, make))
        self._held.move_to_end((kind, key))
        return self._held[kind, key]

    def _make(self, kind: str, make: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = make()
        self.made[kind] = self.made.get(kind, 0) + 1
        self.seconds[kind] = self.seconds.get(kind, 0.0) + time.perf_counter() - start
        return dict(result) if isinstance(result, Mapping) else result

    def _hold(self, key: tuple[str, str], value: Any) -> None:
        self._held[key] = value
        self._held_bytes += _size(value)
        while self._held_bytes > _HELD_BYTES and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._held_bytes -= _size(dropped)


def _size(value: Any) -> int:
    return sum(array.nbytes for array in value.values()) if isinstance(value, dict) else 1 << 20


def _read(path: Path) -> Arrays | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        path.unlink(missing_ok=True)  # damaged (a zip holds checksums): compute it again
        return None


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Keep a result for others. A disk that is full costs repeated work here, and is reported by the record's write."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            np.savez(stream, **dict(arrays))  # type: ignore[arg-type]
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock on a file; where locks are not supported two workers may compute the same."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            path.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(path.open("a"))
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
