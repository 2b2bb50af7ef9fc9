"""Who computes the points: this process, local worker processes, or a Dask cluster. One idea: tasks in, outcomes out.

A task and an outcome are JSON values (see `edgewatt.runs.compute.answer`), so nothing is pickled and nothing depends
on who runs it. A worker process stores the record of a task that names a store and answers that it has. Executors know
nothing of the store.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, Protocol, runtime_checkable

from traces.base.children import local_dask_cluster, module_command
from traces.base.errors import EdgewattError, InputError, MissingExtraError, unknown_name

Task = dict[str, Any]
Outcome = dict[str, Any]

ATTEMPTS = 3
"""A point whose worker dies this many times is recorded as failed."""

AHEAD_S, AHEAD = 0.12, 96
"""So much work, by its own pace, and so many tasks at most lie before a worker: it need not wait for the next.

More is sent when half is done: to wake another process takes as long as a tenth of a tiny point."""

CONNECT_S = 10.0
"""How long a scheduler may take to answer."""

GONE_S = 1.0
"""How long a process that was killed may take to be gone."""

PINNED = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")}


class Executor(Protocol):
    """Computes tasks in any order. Closing the iterator stops the work that is under way."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]: ...


@runtime_checkable
class Prepared(Protocol):
    """An executor whose workers take time to start: begun early, ended where they are not used."""

    def prepare(self, n_tasks: int) -> None: ...

    def close(self) -> None: ...


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
        from edgewatt.runs.compute import answer

        return map(answer, tasks)


class _Worker:
    """One worker process and the tasks that lie before it; it answers them in their order."""

    def __init__(self, process: subprocess.Popen[bytes], given: IO[bytes], answers: IO[bytes]) -> None:
        """process: the first of those that were started together."""
        self.process, self.given, self.answers = process, given, answers
        self.tasks: deque[Task] = deque()
        self._received = b""
        self._pace_s, self._since = AHEAD_S, 0.0  # seconds of a task, smoothed; when the first of `tasks` was begun

    @classmethod
    def start(cls, n: int = 1) -> list[_Worker]:
        """Start workers; on Linux one process, of which the others are copies once it has loaded."""
        if n > 1 and sys.platform != "linux":  # what has loaded elsewhere may not be copied
            return [worker for _ in range(n) for worker in cls.start()]
        pipes = [(os.pipe(), os.pipe()) for _ in range(n - 1)]
        theirs = [(tasks[0], answers[1]) for tasks, answers in pipes]
        process = subprocess.Popen(
            [*module_command("edgewatt.runs.worker"), *(f"{read},{write}" for read, write in theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **PINNED},
            pass_fds=[end for ends in theirs for end in ends],
            start_new_session=True,  # a Ctrl-C in the terminal reaches the parent alone
        )
        for end in (end for ends in theirs for end in ends):
            os.close(end)
        assert process.stdin is not None and process.stdout is not None
        ours = [(os.fdopen(tasks[1], "wb"), os.fdopen(answers[0], "rb")) for tasks, answers in pipes]
        return [cls(process, *ends) for ends in [(process.stdin, process.stdout), *ours]]

    @property
    def wanted(self) -> int:
        """How many more tasks it should have: none while more than half of them are left."""
        most = min(AHEAD, 1 + int(AHEAD_S / self._pace_s) if self._since else 1)
        return most - len(self.tasks) if 2 * len(self.tasks) <= most else 0

    def give(self, tasks: Sequence[Task]) -> None:
        """Send tasks. A worker that has died shows it by its closed answer pipe."""
        if not self.tasks:
            self._since = time.monotonic()
        self.tasks.extend(tasks)
        with contextlib.suppress(BrokenPipeError):
            self.given.write(b"".join(json.dumps(task).encode() + b"\n" for task in tasks))
            self.given.flush()

    def receive(self) -> list[Outcome]:
        """Read what there is; return the outcomes that are complete. Raises EOFError when the worker has died."""
        data = os.read(self.answers.fileno(), 1 << 20)
        if not data:
            raise EOFError
        *lines, self._received = (self._received + data).split(b"\n")
        if lines:
            now = time.monotonic()
            pace = (now - self._since) / len(lines)
            self._pace_s, self._since = max(pace, (self._pace_s + pace) / 2, 1e-6), now
        for _ in lines:
            self.tasks.popleft()
        return [json.loads(line) for line in lines]

    def retire(self) -> None:
        """Give it nothing more: without a task it ends."""
        with contextlib.suppress(OSError):
            self.given.close()

    def end(self) -> None:
        """Kill it and those that were started with it, and wait until it is gone."""
        self.retire()
        if self.process.returncode is None:  # else they are killed, and others may have their number
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError), selectors.DefaultSelector() as gone:
            gone.register(self.answers, selectors.EVENT_READ)
            while gone.select(GONE_S) and os.read(self.answers.fileno(), 1 << 16):
                pass
        self.answers.close()


