"""The store: a folder with one JSON file a point, written whole or not at all.

    records/HASH.json   finished points           failures/HASH.json   points that raised, with their traceback
    sweeps/HASH.json    the points of each sweep        stages/              what points share
    claims/points       a byte for each point, locked by the process that computes it

Several sweeps may work on one store at once: a file appears complete under its final name, and two writers of one point
write the same canonical part.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewatt._version import COUNTS_VERSION
from edgewatt.results.record import Record, Sections, canonical_json, content_hash
from traces.base.errors import EdgewattError, InputError
from traces.base.files import create_beside, own_folder, replace_file
from traces.base.memory import read_within


class StoreError(EdgewattError):
    """The store cannot be written: disk full, no permission. What is finished is kept."""


class NewerCountsError(InputError):
    """A record was made by a newer edgewatt that counts otherwise."""


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
        """Make the folders. Raises InputError if that cannot be done."""
        for folder in (self.records, self.failures, self.plans):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise InputError(
                    f"{folder}: the results cannot be stored here ({reason}); choose another folder"
                ) from error
        return self

    def path(self, config_hash: str) -> Path:
        """Return where the record of a point lies."""
        return self.records / f"{config_hash}.json"

    def put(self, record: Record) -> Path:
        """Write a record. Raises StoreError naming the file if it cannot be written; nothing half-written is left."""
        path = self.path(record.hash)
        self._write(path, record.to_bytes())
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.failures, path.name))
        return path

    def put_failure(self, config_hash: str, failure: dict[str, Any]) -> Path:
        """Write why a point failed."""
        path = self.failures / f"{config_hash}.json"
        self._write(path, (canonical_json(failure) + "\n").encode("utf-8", "surrogatepass"))
        return path

    def put_plan(self, name: str, hashes: list[str]) -> None:
        """Note the points of a sweep in the order written; the first is the baseline of comparisons."""
        plan = {"name": name, "points": hashes}
        path = self.plans / f"{content_hash(plan)}.json"
        self._write(path, (canonical_json(plan) + "\n").encode("utf-8", "surrogatepass"))
        with contextlib.suppress(OSError):  # the last one noted is the newest, even after the clock was set back
            others = [other for other in self.plans.glob("[!.]*.json") if other != path]
            newest = max((other.stat().st_mtime_ns for other in others), default=0)
            if path.stat().st_mtime_ns <= newest:
                os.utime(path, ns=(newest + 1, newest + 1))

    def plan(self) -> tuple[str, list[str]]:
        """Return name and hashes of the sweep noted last; ("", []) if there is none."""
        newest = sorted(self.plans.glob("[!.]*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in reversed(newest):
            try:
                plan = json.loads(path.read_text("utf-8", "surrogatepass"))
                return str(plan["name"]), [str(name) for name in plan["points"]]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue
        return "", []

    def get(self, config_hash: str, sections: Sections | None = None) -> Record | None:
        """Return a finished point, None if there is none. Raises InputError naming the file if it is damaged.

        sections: for one who reads many and changes none.
        """
        path = self.path(config_hash)
        try:
            raw = read_within(path, 10)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
        record = Record.from_bytes(raw, str(path), sections)
        if record.hash != config_hash:
            raise InputError(f"{path}: holds the record of another point ({record.hash})")
        return record

    def current(self, config_hash: str) -> Record | None:
        """Return a finished point that was counted as today, None if there is none; an older one is left to others.

        Raises InputError naming the file if it is damaged, or counted by a newer edgewatt.
        """
        record = self.get(config_hash)
        if record is not None and record.counts_version > COUNTS_VERSION:
            raise NewerCountsError(
                f"{self.path(config_hash)}: counts of version {record.counts_version}, this edgewatt counts by version "
                f"{COUNTS_VERSION}: update it, or choose another results folder"
            )
        return record if record is not None and record.counts_version == COUNTS_VERSION else None

    def hashes(self) -> list[str]:
        """Return the hashes of all finished points, sorted."""
        return _names(self.records)

    def failed(self) -> dict[str, dict[str, Any]]:
        """Return the failures, by hash."""
        return {name: self.failure(name) for name in _names(self.failures)}

    def failure(self, config_hash: str) -> dict[str, Any]:
        """Return why a point failed."""
        try:
            reason = json.loads((self.failures / f"{config_hash}.json").read_text("utf-8", "surrogatepass"))
        except (OSError, ValueError, RecursionError):
            reason = None
        return reason if isinstance(reason, dict) else {"error": "the failure's own record is damaged", "traceback": ""}

    def failure_mark(self, config_hash: str) -> tuple[int, int] | None:
        """Return what tells one failure of a point from the next; None if there is none."""
        try:
            state = os.stat(os.path.join(self.failures, f"{config_hash}.json"))
        except OSError:
            return None
        return state.st_ino, state.st_mtime_ns

    def failure_marks(self) -> dict[str, tuple[int, int] | None]:
        """Return `failure_mark` of all failures, by hash."""
        return {name: self.failure_mark(name) for name in _names(self.failures)}

    def holds(self, config_hash: str) -> bool:
        """Return whether there is a record of a point, sound or not."""
        return os.path.exists(os.path.join(self.records, f"{config_hash}.json"))

    def __iter__(self) -> Iterator[Record]:
        """Yield all finished points by hash. Raises InputError at the first damaged record."""
        for name in self.hashes():
            record = self.get(name)
            if record is not None:
                yield record

    def _write(self, path: Path, data: bytes) -> None:
        try:
            replace_file(path, data, fsync=self.fsync, within=own_folder(path.parent) if self.shared else None)
            if self.fsync:
                _sync_folder(path.parent)
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
        own = [path for path in self.records.glob(".*") if path.is_dir()]
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
                    if now - path.stat().st_mtime > older_than_s:
                        path.unlink()
        self.tidy()


def _names(folder: Path) -> list[str]:
    try:
        return sorted(e.name[:-5] for e in os.scandir(folder) if e.name.endswith(".json") and e.name[0] != ".")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror or error})") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_results(folder: str | Path) -> Store:
    """Return the store of an existing results folder. Raises InputError if there is none."""
    store = Store(folder)
    if not Path(folder).exists():
        raise InputError(f"{folder}: no such file or folder")
    if not store.records.is_dir():
        raise InputError(f"{folder}: no results here: expected a folder with 'records/', as `edgewatt sweep` writes it")
    return store
