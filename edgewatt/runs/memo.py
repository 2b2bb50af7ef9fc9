"""What points share: an ordering, a tuple order or a replay is computed once per identity and kept in the store.

Each result of a step is one npz file of arrays under ``stages/STEP/KEY.npz``, sealed at its end by a hash over key and
content. A locked byte of ``stages/locks`` makes a second worker wait for the first instead of repeating its work; the
lock dies with the process that holds it. A file that is damaged, or holds what the step cannot have made, is set aside
and made again. What was made in less than WORTH_S has no file, unless others are known to need it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt._version import COUNTS_VERSION, __version__
from edgewatt.results.record import canonical_json, hash_of_text
from edgewatt.results.store import byte_of, lock, open_locks
from traces.base.archive import read_npz
from traces.base.errors import InputError
from traces.base.files import need_regular, replace_file, set_aside
from traces.base.memory import read_within

Arrays = dict[str, np.ndarray]
Check = Callable[[Arrays], object]

WORTH_S = 0.02
"""A result that took so long is worth a file; one costs 0.5 to 2 ms, on a disk that others use."""

_SEAL_BYTES = 64
_VERSION = 4  # of what is kept: raise it when the meaning of a step's result changes
_HELD_BYTES = 256 << 20  # arrays kept in memory per process


class Memo:
    """Results of steps by identity, in memory and (with a folder) on disk."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder) if folder is not None else None
        self.made: dict[str, int] = {}
        self.damaged: list[str] = []
        self._held: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._held_bytes = 0

    def arrays(
        self,
        kind: str,
        identity: Any,
        make: Callable[[], Mapping[str, np.ndarray]],
        check: Check | None = None,
        *,
        needed: bool = False,
    ) -> Arrays:
        """Return the arrays of the step `kind` for an identity (JSON values), computed only if they are not there yet.

        check: raises InputError for arrays from a file that the step cannot have made. needed: by others, so that they
        are kept however soon they were made.
        """
        name = kind, _text(identity)
        held = self._held.get(name)
        if held is not None:
            self._held.move_to_end(name)
            return dict(held)
        if self.folder is None:
            arrays = self._make(kind, make)
        else:
            key = hash_of_text(f'["{kind}",{_VERSION},{COUNTS_VERSION},"{__version__}",{name[1]}]')
            path = Path(self.folder, kind, f"{key}.npz")
            stored = _read(path, key, check)
            if not isinstance(stored, dict):
                with _locked(self.folder, key):
                    stored = _read(path, key, check)  # another worker may have finished it while we waited
                    if isinstance(stored, InputError):
                        set_aside(path)
                        self.damaged.append(str(path))
                    if not isinstance(stored, dict):
                        begun = time.perf_counter()
                        stored = self._make(kind, make)
                        if needed or time.perf_counter() - begun >= WORTH_S:
                            _write(path, key, stored)
            arrays = stored
        self._hold(name, arrays)
        return dict(arrays)

    def value(self, kind: str, identity: Any, make: Callable[[], Any]) -> Any:
        """Return an object that is cheap to make again: kept in this process only (a network, a part)."""
        key = _text(identity)
        if (kind, key) not in self._held:
            self._hold((kind, key), self._make(kind, make))
        self._held.move_to_end((kind, key))
        return self._held[kind, key]

    def _make(self, kind: str, make: Callable[[], Any]) -> Any:
        result = make()
        self.made[kind] = self.made.get(kind, 0) + 1
        return dict(result) if isinstance(result, Mapping) else result

    def _hold(self, key: tuple[str, str], value: Any) -> None:
        self._held[key] = value
        self._held_bytes += _size(value)
        while self._held_bytes > _HELD_BYTES and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._held_bytes -= _size(dropped)


def _text(identity: Any) -> str:
    return f'"{identity}"' if isinstance(identity, str) and identity.isalnum() else canonical_json(identity)


def _size(value: Any) -> int:
    return sum(array.nbytes for array in value.values()) if isinstance(value, dict) else 1 << 20


def _read(path: Path, key: str, check: Check | None) -> Arrays | InputError | None:
    try:
        need_regular(path)
        content = read_within(path)
        if content[-_SEAL_BYTES:] != _seal(key, memoryview(content)[:-_SEAL_BYTES]):
            raise InputError(f"{path}: its seal does not fit what it holds: the file is damaged")
        arrays = read_npz(path, content=content)
        if check is not None:
            check(arrays)
    except OSError:
        return None
    except InputError as error:
        return error if path.exists() else None
    return arrays


def _write(path: Path, key: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Keep a result for others. A disk that is full costs repeated work here, and is reported by the record's write."""
    with io.BytesIO() as whole, contextlib.suppress(OSError):
        np.savez(whole, **dict(arrays))  # type: ignore[arg-type]
        with whole.getbuffer() as content:
            seal = _seal(key, content)
        whole.write(seal)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, whole.getvalue())  # a copy: what fails may still hold it when the buffer closes


def _seal(key: str, content: memoryview) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(content)
    return digest.hexdigest().encode()


@contextlib.contextmanager
def _locked(folder: Path, key: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            try:
                descriptor = open_locks(folder / "locks")
            except FileNotFoundError:
                folder.mkdir(parents=True, exist_ok=True)
                descriptor = open_locks(folder / "locks")
            stack.callback(os.close, descriptor)  # which ends the lock
            lock(descriptor, byte_of(key), wait=True)
        yield
