"""Who does the pieces of a large job: this process, its threads, worker processes, or a Dask cluster.

A piece is a call of a function of a module, and its result depends on it alone. Few are under way, so memory does not
grow with the job; results come in the order in which they are done.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import IO, Any, Self, TypeVar

from traces.base.errors import EdgewattError, EdgewattWarning, InputError, MissingExtraError, brief, unknown_name
from traces.base.subprocesses import module_command, safe_children

EXECUTORS = ("threads", "processes", "inline", "dask")
IN_FLIGHT = 3
"""Tasks a thread, or a core of a cluster: one that it does, and what it does next."""
AHEAD_S, AHEAD = 0.12, 96
"""So much work, by its own pace, and so many pieces at most lie before a worker process: it need not wait for the next.

More is sent when half is done: to wake another process takes as long as a tenth of a tiny point."""
TOGETHER_S, TOGETHER = 0.5, 64
"""Pieces in one task of a cluster, which costs some milliseconds: they take so long, and are so many at most."""
CONNECT_S = 10.0
"""How long a scheduler may take to answer."""
GONE_S = 1.0
"""How long a process that was killed may take to be gone."""
RETRIES = 2
"""A cluster gives a piece whose worker died to another one."""
PINNED = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
PART = 1 << 18
"""Elements of shared arrays that are worth handing to a thread."""

Key = TypeVar("Key")
Call = tuple[Key, tuple[Any, ...]]
Lost = Callable[[Any, int, str], Any]
"""Returns the result of a piece whose workers died: (its key, how often, why)."""
Each = Callable[[Callable[[int, int], None], int, int], None]
"""Calls function(start, stop) for all parts [start, stop) of [0, n): `in_turn`, or `Workers.each`."""


class WorkerDiedError(EdgewattError):
    """A worker process died: out of memory, or killed."""


class Abandoned(BaseException):
    """The result of this piece is not needed any more."""


def in_turn(function: Callable[[int, int], None], n: int, size: int = PART) -> None:
    for start in range(0, n, size):
        function(start, min(start + size, n))


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


_ASKED = threading.local()


def go_on() -> None:
    """Raise Abandoned where the result of this piece is not needed any more (Ctrl-C, an error elsewhere)."""
    ended: threading.Event | None = getattr(_ASKED, "ended", None)
    if ended is not None and ended.is_set():
        raise Abandoned


class Workers:
    """A team that is started when there is work for two, and ends with the block.

    count: workers (of a scheduler given: as many as it has). executor: of EXECUTORS; threads are for compiled work.
    scheduler: address of a Dask scheduler. local: the workers of a Dask cluster that is started here: threads of this
    process, or processes. load: a module whose function `load(waiting)` loads what worker processes
    need. Raises InputError for other names and counts.
    """

    def __init__(
        self,
        count: int = 1,
        executor: str = "threads",
        scheduler: str | None = None,
        local: str = "processes",
        load: str = "",
    ) -> None:
        if count < 1:
            raise InputError(f"workers must be at least 1, not {count}")
        if executor not in EXECUTORS:
            raise unknown_name("executor", executor, EXECUTORS)
        self.executor = "dask" if scheduler is not None else executor
        self.count, self.scheduler = (1 if executor == "inline" else count), scheduler
        self.local, self.load = local, load
        self._team: _Team | None = None
        self._threads: _Team | None = None
        self._ends = ExitStack()

    @classmethod
    def of(cls, workers: int | Workers) -> AbstractContextManager[Workers]:
        """Return a team for a number of workers; one that is given stays the giver's to end."""
        return nullcontext(workers) if isinstance(workers, Workers) else cls(workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._team = self._threads = None
        self._ends.close()

    def prepare(self, n_pieces: int) -> None:
        team = self._members() if self.executor == "processes" else None
        if isinstance(team, _Processes):
            team.prepare(n_pieces)

    def map(
        self,
        function: Callable[..., Any],
        calls: Iterable[Call[Key]],
        count: int | None = None,
        *,
        lost: Lost | None = None,
        attempts: int = 1,
        hear: Callable[..., None] | None = None,
    ) -> Iterator[tuple[Key, Any]]:
        """Yield (key, function(*arguments)) for each (key, arguments), in the order in which they are done.

        count: of the calls, if known: the last go one by one, so that all workers end together. lost: what a piece
        gives whose worker processes died `attempts` times. hear: called with the key and what a piece of a process
        reports (`report`). Closing the iterator ends the work that is under way.

        Raises what a call raises; WorkerDiedError if a process dies (without `lost`), EdgewattError if no scheduler
        answers, MissingExtraError without Dask.
        """
        calls = iter(calls)
        first = list(islice(calls, 2))
        needed = self.executor == "dask" or (lost is not None and self.executor == "processes")
        if not first:
            return
        if not needed and (self.count == 1 or len(first) < 2):
            for key, arguments in _chained(first, calls):
                yield key, function(*arguments)
            return
        yield from self._members().map(function, _chained(first, calls), count or math.inf, _Fate(lost, attempts, hear))

    def each(self, function: Callable[[int, int], None], n: int, size: int = PART) -> None:
        """Call function(start, stop) for each part of [0, n); threads of this process share them, whoever does pieces.

        function: fills or sums up parts of arrays by NumPy. Raises what it raises.
        """
        if self.count == 1 or n <= size:
            in_turn(function, n, size)
            return
        parts = ((start, (start, min(start + size, n))) for start in range(0, n, size))
        for _ in self._own_threads().map(function, parts, math.inf, _Fate()):  # others would have to be sent arrays
            pass

    def _members(self) -> _Team:
        if self.executor == "threads":
            return self._own_threads()
        if self._team is None:
            dask = self.executor == "dask"
            team = _Dask(self.count, self.scheduler, self.local) if dask else _Processes(self.count, self.load)
            self._team = self._ends.enter_context(team)
        return self._team

    def _own_threads(self) -> _Team:
        if self._threads is None:
            self._threads = self._ends.enter_context(_Threads(self.count))
        return self._threads


def _chained(first: list[Call[Key]], rest: Iterator[Call[Key]]) -> Iterator[Call[Key]]:
    while first:
        yield first.pop(0)  # and keep nothing of it
    yield from rest


@dataclass(frozen=True)
class _Fate:
    """What becomes of pieces whose workers die, and who hears of the others: see Workers.map."""

    lost: Lost | None = None
    attempts: int = 1
    hear: Callable[..., None] | None = None

    def of(self, key: Any, times: int, why: str, error: Exception | None = None) -> Any:
        if self.lost is not None:
            return self.lost(key, times, why)
        raise WorkerDiedError(f"a worker process died ({why}); what a checkpoint holds is not done again") from error


class _Team(AbstractContextManager["_Team"]):
    @abstractmethod
    def map(
        self, function: Callable[..., Any], calls: Iterator[Call[Key]], left: float, fate: _Fate
    ) -> Iterator[tuple[Key, Any]]:
        """See Workers.map. left: calls, or infinity."""


class _Futures(_Team):
    """Workers that give futures. Pieces travel together until they take `together_s`, each alone at 0."""

    together_s = 0.0
    died: tuple[type[Exception], ...] = (futures.BrokenExecutor,)

    @abstractmethod
    def members(self) -> int:
        """How many pieces are done at once."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
        """Return the future of `_in_turn` for some calls."""

    @abstractmethod
    def done(self, under_way: Iterable[Any]) -> Iterable[Any]:
        """Wait for one of these futures; return those that are done."""

    def map(
        self, function: Callable[..., Any], calls: Iterator[Call[Key]], left: float, fate: _Fate
    ) -> Iterator[tuple[Key, Any]]:
        under_way: dict[Any, list[Call[Key]]] = {}
        again: deque[Call[Key]] = deque()
        size = 1  # of the first ones, which tell how long they take

        def fill() -> None:
            nonlocal left
            members = self.members()
            while len(under_way) < IN_FLIGHT * members:
                share = int(min(size, max(left // (2 * members), 1)))  # guided: Polychronopoulos and Kuck 1987
                if not (some := [again.popleft()] if again else list(islice(calls, share))):
                    break
                left -= len(some)
                under_way[self.submit(function, [arguments for _, arguments in some])] = some

        try:
            fill()
            while under_way:
                for future in self.done(under_way):
                    some = under_way.pop(future)
                    try:
                        results, seconds = future.result()
                    except Exception as error:
                        if fate.lost is None and not isinstance(error, self.died):
                            raise
                        why = f"{type(error).__name__}: {error}"
                        if len(some) == 1 or fate.lost is None:
                            yield some[0][0], fate.of(some[0][0], RETRIES + 1, why, error)
                        else:  # each alone: so the one that ends its worker is found out
                            again.extend(some)
                            left += len(some)
                        fill()
                        continue
                    size = min(max(int(len(some) * self.together_s / max(seconds, 1e-9)), 1), TOGETHER)
                    del future  # a cluster need not hold it
                    fill()
                    yield from zip((key for key, _ in some), results, strict=True)
        finally:
            for future in under_way:
                future.cancel()


def _together(function: Callable[..., Any], packed: bytes) -> tuple[list[Any], float]:
    return _in_turn(function, pickle.loads(packed))


def _in_turn(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> tuple[list[Any], float]:
    began = time.perf_counter()
    return [function(*arguments) for arguments in calls], time.perf_counter() - began


class _Threads(_Futures):
    def __init__(self, count: int) -> None:
        self.count, self._ended = count, threading.Event()
        self._pool = _threads(count, self._ended)

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._pool.shutdown(cancel_futures=True)

    def members(self) -> int:
        return self.count

    def submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> futures.Future[Any]:
        return self._pool.submit(_in_turn, function, calls)

    def done(self, under_way: Iterable[futures.Future[Any]]) -> Iterable[futures.Future[Any]]:
        return futures.wait(under_way, return_when=futures.FIRST_COMPLETED).done


def _threads(count: int, ended: threading.Event) -> futures.Executor:
    return futures.ThreadPoolExecutor(count, "edgewatt", lambda: setattr(_ASKED, "ended", ended))


class _Dask(_Futures):
    """A local cluster of as many threads or processes, or the cluster at a scheduler's address."""

    together_s = TOGETHER_S

    def __init__(self, count: int, scheduler: str | None, local: str) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError as error:
            raise MissingExtraError("distributed", "dask") from error
        self._distributed, self._ends, ended = distributed, ExitStack(), threading.Event()
        self._where = scheduler or "this machine"
        try:
            if scheduler is None:
                own = _threads(count, ended) if local == "threads" else None
                cluster = self._ends.enter_context(local_dask_cluster(distributed, count, own))
            else:
                self._reach(scheduler)
            self._client = distributed.Client(cluster if scheduler is None else scheduler, timeout=f"{CONNECT_S:g}s")
        except (OSError, TimeoutError, ValueError) as error:
            self._ends.close()
            raise EdgewattError(f"no Dask scheduler answers at {self._where} ({error})") from error
        self._ends.enter_context(self._client)
        self._ends.callback(ended.set)  # before the cluster waits for its threads
        self.died, self._finished = (distributed.KilledWorker,), distributed.as_completed(with_results=False)

    def _reach(self, address: str) -> None:
        async def identify() -> Any:
            arguments = self._distributed.Security().get_connection_args("client")
            async with self._distributed.rpc(address, timeout=CONNECT_S, connection_args=arguments) as scheduler:
                return await asyncio.wait_for(scheduler.identity(), CONNECT_S)

        with futures.ThreadPoolExecutor(1) as aside:  # this thread may run a loop of its own
            try:
                identity = aside.submit(asyncio.run, identify()).result()
            except Exception as error:  # whatever Dask trips over in what is not an answer of a scheduler
                raise OSError(brief(error)) from error
        if not isinstance(identity, dict) or identity.get("type") != "Scheduler":
            raise OSError("what answers is not a scheduler")
        if not identity.get("workers"):
            warnings.warn(
                EdgewattWarning(f"the Dask scheduler at {address} has no workers: waiting for them"), stacklevel=2
            )

    def map(
        self, function: Callable[..., Any], calls: Iterator[Call[Key]], left: float, fate: _Fate
    ) -> Iterator[tuple[Key, Any]]:
        try:
            yield from super().map(function, calls, left, fate)
        except (asyncio.CancelledError, futures.CancelledError, OSError) as error:
            if self._client.status == "running" and isinstance(error, OSError):
                raise
            raise EdgewattError(
                f"the Dask scheduler at {self._where} is gone; finished work is kept: run the same command to continue"
            ) from error

    def __exit__(self, *error: Any) -> None:
        self._ends.close()

    def members(self) -> int:
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
        """See _Futures. As bytes: a scheduler reads arguments of other kinds, and writes them again."""
        packed = self._distributed.protocol.pickle.dumps(calls)
        future = self._client.submit(_together, function, packed, pure=False, retries=RETRIES)
        self._finished.add(future)
        return future

    def done(self, under_way: Iterable[Any]) -> Iterable[Any]:
        return (next(self._finished),)


_QUIET = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.worker.profile.enabled": False,
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(PINNED, 1),
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""What a local Dask cluster watches of itself and shows, which nobody looks at: an eighth of a core where it is left as
it is. Its web servers answer nothing.

Its own environment also bids malloc return memory at once, so that each array begins with page faults."""


def local_dask_cluster(distributed: Any, workers: int, threads: futures.Executor | None = None) -> Any:
    """Return a Dask cluster of as many processes of one thread each, or of these threads; they end with it.

    Processes talk by TLS with a key of their own that is nowhere on the disk: who else connects is turned away.
    distributed: the module. Raises MissingExtraError without the library that makes keys.
    """
    import logging

    import dask

    security = None
    if threads is None:  # processes talk through ports, which anybody on this machine can reach
        try:
            security = distributed.Security.temporary()
        except ImportError as error:
            raise MissingExtraError("cryptography", "dask") from error
    with safe_children(), dask.config.set(_QUIET):
        return distributed.LocalCluster(
            n_workers=1 if threads else workers,
            threads_per_worker=workers if threads else 1,
            processes=threads is None,
            executor=threads,
            memory_limit=0,
            dashboard_address=None,
            security=security,
            silence_logs=logging.CRITICAL,  # what a piece raises comes back with it
        )


@dataclass
class _Piece:
    key: Any
    packed: bytes
    died: int = 0


class _Process:
    """One worker process and the pieces that lie before it; it answers them in their order."""

    def __init__(self, process: subprocess.Popen[bytes], given: IO[bytes], answers: IO[bytes]) -> None:
        self.process, self.given, self.answers = process, given, answers
        self.pieces: deque[_Piece] = deque()
        self._received = bytearray()
        self._pace_s, self._since = AHEAD_S, 0.0  # seconds of a piece, smoothed; when the first of `pieces` was begun

    @classmethod
    def start(cls, n: int, load: str) -> list[_Process]:
        if n > 1 and sys.platform != "linux":  # what has loaded elsewhere may not be copied
            return [worker for _ in range(n) for worker in cls.start(1, load)]
        pipes = [(os.pipe(), os.pipe()) for _ in range(n - 1)]
        theirs = [(pieces[0], answers[1]) for pieces, answers in pipes]
        process = subprocess.Popen(
            [*module_command("traces.base.worker"), load, *(f"{read},{write}" for read, write in theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **PINNED},
            pass_fds=[end for ends in theirs for end in ends],
            start_new_session=True,  # a Ctrl-C in the terminal reaches the parent alone
            bufsize=0,  # nothing is left to be written to a worker that reads no more, when all ends
        )
        for end in (end for ends in theirs for end in ends):
            os.close(end)
        assert process.stdin is not None and process.stdout is not None
        ours = [(os.fdopen(pieces[1], "wb", 0), os.fdopen(answers[0], "rb", 0)) for pieces, answers in pipes]
        return [cls(process, *ends) for ends in [(process.stdin, process.stdout), *ours]]

    def prefetch(self, share: float) -> int:
        """How many more pieces it should have, `share` at most: none while more than half of them are left."""
        most = min(AHEAD, 1 + int(AHEAD_S / self._pace_s), max(share, 1)) if self._since else 1
        return int(most) - len(self.pieces) if 2 * len(self.pieces) <= most else 0

    def give(self, pieces: Sequence[_Piece]) -> None:
        if not self.pieces:
            self._since = time.monotonic()
        self.pieces.extend(pieces)
        left = memoryview(b"".join([len(piece.packed).to_bytes(8, "little") + piece.packed for piece in pieces]))
        with contextlib.suppress(BrokenPipeError):
            while left:
                left = left[self.given.write(left) :]

    def receive(self) -> list[tuple[Any, str, Any]]:
        """Read what there is; return key, kind and value of the answers that are complete. Raises EOFError when the
        worker has died."""
        data = os.read(self.answers.fileno(), 1 << 20)
        if not data:
            raise EOFError
        self._received += data
        answers: list[tuple[Any, str, Any]] = []
        done = at = 0
        while len(self._received) >= at + 8:
            end = at + 8 + int.from_bytes(self._received[at : at + 8], "little")
            if len(self._received) < end:
                break
            kind, value = pickle.loads(self._received[at + 8 : end])
            at = end
            answers.append((self.pieces[0].key, kind, value))
            if kind != "report":
                self.pieces.popleft()
                done += 1
        del self._received[:at]
        if done:
            now = time.monotonic()
            pace = (now - self._since) / done
            self._pace_s, self._since = max(pace, (self._pace_s + pace) / 2, 1e-6), now
        return answers

    def kill(self) -> None:
        if self.process.returncode is None:  # else they are killed, and others may have their number
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        self.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.given.close()
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as gone:
            gone.register(self.answers, selectors.EVENT_READ)
            while gone.select(GONE_S) and os.read(self.answers.fileno(), 1 << 16):
                pass
        self.answers.close()


class _Processes(_Team):
    """Worker processes of this machine, which end with their parent and do not run its main module again."""

    def __init__(self, count: int, load: str) -> None:
        self.count, self.load = count, load
        self._idle: list[_Process] = []

    def __exit__(self, *error: Any) -> None:
        while self._idle:
            self._idle.pop().end()

    def prepare(self, n_pieces: int) -> None:
        missing = min(self.count, n_pieces) - len(self._idle)
        if missing > 0:
            self._idle += _Process.start(missing, self.load)

    def map(
        self, function: Callable[..., Any], calls: Iterator[Call[Key]], left: float, fate: _Fate
    ) -> Iterator[tuple[Key, Any]]:
        self.load = self.load or function.__module__
        if not self._idle:  # else as many as there is work for are prepared
            self.prepare(int(min(left, self.count)))
        again: deque[_Piece] = deque()
        busy: list[_Process] = []
        used: list[_Process] = []
        ready = selectors.DefaultSelector()
        whole = died = False

        def next_pieces(n: int, alone: bool) -> list[_Piece]:
            nonlocal left
            if alone and again:
                return [again.popleft()]
            some = [
                _Piece(key, pickle.dumps((function, arguments), pickle.HIGHEST_PROTOCOL))
                for key, arguments in islice(calls, max(n, 0))
            ]
            left -= len(some)
            return some

        def start() -> bool:
            if not (pieces := next_pieces(1, True)):
                return False
            worker = self._idle.pop() if self._idle else _Process.start(1, self.load)[0]
            busy.append(worker)
            used.append(worker)
            ready.register(worker.answers, selectors.EVENT_READ, worker)
            worker.give(pieces)
            return True

        def leave(worker: _Process) -> None:
            ready.unregister(worker.answers)
            busy.remove(worker)

        try:
            while len(busy) < self.count and start():
                pass
            while busy:
                for chosen, _ in ready.select():
                    worker: _Process = chosen.data
                    try:
                        answers = worker.receive()
                    except EOFError:
                        died = True
                        leave(worker)
                        for piece in worker.pieces:
                            piece.died += len(worker.pieces) == 1
                            if fate.lost is not None and piece.died < fate.attempts:
                                again.append(piece)
                            else:
                                yield piece.key, fate.of(piece.key, piece.died, "out of memory, or killed")
                        while len(busy) < self.count and start():
                            pass
                        continue
                    want = worker.prefetch(left // (2 * self.count))
                    if answers and (more := next_pieces(want, not worker.pieces)):
                        worker.give(more)  # before the answers are looked at: the worker need not wait
                    if not worker.pieces:
                        leave(worker)
                    for key, kind, value in answers:
                        if kind == "error":
                            raise value
                        if kind == "report":
                            if fate.hear is not None:
                                fate.hear(key, *value)
                        else:
                            yield key, value
            whole = not died
        finally:
            ready.close()
            if whole:
                self._idle += used  # for the next pieces
            else:
                for worker in used:
                    worker.kill()  # before any that a second Ctrl-C may keep us from
                for worker in used:
                    worker.end()
                self.__exit__()
