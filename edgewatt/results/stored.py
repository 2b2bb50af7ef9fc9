"""Finished points of a results folder as a sequence: each is read when it is asked for, so that memory holds one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from edgewatt.results.record import Record, Sections
from edgewatt.results.store import Store, open_results
from traces.base.errors import InputError
from traces.base.memory import read_within


class StoredRecords(Sequence[Record]):
    """Records of a store, in a given order."""

    def __init__(self, store: Store, hashes: Sequence[str]) -> None:
        self.store, self.hashes = store, hashes

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return StoredRecords(self.store, self.hashes[index])
        return self._read(self.hashes[index])

    def unchanged(self) -> Iterator[Record]:
        """Yield the records in turn, for one who changes none: sections that are alike are one object."""
        sections = Sections()
        for name in self.hashes:
            yield self._read(name, sections)

    def _read(self, name: str, sections: Sections | None = None) -> Record:
        record = self.store.get(name, sections)
        if record is None:
            raise InputError(f"{self.store.path(name)}: was there a moment ago and is gone")
        return record


class Joined(Sequence[Record]):
    """Several sequences of records, one behind the other."""

    def __init__(self, parts: Sequence[Sequence[Record]]) -> None:
        self.places = [(part, k) for part in parts for k in range(len(part))]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        part, k = self.places[index]
        return part[k]


def unchanged(records: Sequence[Record]) -> Iterator[Record]:
    """Yield records for one who changes none."""
    return records.unchanged() if isinstance(records, StoredRecords) else iter(records)


def open_records(path: str | Path) -> Sequence[Record]:
    """Return the records of a results folder, in the order of its sweep and read one by one, or the one of a file.

    Raises InputError where there are none.
    """
    path = Path(path)
    if path.is_file():
        try:
            return [Record.from_bytes(read_within(path, 10), str(path))]
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    store = open_results(path)
    finished = store.hashes()
    known = set(finished)
    order = [name for name in store.plan()[1] if name in known] or finished
    if not order:
        raise InputError(f"{path}: no finished points yet")
    return StoredRecords(store, order)
