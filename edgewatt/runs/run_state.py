"""The course of a sweep: which points are left, whose they are, what became of each, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from edgewatt.results.record import NewerRecordError, Record
from edgewatt.results.store import Claims, Store, StoreError
from edgewatt.runs.compute import make_task
from edgewatt.runs.model import Point
from edgewatt.runs.records import Records
from edgewatt.runs.steps import OPTIONAL, identities, shared
from traces.base.errors import InputError
from traces.base.reprs import OneLineRepr

if TYPE_CHECKING:
    from edgewatt.pages.figures import Plots


@dataclass
class Results(OneLineRepr):
    """What a sweep left in its store. Records are sorted by hash, whatever order they were computed in.

    computed, reused: points computed now, and points that were finished before. failed: hash -> why. damaged: records
    and stage files that were found damaged and computed again, by file. outdated: the same for records of an older
    version of the counts.
    """

    store: Store
    points: list[Point]
    computed: int = 0
    reused: int = 0
    failed: dict[str, dict[str, Any]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)

    @property
    def records(self) -> Records:
        """The finished points of this sweep, sorted by hash."""
        records = (self.store.get(name) for name in sorted({point.hash for point in self.points} - self.failed.keys()))
        return Records(record for record in records if record is not None)

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        return {
            "folder": self.store.folder, "points": len(self.points), "computed": self.computed, "reused": self.reused,
            "failed": len(self.failed),
        }  # fmt: skip

    def frame(self) -> Any:
        """Return the finished points as a pandas or polars frame, as `edgewatt.results.frame` does."""
        return self.records.frame()

    @property
    def plot(self) -> Plots:
        """The report's charts of these points, as Altair charts: ``results.plot.tradeoff()``."""
        return self.records.plot

    def __len__(self) -> int:
        return len(self.points)


class SweepRun:
    """The points of a sweep that are still open, on a store that other processes may work on, too."""

    def __init__(self, so_far: Results, points: list[Point], todo: list[Point], claims: Claims, resume: bool) -> None:
        self.so_far, self.store, self.claims, self.resume = so_far, so_far.store, claims, resume
        optional = OPTIONAL | {"ordering"}
        named = {point.hash: identities(point, optional) for point in points} if todo else {}
        self.open = leaders_first(todo, named)
        self._keep = shared(named)
        self._failed_before = self.store.failure_marks()
        self._results = str(self.store.folder.absolute())  # a worker may live in another folder
        self._stages = str((self.store.folder / "stages").absolute())

    @cached_property
    def _names(self) -> dict[str, str]:
        from edgewatt.results.swept import point_names

        names = point_names([point.config for point in self.so_far.points])
        return dict(zip((point.hash for point in self.so_far.points), names, strict=True))

    def tasks(self) -> Iterator[dict[str, Any]]:
        points, self.open = self.open, []
        for point in points:
            if not self.claims.take(point.hash):
                self.open.append(point)
            elif self._settled(point.hash):
                self.claims.give_up(point.hash)
            else:
                yield make_task(
                    point,
                    stages=self._stages,
                    keep=self._keep.get(point.hash, ()),
                    results=self._results,
                    fsync=self.store.fsync,
                )

    def keep(self, outcome: Mapping[str, Any]) -> None:
        so_far = self.so_far
        if "failure" in outcome:
            failure = {"point": self._names[outcome["hash"]], **outcome["failure"]}
            so_far.failed[outcome["hash"]] = failure
            self.store.put_failure(outcome["hash"], failure)
        else:
            if "unwritten" in outcome:
                raise StoreError(outcome["unwritten"])
            if "record" in outcome:
                record = Record(**outcome["record"])
                self.store.put(record)
                damaged = record.provenance.get("damaged_stages", [])
            else:  # its worker has stored it
                damaged = outcome["damaged"]
            so_far.computed += 1
            so_far.damaged += damaged
        self.claims.give_up(outcome["hash"])

    def _settled(self, name: str) -> bool:
        if self.resume and self.store.holds(name) and not self._is_stale(name):
            self.so_far.reused += 1
            return True
        mark = self.store.failure_mark(name)
        if mark is not None and mark != self._failed_before.get(name):
            self.so_far.failed[name] = self.store.failure(name)
            return True
        return False

    def _is_stale(self, name: str) -> bool:
        if str(self.store.path(name)) not in {*self.so_far.damaged, *self.so_far.outdated}:
            return False
        try:
            return not self.store.is_current(name)
        except InputError:
            return True


def still_to_do(so_far: Results, resume: bool, retry_failed: bool) -> list[Point]:
    if not resume:
        return so_far.points
    failed = {} if retry_failed else so_far.store.failed()
    todo = []
    finished = set(so_far.store.hashes())
    for point in so_far.points:
        if point.hash not in finished and point.hash not in failed:
            todo.append(point)
            continue
        try:
            finished_as_today = so_far.store.is_current(point.hash)
            if not finished_as_today and so_far.store.path(point.hash).exists():
                so_far.outdated.append(str(so_far.store.path(point.hash)))
        except NewerRecordError:
            raise
        except InputError:
            so_far.damaged.append(str(so_far.store.path(point.hash)))
            finished_as_today = False
        if finished_as_today:
            so_far.reused += 1
        elif point.hash in failed:
            so_far.failed[point.hash] = failed[point.hash]
        else:
            todo.append(point)
    return todo


def leaders_first(points: list[Point], named: Mapping[str, Mapping[str, str]]) -> list[Point]:
    leaders: list[Point] = []
    others: list[Point] = []
    seen: set[str] = set()
    for point in points:
        key = named[point.hash].get("ordering", point.hash)
        (others if key in seen else leaders).append(point)
        seen.add(key)
    return leaders + others