class Probe:
    """One worker to try points on; `end` may be called from another thread and makes `compute` return None."""

    def __enter__(self) -> Probe:
        (self._worker,) = _Worker.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.end()

    def end(self) -> None:
        """Kill the worker."""
        self._worker.process.kill()

    def compute(self, task: Task) -> Outcome | None:
        """Compute one task; None if the worker was ended."""
        self._worker.give([task])
        try:
            while not (outcomes := self._worker.receive()):
                pass
        except EOFError:
            return None
        return outcomes[0]


class ProcessExecutor:
    """Local worker processes; what a worker that dies has not answered is given to others, each task alone.

    So a task that ends its worker is found out. Small tasks lie before a worker some at a time. `prepare` starts the
    workers, so that they load while the tasks are still being found out; `close` ends those that were not used.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()
        self._started: list[_Worker] = []

    def prepare(self, n_tasks: int) -> None:
        """Start the workers that so many tasks will need."""
        missing = min(self.workers, n_tasks) - len(self._started)
        if missing > 0:
            self._started += _Worker.start(missing)

    def close(self) -> None:
        """End the workers that were started and got no task."""
        while self._started:
            self._started.pop().end()

    def run(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        source = iter(tasks)
        again: deque[Task] = deque()
        attempts: dict[str, int] = {}
        workers: list[_Worker] = []
        ever: list[_Worker] = []
        ready = selectors.DefaultSelector()

        def next_tasks(n: int, alone: bool) -> list[Task]:
            return [again.popleft()] if alone and again else list(itertools.islice(source, max(n, 0)))

        def start() -> bool:
            tasks = next_tasks(1, True)
            if not tasks:
                return False
            worker = self._started.pop() if self._started else _Worker.start()[0]
            workers.append(worker)
            ever.append(worker)
            ready.register(worker.answers, selectors.EVENT_READ, worker)
            worker.give(tasks)
            return True

        def retire(worker: _Worker) -> None:
            ready.unregister(worker.answers)
            workers.remove(worker)
            worker.retire()

        try:
            while len(workers) < self.workers and start():
                pass
            while workers:
                for key, _ in ready.select():
                    worker: _Worker = key.data
                    try:
                        outcomes = worker.receive()
                    except EOFError:
                        retire(worker)
                        for task in worker.tasks:
                            tried = attempts.get(task["hash"], 0) + (len(worker.tasks) == 1)
                            attempts[task["hash"]] = tried
                            if tried < ATTEMPTS:
                                again.append(task)
                            else:
                                yield lost(task, tried)
                        while len(workers) < self.workers and start():
                            pass
                        continue
                    if outcomes and (more := next_tasks(worker.wanted, not worker.tasks)):
                        worker.give(more)  # before the outcomes are looked at: the worker need not wait
                    if not worker.tasks:
                        retire(worker)
                    yield from outcomes
        finally:
            for worker in ever:
                worker.end()
            self.close()
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
        from edgewatt.runs.compute import answer

        with contextlib.ExitStack() as stack:
            if self.scheduler is None:
                cluster = stack.enter_context(local_dask_cluster(distributed, self.workers or available_cores()))
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
