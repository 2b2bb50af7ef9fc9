"""Running the points of a sweep, or of one run, into a store so that they can be stopped at any moment."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewatt.results.store import Claims, Store
from traces.base.errors import InputError, unknown_name
from traces.base.progress import Progress
from traces.base.workers import Workers, available_cores

Task = dict[str, Any]
Outcome = dict[str, Any]
EXECUTORS = ("inline", "processes", "dask")
ATTEMPTS = 3
"""A point whose worker dies this many times is recorded as failed."""


class TeamExecutor:
    """Workers as an executor. `prepare` starts processes, so that they load while the tasks are still found out."""

    def __init__(self, name: str, workers: int | None = None, scheduler: str | None = None) -> None:
        if name not in EXECUTORS:
            raise unknown_name("executor", name, EXECUTORS)
        count = available_cores() if workers is None else workers
        self.team = Workers(count, name, scheduler, load="edgewatt.runs.compute")

    def prepare(self, n_tasks: int) -> None:
        self.team.prepare(n_tasks)

    def close(self) -> None:
        self.team.__exit__()

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        from edgewatt.runs.compute import answer, answer_stored

        function = answer_stored if self.team.executor == "processes" else answer
        configs: dict[str, Any] = {}  # of the points under way: what a lost one is recorded with

        def calls() -> Iterator[tuple[str, tuple[Task]]]:
            for task in tasks:
                configs[task["hash"]] = task["config"]
                yield task["hash"], (task,)

        def lost(key: str, attempts: int, why: str) -> Outcome:
            error = f"the worker process died {attempts} times on this point ({why})"
            return {"hash": key, "failure": {"error": error, "traceback": "", "config": configs[key]}}

        try:
            for key, outcome in self.team.map(function, calls(), lost=lost, attempts=ATTEMPTS):
                del configs[key]
                yield outcome
        finally:
            self.close()


if TYPE_CHECKING:
    from edgewatt.runs.plan import SweepPlan
    from edgewatt.runs.records import Records
    from edgewatt.runs.run_state import Results

POLL_S = 0.2
"""How often a sweep looks whether others have finished the points that are left."""


def _planned(config: str | Path | Mapping[str, Any] | SweepPlan, overrides: Iterable[str]) -> SweepPlan:
    from edgewatt.runs.plan import SweepPlan, load_sweep

    if not isinstance(config, SweepPlan):
        return load_sweep(config, overrides)
    if list(overrides):
        raise InputError("overrides change a configuration, and this plan is made: give them to load_sweep")
    return config


def run(
    config: str | Path | Mapping[str, Any] | SweepPlan,
    *,
    results: str | Path | None = None,
    overrides: list[str] | None = None,
    progress: Progress | None = None,
) -> Records:
    """Compute every point of a run or sweep (file, shipped name or mapping) in this process, in the order written.

    config: a file, a shipped name, a mapping or a SweepPlan. overrides: KEY=VALUE texts. results: folder to keep the
    records and shared steps in; None keeps nothing. Returns Records. Raises ConfigError naming file, line
    and column of every problem, and whatever a point raises.
    """
    from edgewatt.runs.compute import run_points
    from edgewatt.runs.plan import warn_of_ignored
    from edgewatt.runs.records import Records

    plan = _planned(config, overrides or ())
    warn_of_ignored(plan.points)
    if results is None:
        return Records(run_points(plan.points, progress=progress))
    store = Store(results).open()
    try:
        records = Records(run_points(plan.points, stages=store.folder / "stages", progress=progress))
    except BaseException:
        store.drop_empty()
        raise
    store.put_plan(plan.name, [record.hash for record in records])
    for record in records:
        store.put(record)
    return records


def sweep(
    config: str | Path | Mapping[str, Any] | SweepPlan,
    *,
    results: str | Path,
    executor: Any = "processes",
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    fsync: bool = False,
    overrides: Iterable[str] = (),
    progress: Progress | None = None,
) -> Results:
    """Compute every point of a sweep that the store `results` does not hold yet, or holds by older counts.

    config: a file, a shipped name, a mapping or a SweepPlan. overrides: KEY=VALUE texts. fsync: wait for the disk.
    executor: 'processes' (`workers` of them, default one per core), 'inline', 'dask' (a local cluster, or the one at
    `scheduler`). resume: False computes finished points again. retry_failed: points that failed before, too.
    A point that raises is recorded with its traceback and stops no other. Stopping at any moment, even by ``kill -9``,
    loses the points in flight at most. Returns Results. Raises ConfigError for a bad file, StoreError when the store
    cannot be written, InputError where it holds points counted by a newer edgewatt.
    """
    run_by: Any = TeamExecutor(executor, workers, scheduler) if isinstance(executor, str) else executor
    early = hasattr(run_by, "prepare")
    with contextlib.ExitStack() as stack:
        if early:
            stack.callback(run_by.close)
            if not Path(results).exists():
                run_by.prepare(available_cores())  # of a new sweep: they load while we do, and find its points out
        from edgewatt.runs.plan import warn_of_ignored
        from edgewatt.runs.run_state import Results, SweepRun, still_to_do

        plan = _planned(config, overrides)
        warn_of_ignored(plan.points)
        store = Store(os.path.abspath(results), fsync=fsync).open()  # its records are read whenever they are asked for
        store.sweep_leftovers()
        store.put_plan(plan.name, [point.hash for point in plan.points])
        so_far = Results(store, plan.points)
        todo = still_to_do(so_far, resume, retry_failed)
        report = progress or (lambda done, total, text: None)
        report(len(plan.points) - len(todo), len(plan.points), "")
        if todo and early:
            run_by.prepare(len(todo))
        claims = stack.enter_context(Claims(store.folder / "claims"))
        state = SweepRun(so_far, plan.points, todo, claims, resume)
        while state.open:
            tasks = state.tasks()
            first = next(tasks, None)
            if first is None:
                time.sleep(POLL_S)  # other processes compute all that is left
            else:
                outcomes = run_by.run(chain([first], tasks))
                try:
                    for outcome in outcomes:
                        state.keep(outcome)
                        done = so_far.computed + so_far.reused + len(so_far.failed)
                        report(done, len(plan.points), f"{len(so_far.failed)} failed" if so_far.failed else "")
                finally:
                    close = getattr(outcomes, "close", None)
                    if close is not None:
                        close()  # ends the workers at once, also on Ctrl-C or a full disk
    store.tidy()  # its workers have ended
    return so_far
