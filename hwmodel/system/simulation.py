"""The machine in time (SimPy): edge engines, caches, memory channels, each waiting for the others.

An engine makes its accesses at its rate, in order, and may have `outstanding_misses` reads in flight; the caches are
those of hwmodel.replay; what leaves them goes to the channels in blocks of requests, and each burst is compiled
(hwmodel.system.channels). Counts are integers and agree with hwmodel.replay: with one engine served in order they are
equal; where the controller reorders, `served` is the order of the bursts on the wires, in which replay counts the same.

Choices: the caches answer at once, so time is that of the engine's rate and of memory. Engines that share a cache take
turns after `interleave_accesses` accesses. A store that misses waits for its line like a load. The final flush begins
when all engines have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwmodel.caches.cache_pass import count_accesses
from hwmodel.caches.hierarchy import SLICE_ACCESSES, Bursts, CacheHierarchy, open_hierarchy, slices
from hwmodel.dram.engine import DramResult, StuckError, load_part
from hwmodel.machine import Machine
from hwmodel.replay import ReplayResult, Wires, check_conservation
from hwmodel.system.channels import Channels
from hwmodel.system.in_flight import Pending
from traces.access.trace import STREAMS, Trace
from traces.base.errors import InputError

BLOCK_REQUESTS = 64
RUN, FLUSH = 0, 1


@dataclass(frozen=True)
class EngineRun:
    """One engine: accesses made, requests (bursts) sent to memory, cycle of its end, clocks of pure computing."""

    accesses: int
    requests: int
    finish_cycle: int
    compute_cycles: int

    @property
    def stall_cycles(self) -> int:
        """Clocks spent waiting for memory."""
        return self.finish_cycle - self.compute_cycles


@dataclass(frozen=True, eq=False)
class Requests:
    """Every request of a run, by number: uint64 address, uint8 is_write and stream, int64 accept_cycle, done_cycle.

    served: request numbers in the order of their bursts on the wires of each channel (a request that was merged with
    another, or answered by a waiting write, has no burst).
    """

    address: np.ndarray
    is_write: np.ndarray
    stream: np.ndarray
    accept_cycle: np.ndarray
    done_cycle: np.ndarray
    served: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class SystemResult:
    """Counts as replay gives them (`counts.dram` holds times and energies of this run), and the time of each engine.

    total_cycles: clocks of the part until the last engine has ended and the flush is accepted.
    requests: of a run with keep=True.
    """

    counts: ReplayResult
    engines: tuple[EngineRun, ...]
    total_cycles: int
    tck_ns: float
    requests: Requests | None

    @property
    def dram(self) -> DramResult:
        """Times, commands and core energy of the memory."""
        assert self.counts.dram is not None
        return self.counts.dram

    @property
    def time_ns(self) -> float:
        """Run time in ns."""
        return self.total_cycles * self.tck_ns


def simulate(
    trace: Trace | Sequence[Trace],
    machine: Machine,
    *,
    block_requests: int = BLOCK_REQUESTS,
    interleave_accesses: int = 1024,
    keep: bool = False,
    progress: Callable[[int, int | None, str], None] | None = None,
) -> SystemResult:
    """Run one trace, or one per engine (see traces.access.partition), on a machine with a DRAM part.

    All traces share one memory and its caches. keep: return every request (memory grows with the run).
    Raises InputError where the traces do not fit the machine, StuckError if the run makes no progress.
    """
    import simpy

    traces = (trace,) if isinstance(trace, Trace) else tuple(trace)
    _check(traces, machine, block_requests, interleave_accesses)
    env = simpy.Environment()
    world = _World(env, traces, machine, block_requests, interleave_accesses, keep, progress)
    finished = env.process(world.run())
    env.run()
    if not finished.triggered:
        raise StuckError(f"the system made no progress up to cycle {env.now}: {world.channels.waiting()}")
    return world.result()


def _check(traces: tuple[Trace, ...], machine: Machine, block_requests: int, interleave: int) -> None:
    if not traces:
        raise InputError("the system needs at least one trace")
    if machine.part is None:
        raise InputError("the system needs a machine with a DRAM part")
    if block_requests < 1 or interleave < 1:
        raise InputError("block_requests and interleave_accesses must be at least 1")
    if any(t.memory is not traces[0].memory for t in traces):
        raise InputError("engines share one memory: cut one trace with traces.access.partition.partition")
    if len(traces) > 1 and any(cache.policy == "min" for cache in machine.caches):
        raise InputError("policy 'min' needs the future, which several engines decide together: use another policy")
    if len(traces) > 64:
        raise InputError("at most 64 engines")


class _World:
    """Everything one run holds."""

    def __init__(
        self,
        env: Any,
        traces: tuple[Trace, ...],
        machine: Machine,
        block_requests: int,
        interleave: int,
        keep: bool,
        progress: Callable[[int, int | None, str], None] | None,
    ) -> None:
        self.env, self.traces, self.machine = env, traces, machine
        self.part = load_part(machine.part)
        if self.part.organisation.burst_bytes != machine.bus.block_bytes:
            raise InputError(
                f"bus block_bytes {machine.bus.block_bytes} is not the part's burst of "
                f"{self.part.organisation.burst_bytes} bytes"
            )
        self.block_requests = block_requests
        self.slice_accesses = SLICE_ACCESSES if len(traces) == 1 else interleave
        self.progress = progress
        self.hierarchy: CacheHierarchy = open_hierarchy(traces[0], machine)
        self.cycles_per_access = 1 / (machine.engine.accesses_per_ns * self.part.tck_ns)
        self.channels = Channels(
            env,
            self.part,
            machine.memory_controller(),
            [machine.engine.outstanding_misses] * len(traces),
            on_served=self._served,
            on_done=self._done,
        )
        n_channels = self.part.organisation.channels
        has_data = traces[0].has_data
        self.wires = [Wires(machine, n_sets=2) for _ in range(n_channels)] if has_data else None
        self.pending = [Pending(machine.bus.block_bytes, has_data) for _ in traces]
        self.asked = np.zeros((2, 2, len(STREAMS)), np.int64)
        self.bursts = np.zeros((2, 2, len(STREAMS)), np.int64)  # run and flush; reads and writes
        self.accesses = np.zeros(len(traces), np.int64)
        self.last = np.zeros(len(traces), np.int64)  # last cycle at which an engine was given something
        self.compute = np.zeros(len(traces), np.int64)
        self.tail = np.zeros(len(traces), np.int64)
        self.kept: list[tuple[np.ndarray, ...]] | None = [] if keep else None
        self.kept_done: list[tuple[np.ndarray, ...]] = []
        self.kept_served: list[list[np.ndarray]] = [[] for _ in range(n_channels)]
        self.flushing = False
        self.caches_at_end: tuple[Any, ...] = ()

    # ---- processes ----

    def run(self) -> Generator[Any, Any, None]:
        yield self.env.all_of([self.env.process(self._engine(e)) for e in range(len(self.traces))])
        self.caches_at_end = tuple(level.counts for level in self.hierarchy.levels)
        self.flushing = True
        if self.machine.flush:
            for bursts in self.hierarchy.flush():
                for block in self._blocks(0, bursts, np.zeros(len(bursts), np.int64), FLUSH):
                    yield self.channels.hand_over(0, *block)
        self.channels.close(0)
        yield self.env.all_of(self.channels.processes)

    def _engine(self, e: int) -> Generator[Any, Any, None]:
        position = 0
        for chunk in slices(self.traces[e], self.slice_accesses):
            before = int(self.accesses.sum())
            bursts = self.hierarchy.feed(chunk)
            self.asked += count_accesses(chunk)
            when = bursts.cycle
            if when is None:
                own = bursts.access - before + int(self.accesses[e])
                when = (own * self.cycles_per_access).astype(np.int64)
            self.accesses[e] += len(chunk)
            gaps = np.maximum(np.diff(when, prepend=position), 0)
            position = int(when[-1]) if len(when) else position
            for block in self._blocks(e, bursts, gaps, RUN):
                yield self.channels.hand_over(e, *block)
            if self.progress is not None:
                self.progress(int(self.accesses.sum()), self._total(), "accesses simulated")
        self.compute[e] = int(self.accesses[e] * self.cycles_per_access)
        self.tail[e] = max(int(self.compute[e]) - position, 0)
        (self.channels.close if e else self.channels.park)(e)  # port 0 waits for the flush

    def _blocks(self, e: int, bursts: Bursts, gaps: np.ndarray, which: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Number the requests of an engine, remember them until they are served, and cut them into blocks."""
        for write in (0, 1):
            self.bursts[which, write] += np.bincount(
                bursts.stream[bursts.is_write == write], minlength=len(STREAMS)
            )  # fmt: skip
        first = self.pending[e].add(bursts, which)
        numbers = (first + np.arange(len(bursts), dtype=np.int64)) * len(self.traces) + e
        if self.kept is not None:
            self.kept.append((numbers, bursts.address, bursts.is_write, bursts.stream))
        size = self.block_requests
        for start in range(0, len(bursts), size):
            part = slice(start, start + size)
            yield numbers[part], bursts.address[part], bursts.is_write[part], gaps[part]

    def _total(self) -> int | None:
        lengths = [t.n_accesses for t in self.traces]
        return None if None in lengths else sum(n for n in lengths if n is not None)

    # ---- what leaves the channels ----

    def _done(self, request: np.ndarray, accepted: np.ndarray, done: np.ndarray, own_burst: np.ndarray) -> None:
        engine = request % len(self.traces)
        np.maximum.at(self.last, engine, done)
        for e in np.unique(engine[own_burst == 0]).tolist():
            self.pending[e].drop(request[(engine == e) & (own_burst == 0)] // len(self.traces))
        if self.kept is not None:
            self.kept_done.append((request, accepted, done))

    def _served(self, channel: int, request: np.ndarray) -> None:
        if self.kept is not None:
            self.kept_served[channel].append(request)
        if not len(request):
            return
        engine, number = request % len(self.traces), request // len(self.traces)
        n, size = len(request), self.machine.bus.block_bytes if self.wires is not None else 0
        data = np.empty((n, size), np.uint8)
        stream, write, which = (np.empty(n, np.uint8) for _ in range(3))
        for e in range(len(self.traces)):
            mine = np.flatnonzero(engine == e)
            if len(mine):
                taken = self.pending[e].take(number[mine])
                stream[mine], write[mine], which[mine] = taken[:3]
                data[mine] = taken[3]
        if self.wires is not None:
            self.wires[channel].send(data.reshape(-1), stream, write, which)

    # ---- the result ----

    def result(self) -> SystemResult:
        requests = self._requests()
        none = np.zeros(0, np.int64)
        dram = self.channels.result(none, none)
        run, flush = (self._traffic(which) for which in (RUN, FLUSH))
        counts = ReplayResult(
            loads=self.asked[0, 0],
            stores=self.asked[1, 0],
            load_bytes=self.asked[0, 1],
            store_bytes=self.asked[1, 1],
            caches=self.caches_at_end,
            run=run,
            flush=flush,
            block_bytes=self.machine.bus.block_bytes,
            partial_writes=self.hierarchy.partial_writes,
            dram=dram,
            description=dict(self.traces[0].description),
        )
        check_conservation(counts, tuple(level.counts for level in self.hierarchy.levels), self.machine)
        assert all(len(p) == 0 for p in self.pending), "a request was never served"
        engines = tuple(
            EngineRun(
                int(self.accesses[e]),
                self.pending[e].total,
                int(max(self.last[e] + self.tail[e], self.compute[e])),
                int(self.compute[e]),
            )
            for e in range(len(self.traces))
        )
        total = max(max(engine.finish_cycle for engine in engines), dram.total_cycles)
        return SystemResult(counts, engines, total, self.part.tck_ns, requests)

    def _traffic(self, which: int) -> Any:
        from hwmodel.replay import Traffic

        reads, writes = self.bursts[which]
        if self.wires is None:
            return Traffic(reads, writes, None, None)
        parts = [
            wires.traffic(reads if c == 0 else 0 * reads, writes if c == 0 else 0 * writes, which)
            for c, wires in enumerate(self.wires)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def _requests(self) -> Requests | None:
        if self.kept is None:
            return None
        number, address, write, stream = (np.concatenate(column) for column in zip(*self.kept, strict=True))
        order = np.argsort(number, kind="stable")
        done_number, accepted, done = (np.concatenate(column) for column in zip(*self.kept_done, strict=True))
        done_order = np.argsort(done_number, kind="stable")
        ids = number[order]
        assert np.array_equal(ids, done_number[done_order]), "a request was lost or made up"
        served = tuple(
            np.searchsorted(ids, np.concatenate(blocks) if blocks else np.zeros(0, np.int64))
            for blocks in self.kept_served
        )
        return Requests(
            address[order], write[order], stream[order], accepted[done_order], done[done_order], served
        )  # fmt: skip
