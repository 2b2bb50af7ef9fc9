"""Running the points of a sweep, or of one run, into a store so that they can be stopped at any moment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewatt.point.compute import make_task, run_points
from edgewatt.point.model import Point
from edgewatt.point.steps import OPTIONAL, identities, shared
from edgewatt.results.claims import Claims
from edgewatt.results.record import Record
from edgewatt.results.store import NewerCountsError, Store, StoreError
from edgewatt.sweeps.executors import Executor, Prepared, available_cores, make_executor
from edgewatt.sweeps.ignored import warn_of_ignored
from edgewatt.sweeps.plan import SweepPlan, load_sweep
from edgewatt.sweeps.records import Records
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.base.shown import Shown

POLL_S = 0.2
"""How often a sweep looks whether others have finished the points that are left."""


def run(
    config: str | Path | Mapping[str, Any] | SweepPlan,
    *,
    results: str | Path | None = None,
    overrides: list[str] | None = None,
    progress: Progress | None = None,
) -> Records:
    """Compute every point of a run or sweep (file, shipped name or mapping) in this process, in the order written.

    results: folder to keep the records and shared steps in; None keeps nothing. Raises ConfigError naming file, line
    and column of every problem, and whatever a point raises.
    """
    plan = config if isinstance(config, SweepPlan) else load_sweep(config, overrides or ())
    warn_of_ignored(plan.points)
    if results is None:
        return Records(run_points(plan.points, progress=progress))
    store = Store(results).open()
    records = Records(run_points(plan.points, stages=store.folder / "stages", progress=progress))
    store.put_plan(plan.name, [record.hash for record in records])
    for record in records:
        store.put(record)
    return records


if TYPE_CHECKING:
    from edgewatt.reporting.plots import Plots


@dataclass
class Results(Shown):
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

    __repr__ = Shown.__repr__

    def _facts(self) -> dict[str, object]:
        return {
            "folder": self.store.folder, "points": len(self.points), "computed": self.computed, "reused": self.reused,
            "failed": len(self.failed),
        }  # fmt: skip

    def frame(self) -> Any:
        """Return the finished points as a pandas or polars frame, as `edgewatt.frame` does."""
        return self.records.frame()

    @property
    def plot(self) -> Plots:
        """The report's charts of these points, as Altair charts: ``results.plot.tradeoff()``."""
        return self.records.plot

    def __len__(self) -> int:
        return len(self.points)


def sweep(
    config: str | Path | Mapping[str, Any] | SweepPlan,
    *,
    results: str | Path,
    executor: str | Executor = "processes",
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    fsync: bool = False,
    overrides: Iterable[str] = (),
    progress: Progress | None = None,
) -> Results:
    """Compute every point of a sweep that the store `results` does not hold yet, or holds by older counts.

    executor: 'processes' (`workers` of them, default one per core), 'inline', 'dask' (a local cluster, or the one at
    `scheduler`). resume: False computes finished points again. retry_failed: points that failed before, too.
    A point that raises is recorded with its traceback and stops no other. Stopping at any moment, even by ``kill -9``,
    loses the points in flight at most. Raises ConfigError for a bad file, StoreError when the store cannot be written,
    InputError where it holds points counted by a newer edgewatt.
    """
    run_by = make_executor(executor, workers=workers, scheduler=scheduler) if isinstance(executor, str) else executor
    with contextlib.ExitStack() as stack:
        if isinstance(run_by, Prepared):
            stack.callback(run_by.close)
            if not Path(results).exists():
                run_by.prepare(available_cores())  # of a new sweep: they load while its points are found out
        plan = config if isinstance(config, SweepPlan) else load_sweep(config, overrides)
        warn_of_ignored(plan.points)
        store = Store(results, fsync=fsync).open()
        store.sweep_leftovers()
        store.put_plan(plan.name, [point.hash for point in plan.points])
        so_far = Results(store, plan.points)
        todo = _todo(so_far, resume, retry_failed)
        report = progress or (lambda done, total, text: None)
        report(len(plan.points) - len(todo), len(plan.points), "")
        if todo and isinstance(run_by, Prepared):
            run_by.prepare(len(todo))
        claims = stack.enter_context(Claims(store.folder / "claims"))
        course = _Course(so_far, plan.points, todo, claims, resume)
        while course.open:
            tasks = course.tasks()
            first = next(tasks, None)
            if first is None:
                time.sleep(POLL_S)  # other processes compute all that is left
            else:
                outcomes = run_by.run(chain([first], tasks))
                try:
                    for outcome in outcomes:
                        course.keep(outcome)
                        done = so_far.computed + so_far.reused + len(so_far.failed)
                        report(done, len(plan.points), f"{len(so_far.failed)} failed" if so_far.failed else "")
                finally:
                    close = getattr(outcomes, "close", None)
                    if close is not None:
                        close()  # ends the workers at once, also on Ctrl-C or a full disk
    return so_far


