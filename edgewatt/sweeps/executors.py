"""Who computes the points: this process, local worker processes, or a Dask cluster. One idea: tasks in, outcomes out.

A task and an outcome are JSON values (see `edgewatt.point.compute.answer`), so nothing is pickled and nothing depends
on who runs it. Executors know nothing of the store.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from traces.base.children import module_command, safe_children
from traces.base.errors import EdgewattError, InputError, MissingExtraError, unknown_name

Task = dict[str, Any]
Outcome = dict[str, Any]

ATTEMPTS = 3
"""A point whose worker dies this many times is recorded as failed."""

CONNECT_S = 10.0
"""How long a scheduler may take to answer."""

PINNED = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")}


class Executor(Protocol):
    """Computes tasks in any order. Closing the iterator stops the work that is under way."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]: ...


def make_executor(name: str, *, workers: int | None = None, scheduler: str | None = None) -> Executor:
    """Return the executor of that name: inline, processes or dask."""
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    if scheduler is not None:
        return DaskExecutor(workers, scheduler)
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    return EXECUTORS[name](workers)


def lost(task: Task, attempts: int, why: str = "out of memory, or killed") -> Outcome:
    """Return the outcome of a point whose workers died."""
    error = f"the worker process died {attempts} times on this point ({why})"
    return {"hash": task["hash"], "failure": {"error": error, "traceback": "", "config": task["config"]}}


class InlineExecutor:
    """Computes one task after the other in this process."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        from edgewatt.point.compute import answer

        return map(answer, tasks)


class _Worker:
    """One worker process and the task it works on."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            module_command("edgewatt.sweeps.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **PINNED},
            start_new_session=True,  # a Ctrl-C in the terminal reaches the parent alone
        )
        self.task: Task | None = None
        self._received = b""

    def give(self, task: Task) -> None:
        """Send a task. A worker that has died shows it by its closed answer pipe."""
        assert self.process.stdin is not None
        self.task = task
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(task).encode() + b"\n")
            self.process.stdin.flush()

    def receive(self) -> Outcome | None:
        """Read what there is; return the outcome if it is complete. Raises EOFError when the worker has died."""
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        if not data:
            raise EOFError
        self._received += data
        if not self._received.endswith(b"\n"):
            return None
        outcome: Outcome = json.loads(self._received)
        self._received, self.task = b"", None
        return outcome

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Probe:
    """One worker to try points on; `end` may be called from another thread and makes `compute` return None."""

    def __enter__(self) -> Probe:
        self._worker = _Worker()
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.end()

    def end(self) -> None:
        """Kill the worker."""
        self._worker.process.kill()

    def compute(self, task: Task) -> Outcome | None:
        """Compute one task; None if the worker was ended."""
        self._worker.give(task)
        try:
            while (outcome := self._worker.receive()) is None:
                pass
        except EOFError:
            return None
        return outcome


class ProcessExecutor:
    """Local worker processes, one task each at a time; a task whose worker dies is given to a new one."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        source = iter(tasks)
        again: deque[Task] = deque()
        attempts: dict[str, int] = {}
        workers: list[_Worker] = []
        ready = selectors.DefaultSelector()

        def next_task() -> Task | None:
            return again.popleft() if again else next(source, None)

        def start(task: Task) -> None:
            worker = _Worker()
            workers.append(worker)
            ready.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]
            worker.give(task)

        def retire(worker: _Worker) -> None:
            ready.unregister(worker.process.stdout)  # type: ignore[arg-type]
            workers.remove(worker)
            worker.end()

        try:
            while len(workers) < self.workers and (task := next_task()) is not None:
                start(task)
            while workers:
                for key, _ in ready.select():
                    worker: _Worker = key.data
                    task = worker.task
                    try:
                        outcome = worker.receive()
                    except EOFError:
                        retire(worker)
                        if task is not None:
                            attempts[task["hash"]] = tried = attempts.get(task["hash"], 0) + 1
                            if tried < ATTEMPTS:
                                again.append(task)
                            else:
                                yield lost(task, tried)
                        if (task := next_task()) is not None:
                            start(task)
                        continue
                    if outcome is None:
                        continue
                    if (task := next_task()) is not None:
                        worker.give(task)  # before the outcome is stored: the worker need not wait for the disk
                    else:
                        retire(worker)
                    yield outcome
        finally:
            for worker in workers:
                worker.end()
            ready.close()


class DaskExecutor:
    """A Dask cluster: a local one, or the one at a scheduler's address. Dask itself retries when workers die."""

    def __init__(self, workers: int | None = None, scheduler: str | None = None) -> None:
        self.workers, self.scheduler = workers, scheduler

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        try:
            import distributed
        except ImportError as error:
            raise MissingExtraError("distributed", "dask") from error
        from edgewatt.point.compute import answer

        with contextlib.ExitStack() as stack:
            if self.scheduler is None:
                stack.enter_context(safe_children())
                cluster = distributed.LocalCluster(
                    n_workers=self.workers or available_cores(),
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    env=PINNED,
                )
                stack.enter_context(cluster)
                client = distributed.Client(cluster)
            else:
                try:
                    client = distributed.Client(self.scheduler, timeout=f"{CONNECT_S:g}s")
                except (OSError, TimeoutError, ValueError) as error:
                    raise EdgewattError(f"no Dask scheduler answers at {self.scheduler} ({error})") from error
            stack.enter_context(client)
            yield from self._flow(client, answer, iter(tasks), distributed)

    @staticmethod
    def _flow(client: Any, compute: Any, source: Iterator[Task], distributed: Any) -> Iterator[Outcome]:
        """Keep a few tasks per core in flight, so that neither the scheduler nor memory holds the whole sweep."""
        in_flight: dict[Any, tuple[Task, int]] = {}
        finished = distributed.as_completed(with_results=False)

        def submit(task: Task, attempt: int) -> None:
            future = client.submit(compute, task, key=f"edgewatt-{task['hash']}-{attempt}", pure=False)
            in_flight[future] = task, attempt
            finished.add(future)

        def fill() -> None:
            cores = max(1, sum(client.nthreads().values()))
            while len(in_flight) < 3 * cores and (task := next(source, None)) is not None:
                submit(task, 1)

        fill()
        while in_flight:
            future = next(finished)
            task, attempt = in_flight.pop(future)
            fill()
            try:
                outcome: Outcome = future.result()  # `answer` returns failures: what raises here is a lost worker
            except Exception as error:
                if attempt < ATTEMPTS:
                    submit(task, attempt + 1)
                else:
                    yield lost(task, attempt, f"{type(error).__name__}: {error}")
            else:
                yield outcome


def available_cores() -> int:
    """Return the cores this process may use (a cluster's allocation, not the whole machine)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


EXECUTORS: dict[str, Callable[[int | None], Executor]] = {
    "inline": lambda workers: InlineExecutor(),
    "processes": ProcessExecutor,
    "dask": lambda workers: DaskExecutor(workers, None),
}
"""Name -> what makes the executor, given a number of workers or None."""
