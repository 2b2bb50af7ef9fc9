"""Who does the pieces of a large job: threads, worker processes, or a Dask cluster. Pieces in, results out.

A piece is a call of a function of a module. What is sent is the piece alone, and only a few pieces a worker are under
way, so that neither memory nor the time before the first result grows with the job.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import islice
from typing import Any, Self, TypeVar

from traces.base.children import end_with_parent, local_dask_cluster, safe_children
from traces.base.errors import EdgewattError, InputError, MissingExtraError, unknown_name
from traces.base.registry import naming_outside

EXECUTORS = ("threads", "processes", "inline", "dask")
IN_FLIGHT = 3  # pieces a worker: one that it does, and what it does next
_MOST_TOGETHER = 64  # pieces in one task
_CONNECT_S = 10.0
_RETRIES = 2  # Dask gives a piece whose worker died to another one

Key = TypeVar("Key")
Call = tuple[Key, tuple[Any, ...]]


PART = 1 << 18  # elements of shared arrays that are worth handing to a thread
Each = Callable[[Callable[[int, int], None], int, int], None]
"""Calls function(start, stop) for all parts [start, stop) of [0, n): `in_turn`, or `Workers.each`."""


def in_turn(function: Callable[[int, int], None], n: int, size: int = PART) -> None:
    """Call function(start, stop) for each part of [0, n), one after the other."""
    for start in range(0, n, size):
        function(start, min(start + size, n))


class Abandoned(BaseException):
    """The result of this piece is not wanted any more."""


_ASKED = threading.local()


def go_on() -> None:
    """Raise Abandoned where the result of this piece is not wanted any more (Ctrl-C, an error elsewhere)."""
    ended: threading.Event | None = getattr(_ASKED, "ended", None)
    if ended is not None and ended.is_set():
        raise Abandoned


class Workers:
    """A team that is started when there is work for two, and ends with the block.

    count: workers (of a scheduler given: as many as it has). executor: of EXECUTORS; threads are for work that is
    compiled and lets other threads run. scheduler: address of a Dask scheduler. local: what the workers of a Dask
    cluster are that is started here: threads of this process, or processes. Raises InputError for other names and
    counts.
    """

    def __init__(
        self, count: int = 1, executor: str = "threads", scheduler: str | None = None, local: str = "processes"
    ) -> None:
        if count < 1:
            raise InputError(f"workers is {count}: at least one process does the work")
        if executor not in EXECUTORS:
            raise unknown_name("executor", executor, EXECUTORS)
        self.executor = "dask" if scheduler is not None else executor
        self.count, self.scheduler = (1 if executor == "inline" else count), scheduler
        self.local = local
        self._team: _Team | None = None
        self._threads: _Team | None = None
        self._ends = ExitStack()

    @classmethod
    def of(cls, workers: int | Workers) -> AbstractContextManager[Workers]:
        """Return a team for a number of workers; one that is given stays the giver's to end."""
        return nullcontext(workers) if isinstance(workers, Workers) else cls(workers)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self._team = self._threads = None
        self._ends.close()

    def map(
        self, function: Callable[..., Any], calls: Iterable[Call[Key]], count: int | None = None
    ) -> Iterator[tuple[Key, Any]]:
        """Yield (key, function(*arguments)) for each (key, arguments), in the order in which they are done.

        count: how many calls there are, if that is known: the last go one by one, so that all workers end together.
        Raises what a call raises; EdgewattError if a worker process dies or no scheduler answers, MissingExtraError
        without Dask.
        """
        calls = iter(calls)
        first = list(islice(calls, 2))
        if self.executor != "dask" and (self.count == 1 or len(first) < 2):
            for key, arguments in _chained(first, calls):
                yield key, function(*arguments)
            return
        yield from self._members().map(function, _chained(first, calls), count)

    def each(self, function: Callable[[int, int], None], n: int, size: int = PART) -> None:
        """Call function(start, stop) for each part of [0, n); threads of this process share them, whoever does pieces.

        function: fills or sums up parts of arrays by NumPy. Raises what it raises.
        """
        if self.count == 1 or n <= size:
            in_turn(function, n, size)
            return
        parts = ((start, (start, min(start + size, n))) for start in range(0, n, size))
        for _ in self._sharing().map(function, parts):
            pass

    def _members(self) -> _Team:
        if self._team is None:
            made = {"threads": _Threads, "processes": _Processes}
            team: _Team = _dask(self) if self.executor == "dask" else made[self.executor](self.count)
            self._team = self._ends.enter_context(team)
        return self._team

    def _sharing(self) -> _Team:
        if self.executor == "threads":
            return self._members()
        if self._threads is None:  # what other processes would have to be sent
            self._threads = self._ends.enter_context(_Threads(self.count))
        return self._threads


def _chained(first: list[Call[Key]], rest: Iterator[Call[Key]]) -> Iterator[Call[Key]]:
    while first:
        yield first.pop(0)  # and keep nothing of it
    yield from rest


