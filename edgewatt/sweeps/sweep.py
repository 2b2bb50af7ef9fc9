"""Running the points of a sweep, or of one run, into a store so that they can be stopped at any moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgewatt.point.compute import make_task, run_points
from edgewatt.point.model import Point
from edgewatt.point.steps import identities, shared
from edgewatt.results.record import Record
from edgewatt.results.store import Store
from edgewatt.sweeps.executors import Executor, make_executor
from edgewatt.sweeps.plan import SweepPlan, load_sweep
from traces.base.errors import InputError
from traces.base.progress import Progress


def run(
    config: str | Path | Mapping[str, Any] | SweepPlan,
    *,
    results: str | Path | None = None,
    overrides: list[str] | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Compute every point of a run or sweep (file, shipped name or mapping) in this process, in the order written.

    results: folder to keep the records and shared steps in; None keeps nothing. Raises ConfigError naming file, line
    and column of every problem, and whatever a point raises.
    """
    plan = config if isinstance(config, SweepPlan) else load_sweep(config, overrides or ())
    if results is None:
        return run_points(plan.points, progress=progress)
    store = Store(results).open()
    records = run_points(plan.points, stages=store.folder / "stages", progress=progress)
    store.put_plan(plan.name, [record.hash for record in records])
    for record in records:
        store.put(record)
    return records


@dataclass
class Results:
    """What a sweep left in its store. Records are sorted by hash, whatever order they were computed in.

    computed, reused: points computed now, points found finished. failed: hash -> why. damaged: records that were found
    damaged and computed again, by file.
    """

    store: Store
    points: list[Point]
    computed: int = 0
    reused: int = 0
    failed: dict[str, dict[str, Any]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    @property
    def records(self) -> list[Record]:
        """The finished points of this sweep, sorted by hash."""
        found = (self.store.get(name) for name in sorted({point.hash for point in self.points} - self.failed.keys()))
        return [record for record in found if record is not None]

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
    """Compute every point of a sweep that the store `results` does not hold yet.

    executor: 'processes' (`workers` of them, default one per core), 'inline', 'dask' (a local cluster, or the one at
    `scheduler`). resume: False computes finished points again. retry_failed: points that failed before, too.
    A point that raises is recorded with its traceback and stops no other. Stopping at any moment, even by ``kill -9``,
    loses the points in flight at most. Raises ConfigError for a bad file, StoreError when the store cannot be written.
    """
    plan = config if isinstance(config, SweepPlan) else load_sweep(config, overrides)
    run_by = make_executor(executor, workers=workers, scheduler=scheduler) if isinstance(executor, str) else executor
    store = Store(results, fsync=fsync).open()
    store.sweep_leftovers()
    store.put_plan(plan.name, [point.hash for point in plan.points])
    found = Results(store, plan.points)
    todo = _todo(found, resume, retry_failed)
    report = progress or (lambda done, total, text: None)
    report(len(plan.points) - len(todo), len(plan.points), "")

    keep = shared(plan.points) if todo else {}

    def tasks() -> Iterator[dict[str, Any]]:
        for point in leaders_first(todo):
            if resume and store.path(point.hash).exists() and str(store.path(point.hash)) not in found.damaged:
                found.reused += 1  # another sweep on this store finished it meanwhile
                continue
            yield make_task(point, stages=str(store.folder / "stages"), keep=keep.get(point.hash, ()))

    outcomes = run_by.run(tasks())
    try:
        for outcome in outcomes:
            if "failure" in outcome:
                found.failed[outcome["hash"]] = outcome["failure"]
                store.put_failure(outcome["hash"], outcome["failure"])
            else:
                store.put(Record(**outcome["record"]))
                found.computed += 1
            done = found.computed + found.reused + len(found.failed)
            report(done, len(plan.points), f"{len(found.failed)} failed" if found.failed else "")
    finally:
        close = getattr(outcomes, "close", None)
        if close is not None:
            close()  # ends the workers at once, also on Ctrl-C or a full disk
    return found


def _todo(found: Results, resume: bool, retry_failed: bool) -> list[Point]:
    if not resume:
        return found.points
    failed = {} if retry_failed else found.store.failed()
    todo = []
    for point in found.points:
        try:
            record = found.store.get(point.hash)
        except InputError:
            found.damaged.append(str(found.store.path(point.hash)))
            record = None
        if record is not None:
            found.reused += 1
        elif point.hash in failed:
            found.failed[point.hash] = failed[point.hash]
        else:
            todo.append(point)
    return todo


def leaders_first(points: list[Point]) -> list[Point]:
    """Put one point of every distinct ordering first, so that workers do not wait for each other's orderings."""
    leaders: list[Point] = []
    others: list[Point] = []
    seen: set[str] = set()
    for point in points:
        key = identities(point).get("ordering", point.hash)
        (others if key in seen else leaders).append(point)
        seen.add(key)
    return leaders + others
