"""What bounds a run: the shares of its time, and the times that a roofline allows.

Engine: it works. Where it waits: bandwidth, data moves on the channels of the memory (clocks of data, averaged over
channels; the final flush too); dma, no data moves and DMA has as many bytes in flight as it may; latency, all else.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.replay import ReplayResult


@dataclass(frozen=True)
class BoundBy:
    """Shares of the time that sum to 1: what the engine waited for, or that it worked."""

    bandwidth: float
    latency: float
    engine: float
    dma: float

    def as_dict(self) -> dict[str, float]:
        return dict(vars(self))


@dataclass(frozen=True)
class RunTime:
    """The time of a run in ns, what bounds it, and its roofline: bytes over peak bandwidth, work over peak rate."""

    time_ns: float
    bound_by: BoundBy
    roofline_ns: dict[str, float]


def shares(total: float, working: float, moving: float, dma: float = 0.0) -> BoundBy:
    """Return the shares of `total` clocks: of them the engine works in `working`, waits while data moves in `moving`,
    and waits for DMA that is not allowed more in `dma`; what is left is latency. Each is cut to what is left for it."""
    if not total:
        return BoundBy(0.0, 0.0, 1.0, 0.0)
    engine = min(working, total)
    bandwidth = min(moving, total - engine)
    held = min(dma, total - engine - bandwidth)
    return BoundBy(bandwidth / total, max(total - engine - bandwidth - held, 0.0) / total, engine / total, held / total)


def data_clocks(bursts: float, part: Part) -> float:
    """Return the clocks of the part that so many bursts take, spread evenly over its channels."""
    return bursts * part.organisation.burst_cycles / part.organisation.channels


def issue_time(result: ReplayResult, machine: Machine) -> RunTime:
    """Return the time of a replay, in which nothing waits: of the engine or of the memory, whichever ends later."""
    dram, part = result.dram, machine.with_part_read().part
    assert dram is not None
    working = result.work.cycles * machine.engine.cycle_ns / part.tck_ns
    total = max(float(dram.total_cycles), working)
    bound = shares(total, working, data_clocks(result.total.bursts, part))
    time_ns = max(dram.time_ns, result.work.cycles * machine.engine.cycle_ns)
    return RunTime(time_ns, bound, roofline(result, machine, total))


def roofline(result: ReplayResult, machine: Machine, total: float, engines: int = 1) -> dict[str, float]:
    """Return the ns that bytes take at peak bandwidth, and the engines' operations at their peak rate.

    total: clocks of the run. Those that the memory takes after it, for writes that were posted, are no time of the run.
    """
    dram, part = result.dram, machine.with_part_read().part
    assert dram is not None
    after = max(dram.end_cycle - total, 0)
    moved = max(data_clocks(result.total.bursts, part) - after, 0) * part.tck_ns
    engine = machine.engine
    if engine.accesses_per_ns is not None:
        cycles = float(result.work.accesses)
    else:
        rate = engine.values_per_cycle
        cycles = 0.0 if rate is None else result.work.multiply_adds / rate
    return {"bandwidth": moved, "engine": cycles * engine.cycle_ns / engines}