class _Team(ABC):
    """Workers and what is under way at them. Pieces travel together until they take `together_s`, each alone at 0."""

    together_s = 0.0
    lost: type[Exception] = BrokenExecutor
    loss = "a worker process died (out of memory, or killed); what a checkpoint holds is not done again"

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: Any) -> None: ...

    @abstractmethod
    def members(self) -> int:
        """How many pieces are done at once."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
        """Return the future of `_together` for some calls."""

    @abstractmethod
    def done(self, under_way: Iterable[Any]) -> Iterable[Any]:
        """Wait for one of these futures; return those that are done."""

    def map(
        self, function: Callable[..., Any], calls: Iterator[Call[Key]], count: int | None = None
    ) -> Iterator[tuple[Key, Any]]:
        """See Workers.map."""
        under_way: dict[Any, list[Key]] = {}
        size = 1  # of the first ones, which tell how long they take
        left = math.inf if count is None else count

        def fill() -> None:
            nonlocal left
            members = self.members()
            while len(under_way) < IN_FLIGHT * members:
                share = int(min(size, max(left // (2 * members), 1)))  # guided: Polychronopoulos and Kuck 1987
                if not (some := list(islice(calls, share))):
                    break
                left -= len(some)
                under_way[self.submit(function, [arguments for _, arguments in some])] = [key for key, _ in some]

        try:
            fill()
            while under_way:
                for future in self.done(under_way):
                    keys = under_way.pop(future)
                    results, seconds = future.result()
                    size = min(max(int(len(keys) * self.together_s / max(seconds, 1e-9)), 1), _MOST_TOGETHER)
                    del future  # a cluster need not hold it
                    fill()
                    yield from zip(keys, results, strict=True)
        except self.lost as error:
            raise EdgewattError(f"{self.loss} ({error})" if str(error) else self.loss) from error
        finally:
            for future in under_way:
                future.cancel()


def _together(function: Callable[..., Any], packed: bytes) -> tuple[list[Any], float]:
    """Do some pieces; return what they give and the seconds that they took."""
    return _in_turn(function, pickle.loads(packed))


def _in_turn(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> tuple[list[Any], float]:
    began = time.perf_counter()
    return [naming_outside(function, *arguments) for arguments in calls], time.perf_counter() - began


class _Pool(_Team):
    """Workers of this machine, by an executor of the standard library."""

    def __init__(self, count: int, pool: Executor) -> None:
        self.count, self._pool = count, pool

    def __exit__(self, *error: Any) -> None:
        self._pool.shutdown(cancel_futures=True)

    def members(self) -> int:
        """See _Team."""
        return self.count

    def done(self, under_way: Iterable[Future[Any]]) -> Iterable[Future[Any]]:
        """See _Team."""
        return wait(under_way, return_when=FIRST_COMPLETED).done


class _Threads(_Pool):
    """Threads of this process: nothing is sent and nothing is started."""

    def __init__(self, count: int) -> None:
        self._ended = threading.Event()
        super().__init__(count, _threads(count, self._ended))

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        super().__exit__(*error)

    def submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Future[Any]:
        """See _Team."""
        return self._pool.submit(_in_turn, function, calls)


def _threads(count: int, ended: threading.Event) -> Executor:
    """Return an executor of threads whose pieces are abandoned once `ended` is set."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count, "edgewatt", lambda: setattr(_ASKED, "ended", ended))


class _Processes(_Pool):
    """Worker processes of this machine, which end with their parent."""

    together_s = 0.05  # a task costs about a millisecond

    def __init__(self, count: int) -> None:
        from multiprocessing import get_context

        super().__init__(count, ProcessPoolExecutor(count, get_context("spawn"), initializer=end_with_parent))

    def submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Future[Any]:
        """See _Team."""
        with safe_children():
            return self._pool.submit(_together, function, pickle.dumps(calls, pickle.HIGHEST_PROTOCOL))


def _dask(workers: Workers) -> _Dask:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("distributed", "dask") from error
    return _Dask(distributed, workers.count, workers.scheduler, workers.local == "threads")


class _Dask(_Team):
    """A local cluster of as many threads or processes, or the cluster at a scheduler's address."""

    together_s = 0.5  # a task costs some milliseconds
    loss = "Dask workers died on a piece"

    def __init__(self, distributed: Any, count: int, scheduler: str | None, threads: bool) -> None:
        self._distributed, self._ends, ended = distributed, ExitStack(), threading.Event()
        try:
            if scheduler is None:
                own = _threads(count, ended) if threads else None
                cluster = self._ends.enter_context(local_dask_cluster(distributed, count, own))
            self._client = distributed.Client(cluster if scheduler is None else scheduler, timeout=f"{_CONNECT_S:g}s")
        except (OSError, TimeoutError, ValueError) as error:
            self._ends.close()
            raise EdgewattError(f"no Dask scheduler answers at {scheduler or 'this machine'} ({error})") from error
        self._ends.enter_context(self._client)
        self._ends.callback(ended.set)  # before the cluster waits for its threads
        self.lost, self._finished = distributed.KilledWorker, distributed.as_completed(with_results=False)

    def __exit__(self, *error: Any) -> None:
        self._ends.close()

    def members(self) -> int:
        """See _Team: of the threads that live."""
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
        """See _Team. As bytes: a scheduler reads arguments of other kinds, and writes them again."""
        packed = self._distributed.protocol.pickle.dumps(calls)
        future = self._client.submit(_together, function, packed, pure=False, retries=_RETRIES)
        self._finished.add(future)
        return future

    def done(self, under_way: Iterable[Any]) -> Iterable[Any]:
        """See _Team."""
        return (next(self._finished),)
