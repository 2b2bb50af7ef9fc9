"""The machine in time (SimPy): edge engines, caches, memory channels, each waiting for the others.

An engine makes its accesses at its pace, in order, and may have `outstanding_misses` lines in flight; what leaves the
caches of hwmodel.replay goes to the channels in blocks (hwmodel.system.memory). With one engine served in order counts
equal those of replay; else `requests.served` is the order of bursts in which replay counts the same.

Caches answer at once; engines that share one take turns after `interleave_accesses` accesses. A store that misses waits
for its line like a load. The final flush begins when all engines have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hwmodel.dram.engine import StuckError
from hwmodel.dram.result import DramResult
from hwmodel.machine import Machine
from hwmodel.parts.part_file import load_part
from hwmodel.replay import ReplayResult, check_conservation
from hwmodel.replay.bus_traffic import FLUSH, RUN
from hwmodel.replay.hierarchy import EngineSide, EngineWork, open_hierarchy
from hwmodel.system.bounds import RunTime, roofline, shares
from hwmodel.system.dma import DmaEngine
from hwmodel.system.engine import Engine, EngineRun, Turns
from hwmodel.system.memory import MemorySystem, Requests
from traces.base.errors import InputError
from traces.trace.chunks import SLICE_ACCESSES, Trace

BLOCK_REQUESTS = 64


@dataclass(frozen=True, eq=False)
class SystemResult:
    """Counts as replay gives them (`counts.dram` holds times and energies of this run), and the time of each engine.

    total_cycles: clocks of the part until the last engine has ended and the flush is accepted.
    run_time: the same in ns, what bounds it, and its roofline. requests: of a run with keep=True.
    """

    counts: ReplayResult
    engines: tuple[EngineRun, ...]
    total_cycles: int
    tck_ns: float
    run_time: RunTime
    requests: Requests | None

    @property
    def dram(self) -> DramResult:
        assert self.counts.dram is not None
        return self.counts.dram

    @property
    def time_ns(self) -> float:
        return self.run_time.time_ns


def simulate(
    trace: Trace | Sequence[Trace],
    machine: Machine,
    *,
    block_requests: int = BLOCK_REQUESTS,
    interleave_accesses: int = 1024,
    keep: bool = False,
    progress: Callable[[int, int | None, str], None] | None = None,
) -> SystemResult:
    """Run one trace, or one per engine (see traces.trace.partition), on a machine with a DRAM part.

    All traces share one memory and its caches. block_requests: requests that go to memory at once. interleave_accesses:
    of one engine before the next one's turn at shared caches. keep: return every request (memory grows with the run).
    Raises InputError where the traces do not fit the machine, StuckError if the run makes no progress.
    """
    import simpy

    traces = (trace,) if isinstance(trace, Trace) else tuple(trace)
    _check(traces, machine, block_requests, interleave_accesses)
    part = load_part(machine.part)
    burst = part.organisation.burst_bytes
    if burst != machine.bus.block_bytes:
        raise InputError(f"bus block_bytes {machine.bus.block_bytes} is not the part's burst of {burst} bytes")
    env = simpy.Environment()
    sides = [EngineSide(one, machine) for one in traces]
    caches = open_hierarchy(sides[0].trace, machine)
    memory = MemorySystem(
        env,
        part,
        machine,
        len(traces),
        trace=traces[0],
        block_requests=block_requests,
        keep=keep,
    )
    lengths = [trace.n_accesses for trace in traces]
    n_accesses = None if None in lengths else sum(n for n in lengths if n is not None)

    def report() -> None:
        if progress is not None:
            progress(int(caches.access_counts[:, 0].sum()), n_accesses, "accesses simulated")

    clocks = machine.engine.cycle_ns / part.tck_ns
    turns = Turns(env, [trace.waits for trace in traces])
    engines: list[Engine | DmaEngine] = [
        DmaEngine(one, caches, memory, clocks_per_cycle=clocks, on_accesses=report)
        if machine.scratchpad is not None
        else Engine(
            number,
            one,
            caches,
            memory,
            clocks_per_cycle=clocks,
            slice_accesses=SLICE_ACCESSES if len(traces) == 1 else interleave_accesses,
            on_accesses=report,
            turns=turns,
        )
        for number, one in enumerate(sides)
    ]
    at_end: list[Any] = []  # counts per cache level before the flush

    def run() -> Generator[Any, Any, None]:
        yield env.all_of([env.process(engine.process()) for engine in engines])
        at_end.extend(level.counts for level in caches.levels)
        if machine.flush:
            for bursts in caches.flush():
                yield from memory.send(0, bursts, np.zeros(len(bursts), np.int64), FLUSH)
        memory.close(0)
        yield memory.process

    finished = env.process(run())
    env.run()
    if not finished.triggered:
        raise StuckError(f"the system made no progress up to cycle {env.now}: {memory.waiting()}")
    dram = memory.result()
    counts = ReplayResult(
        loads=caches.access_counts[0, 0],
        stores=caches.access_counts[1, 0],
        load_bytes=caches.access_counts[0, 1],
        store_bytes=caches.access_counts[1, 1],
        caches=tuple(at_end),
        run=memory.traffic(RUN),
        flush=memory.traffic(FLUSH),
        block_bytes=machine.bus.block_bytes,
        partial_writes=caches.partial_writes,
        dram=dram,
        description=dict(traces[0].description),
        work=_work_of_all(sides),
        scratchpad=sides[0].scratchpad,
        footprint_bytes=sides[0].trace.memory.total_bytes,
    )
    check_conservation(counts, tuple(level.counts for level in caches.levels), machine)
    runs = tuple(engine.result() for engine in engines)
    last = max(runs, key=lambda run: run.finish_cycle)
    total = max(last.finish_cycle, dram.total_cycles)
    working = last.compute_cycles + last.depends_cycles  # by itself, or another one that it waits for
    bound = shares(total, working, last.bandwidth_cycles + total - last.finish_cycle, last.dma_cycles)
    return SystemResult(
        counts,
        runs,
        total,
        part.tck_ns,
        RunTime(total * part.tck_ns, bound, roofline(counts, machine, total, len(runs))),
        memory.log.requests() if memory.log is not None else None,
    )


def _work_of_all(sides: Sequence[EngineSide]) -> EngineWork:
    each = [side.work for side in sides]
    added = {name: sum(getattr(work, name) for work in each) for name in ("accesses", "multiply_adds", "instructions")}
    return EngineWork(cycles=max(work.cycles for work in each), **added)


def _check(traces: tuple[Trace, ...], machine: Machine, block_requests: int, interleave: int) -> None:
    if not traces:
        raise InputError("the system needs at least one trace")
    if machine.part is None:
        raise InputError("the system needs a machine with a DRAM part")
    if block_requests < 1 or interleave < 1:
        raise InputError("block_requests and interleave_accesses must be at least 1")
    if any(t.memory is not traces[0].memory for t in traces):
        raise InputError("engines share one memory: cut one trace with traces.trace.partition.partition")
    if len(traces) > 1 and machine.scratchpad is not None:
        raise InputError("a scratchpad belongs to one engine: simulate one trace")
    if len(traces) > 1 and any(cache.policy_type.needs_future for cache in machine.caches):
        names = ", ".join(cache.policy for cache in machine.caches if cache.policy_type.needs_future)
        raise InputError(f"policy {names} needs the future, which several engines decide together: use another policy")
    if len(traces) > 64:
        raise InputError("at most 64 engines")
