"""The store: a folder with one JSON file a point, written whole or not at all.

    records/HASH.json   finished points           failures/HASH.json   points that raised, with their traceback
    sweeps/HASH.json    the points of each sweep        stages/              what points share
    claims/points       a byte for each point, locked by the process that computes it

Several sweeps may work on one store at once: a file appears complete under its final name, and two writers of one point
write the same canonical part.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from edgewatt._version import COUNTS_VERSION
from edgewatt.results.record import (
    NewerRecordError,
    Record,
    canonical_json,
    content_hash,
    hash_of_text,
    version_as_written,
)
from traces.base.errors import EdgewattError, InputError
from traces.base.files import create_beside, need_regular, own_folder, replace_file, sync_folder
from traces.base.memory import JSON_TIMES, read_within


class StoreError(EdgewattError):
    """The store cannot be written: disk full, no permission. What is finished is kept."""


class Store:
    """Records and failures in one folder. `fsync` makes each record survive a power cut, for some milliseconds.

    shared: several processes write many records at once, so each creates files in a folder of its own (`tidy`).
    """

    def __init__(self, folder: str | Path, *, fsync: bool = False, shared: bool = False) -> None:
        self.folder = Path(folder)
        self.fsync, self.shared = fsync, shared
        self.records = self.folder / "records"
        self.failures = self.folder / "failures"
        self.plans = self.folder / "sweeps"

    def open(self) -> Store:
        self._refuse_links()
        self._made = [each for each in (self.folder, self.records, self.failures, self.plans) if not each.exists()]
        for folder in (self.records, self.failures, self.plans):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise InputError(
                    f"{folder}: the results cannot be stored here ({reason}); choose another folder"
                ) from error
        return self

    def _refuse_links(self) -> None:
        """Raise InputError where a link would have this store write, or delete, in a folder that is not its own."""
        folders = [self.records, self.failures, self.plans, self.folder / "claims", self.folder / "stages"]
        for folder in folders[3:]:
            folders += folder.glob("*")  # behind it: a folder that is a link is refused before what it holds
        if link := next((path for path in folders if path.is_symlink()), None):
            raise InputError(f"{link}: a link, where results need a place of their own: remove it")

    def drop_empty(self) -> None:
        """Remove the folders that `open` made and that still hold nothing."""
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def path(self, config_hash: str) -> Path:
        return self.records / f"{config_hash}.json"

    def put(self, record: Record) -> Path:
        """Write a record. Raises StoreError naming the file if it cannot be written; nothing half-written is left."""
        path = self.path(record.hash)
        self._write(path, record.to_bytes())
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.failures, path.name))
        return path

    def put_failure(self, config_hash: str, failure: dict[str, Any]) -> Path:
        path = self.failures / f"{config_hash}.json"
        self._write(path, (canonical_json(failure) + "\n").encode("utf-8", "surrogatepass"))
        return path

    def put_plan(self, name: str, hashes: list[str]) -> None:
        plan = {"name": name, "points": hashes}
        path = self.plans / f"{content_hash(plan)}.json"
        self._write(path, (canonical_json(plan) + "\n").encode("utf-8", "surrogatepass"))
        with contextlib.suppress(OSError):  # the last one noted is the newest, even after the clock was set back
            others = [other for other in self.plans.glob("[!.]*.json") if other != path]
            newest = max((other.stat().st_mtime_ns for other in others), default=0)
            if path.stat().st_mtime_ns <= newest:
                os.utime(path, ns=(newest + 1, newest + 1))

    def plan(self) -> tuple[str, list[str]]:
        newest = sorted(self.plans.glob("[!.]*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in reversed(newest):
            try:
                plan = json.loads(_bytes(path).decode("utf-8", "surrogatepass"))
                return str(plan["name"]), [str(name) for name in plan["points"]]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue
        return "", []

    def get(self, config_hash: str) -> Record | None:
        path = self.path(config_hash)
        try:
            raw = _bytes(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
        record = Record.from_bytes(raw, str(path))
        if record.hash != config_hash:
            raise InputError(f"{path}: holds the record of another point ({record.hash})")
        return record

    def is_current(self, config_hash: str) -> bool:
        """Whether a finished point is there that was counted as today; an older one is left to others."""
        path = self.path(config_hash)
        version = None
        with contextlib.suppress(OSError):
            version = version_as_written(_bytes(path), config_hash)
        if version is None:
            record = self.get(config_hash)  # which says what is wrong with it
            version = 0 if record is None else record.counts_version
        if version > COUNTS_VERSION:
            raise NewerRecordError(
                f"{path}: counts of version {version}, this edgewatt counts by version {COUNTS_VERSION}: update it, or "
                "choose another results folder"
            )
        return version == COUNTS_VERSION

    def hashes(self) -> list[str]:
        return _names(self.records)

    def failed(self) -> dict[str, dict[str, Any]]:
        return {name: self.failure(name) for name in _names(self.failures)}

    def failure(self, config_hash: str) -> dict[str, Any]:
        try:
            failure = _bytes(self.failures / f"{config_hash}.json")
            reason = json.loads(failure.decode("utf-8", "surrogatepass"))
        except (OSError, ValueError, RecursionError):
            reason = None
        return reason if isinstance(reason, dict) else {"error": "the failure's own record is damaged", "traceback": ""}

    def failure_mark(self, config_hash: str) -> tuple[int, int] | None:
        try:
            state = os.stat(os.path.join(self.failures, f"{config_hash}.json"))
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns

    def failure_marks(self) -> dict[str, tuple[int, int] | None]:
        return {name: self.failure_mark(name) for name in _names(self.failures)}

    def holds(self, config_hash: str) -> bool:
        return os.path.exists(os.path.join(self.records, f"{config_hash}.json"))

    def __iter__(self) -> Iterator[Record]:
        """Yield all finished points by hash. Raises InputError at the first damaged record."""
        for name in self.hashes():
            record = self.get(name)
            if record is not None:
                yield record

    def _write(self, path: Path, data: bytes) -> None:
        own = own_folder(path.parent)
        try:
            replace_file(path, data, fsync=self.fsync, within=own if self.shared and not own.is_symlink() else None)
            if self.fsync:
                sync_folder(path.parent)
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be written ({error.strerror or error}); what is finished is kept, "
                "make room and run the same command again"
            ) from error

    def tidy(self) -> None:
        """Remove the folders of processes that wrote records, where nothing is left in them; who still writes makes its
        own again."""
        for path in self.records.glob(".*"):
            with contextlib.suppress(OSError):  # a file, or somebody's who is at work
                path.rmdir()

    def sweep_leftovers(self, older_than_s: float = 3600.0) -> None:
        """Delete temporary files that a killed process left behind.

        Ages are differences between times that the folder's own machine gave. Where its clock was set, the file of a
        process at work may go as well: `replace_file` then writes it again.
        """
        own = [path for path in self.records.glob(".*") if path.is_dir() and not path.is_symlink()]
        folders = [*own, self.records, self.failures, self.plans, *(self.folder / "stages").glob("*")]
        for folder in folders:
            leftovers = [*folder.glob(".*.json.*"), *folder.glob(".*.npz.*")]
            if not leftovers:
                continue
            try:
                descriptor, name = create_beside(folder / "now")
                os.close(descriptor)
                now = os.stat(name).st_mtime
                os.unlink(name)
            except OSError:
                continue  # nothing can be written here: nothing is deleted either
            for path in leftovers:
                with contextlib.suppress(OSError):  # another sweep was faster
                    if now - path.lstat().st_mtime > older_than_s:
                        path.unlink()
        self.tidy()


def _names(folder: Path) -> list[str]:
    try:
        return sorted(e.name[:-5] for e in os.scandir(folder) if e.name.endswith(".json") and e.name[0] != ".")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror or error})") from error


def open_results(folder: str | Path) -> Store:
    store = Store(folder)
    if not Path(folder).exists():
        raise InputError(f"{folder}: no such file or folder")
    if not store.records.is_dir():
        raise InputError(f"{folder}: no results here: expected a folder with 'records/', as `edgewatt sweep` writes it")
    return store


class StoredRecords(Sequence[Record]):
    def __init__(self, store: Store, hashes: Sequence[str]) -> None:
        self.store, self.hashes = store, hashes

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return StoredRecords(self.store, self.hashes[index])
        record = self.store.get(self.hashes[index])
        if record is None:
            raise InputError(f"{self.store.path(self.hashes[index])}: was there a moment ago and is gone")
        return record


def _bytes(path: Path) -> bytes:
    need_regular(path)
    return read_within(path, JSON_TIMES)


def open_records(path: str | Path) -> Sequence[Record]:
    path = Path(path)
    if path.is_file():
        try:
            return [Record.from_bytes(read_within(path, JSON_TIMES), str(path))]
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    store = open_results(path)
    finished = store.hashes()
    known = set(finished)
    order = [name for name in store.plan()[1] if name in known] or finished
    if not order:
        raise InputError(f"{path}: no finished points yet")
    return StoredRecords(store, order)


class Claims:
    """The points that this process computes; leaving the block gives all of them up.

    A claim is a lock on one byte of a file, so that it ends with the process that holds it, however that ends. Where
    the file system knows no locks everything can be claimed, and two sweeps may compute the same.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = -1
        self._held: set[str] = set()

    def __enter__(self) -> Claims:
        with contextlib.suppress(OSError):  # a store that cannot be written is reported by its first record
            self.folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = open_locks(self.folder / "points")
        return self

    def __exit__(self, *error: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)  # which ends its locks
        self._descriptor = -1
        self._held.clear()

    def take(self, name: str) -> bool:
        if name in self._held:
            return False
        try:
            free = self._descriptor < 0 or lock(self._descriptor, byte_of(name))
        except (OSError, ImportError):  # no locks here, or not a POSIX system
            return True
        if free:
            self._held.add(name)
        return free

    def give_up(self, name: str) -> None:
        if name in self._held:
            self._held.remove(name)
            with contextlib.suppress(OSError, ImportError):
                lock(self._descriptor, byte_of(name), end=True)


@lru_cache(maxsize=1024)
def byte_of(name: str) -> int:
    """Return the byte that stands for a point: a file may end before it."""
    return int(hash_of_text(name)[:15], 16)


def open_locks(path: Path) -> int:
    """Open a file whose bytes are locked, made where it is missing. Raises OSError, for a link as well."""
    return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def lock(descriptor: int, byte: int, *, end: bool = False, wait: bool = False) -> bool:
    """Lock a byte of a file for this open file, or end its lock; False if it is locked elsewhere. Raises OSError.

    wait: until it is not locked elsewhere any more.

    A lock of the process, all that systems other than Linux have, does not part two threads that share a store.
    """
    import fcntl

    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            kind = fcntl.F_UNLCK if end else fcntl.F_WRLCK
            how = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
            fcntl.fcntl(descriptor, how, struct.pack("hhqqi4x", kind, os.SEEK_SET, byte, 1, 0))
        else:
            kind = fcntl.LOCK_UN if end else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)
            fcntl.lockf(descriptor, kind, 1, byte)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True
