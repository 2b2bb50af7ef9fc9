"""Who computes the points of a sweep: this process, local worker processes, or a Dask cluster.

A task and an outcome are JSON values (see `edgewatt.runs.compute.answer`), so nothing depends on who runs it. A worker
process stores the record of a task that names a store and answers that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

from traces.base.errors import unknown_name
from traces.base.workers import Workers, available_cores

Task = dict[str, Any]
Outcome = dict[str, Any]
EXECUTORS = ("inline", "processes", "dask")
ATTEMPTS = 3
"""A point whose worker dies this many times is recorded as failed."""


class Executor(Protocol):
    """Computes tasks in any order. Closing the iterator stops the work that is under way."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]: ...


@runtime_checkable
class Prepared(Protocol):
    """An executor whose workers take time to start: begun early, ended where they are not used."""

    def prepare(self, n_tasks: int) -> None: ...

    def close(self) -> None: ...


class TeamExecutor:
    """Workers as an executor. `prepare` starts processes, so that they load while the tasks are still found out."""

    def __init__(self, name: str, workers: int | None = None, scheduler: str | None = None) -> None:
        """Raises InputError for an unknown name, or fewer than one worker."""
        if name not in EXECUTORS:
            raise unknown_name("executor", name, EXECUTORS)
        count = available_cores() if workers is None else workers
        self.team = Workers(count, name, scheduler, load="edgewatt.runs.worker")

    def prepare(self, n_tasks: int) -> None:
        """Start the workers that so many tasks will need."""
        self.team.prepare(n_tasks)

    def close(self) -> None:
        """End the workers."""
        self.team.__exit__()

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        """See Executor."""
        from edgewatt.runs.compute import answer
        from edgewatt.runs.worker import answer_stored

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