class _Course:
    """The points of a sweep that are still open, on a store that other processes may work on, too."""

    def __init__(self, so_far: Results, points: list[Point], todo: list[Point], claims: Claims, resume: bool) -> None:
        self.so_far, self.store, self.claims, self.resume = so_far, so_far.store, claims, resume
        wanted = OPTIONAL | {"ordering"}
        named = {point.hash: identities(point, wanted) for point in points} if todo else {}
        self.open = leaders_first(todo, named)
        self._keep = shared(named)
        self._failed_before = self.store.failure_marks()
        self._results = str(self.store.folder.absolute())  # a worker may live in another folder
        self._stages = str((self.store.folder / "stages").absolute())

    @cached_property
    def _names(self) -> dict[str, str]:
        """The settings in which each point differs from the others, by hash: a failure is told by them."""
        from edgewatt.results.swept import point_names

        names = point_names([point.config for point in self.so_far.points])
        return dict(zip((point.hash for point in self.so_far.points), names, strict=True))

    def tasks(self) -> Iterator[dict[str, Any]]:
        """Yield the task of each open point that no process computes; `open` then holds those of other processes."""
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
        """Store what became of a point."""
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
        """Return whether another process has finished the point, or failed at it, since this sweep began."""
        if self.resume and self.store.holds(name) and not self._is_stale(name):
            self.so_far.reused += 1
            return True
        mark = self.store.failure_mark(name)
        if mark is not None and mark != self._failed_before.get(name):
            self.so_far.failed[name] = self.store.failure(name)
            return True
        return False

    def _is_stale(self, name: str) -> bool:
        """Return whether a record that was found damaged or outdated still is."""
        if str(self.store.path(name)) not in {*self.so_far.damaged, *self.so_far.outdated}:
            return False
        try:
            return self.store.current(name) is None
        except InputError:
            return True


def _todo(so_far: Results, resume: bool, retry_failed: bool) -> list[Point]:
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
            record = so_far.store.current(point.hash)
            if record is None and so_far.store.path(point.hash).exists():
                so_far.outdated.append(str(so_far.store.path(point.hash)))
        except NewerCountsError:
            raise
        except InputError:
            so_far.damaged.append(str(so_far.store.path(point.hash)))
            record = None
        if record is not None:
            so_far.reused += 1
        elif point.hash in failed:
            so_far.failed[point.hash] = failed[point.hash]
        else:
            todo.append(point)
    return todo


def leaders_first(points: list[Point], named: Mapping[str, Mapping[str, str]]) -> list[Point]:
    """Put one point of every distinct ordering first, so that workers do not wait for each other's orderings.

    named: hash of each point -> its identities.
    """
    leaders: list[Point] = []
    others: list[Point] = []
    seen: set[str] = set()
    for point in points:
        key = named[point.hash].get("ordering", point.hash)
        (others if key in seen else leaders).append(point)
        seen.add(key)
    return leaders + others
