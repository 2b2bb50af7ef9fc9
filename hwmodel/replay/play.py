"""The array path through the machine: trace -> caches -> line transactions with real bytes -> encoder and bus -> DRAM.

What leaves the last level is cut into bursts, which are requested of the DRAM in program order; those of its RD and WR
commands, in their order, go over the wires, one after the other without going back to the idle level in between. The
final flush writes level by level, the engine's own first, by ascending address. A store that passes the last level
sends whole bursts. Time is open-loop: hwmodel.system.simulation adds the waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hwmodel.caches.cache import CacheCounts
from hwmodel.fastmemory.scratchpad import ScratchpadCounts
from hwmodel.machine import Machine
from hwmodel.replay.bus_traffic import FLUSH, HANDED_ON, RUN, InFlight, Traffic, Wires, wire_traffic
from hwmodel.replay.cache_pass import CachePass, KeptPass
from hwmodel.replay.hierarchy import Bursts, EngineWork, Int64Array, count_requests, open_loop_clock
from traces.base.checks import whole_numbers
from traces.base.errors import InputError
from traces.base.reprs import OneLineRepr
from traces.trace.chunks import STREAMS, Trace

if TYPE_CHECKING:
    from hwmodel.dram.engine import Completions, DramEngine
    from hwmodel.dram.result import DramResult


@dataclass(frozen=True, eq=False)
class ReplayResult(OneLineRepr):
    """What a trace did on a machine; integers, but for the DRAM's core energy, which hwmodel.dram.energy derived.

    loads, stores, load_bytes, store_bytes: int64[len(STREAMS)], what the engine asked for.
    caches: counts per level before the final flush. run, flush: traffic of the trace, and of writing dirty lines back
    at its end. block_bytes: bytes of a burst. partial_writes: stores that passed the last level.
    dram: the DRAM's result for all bursts, None without a part. description: of the trace.
    work: what the engine did (of several, in all, and the cycles of the one that took most). scratchpad: what it moved;
    loads and stores are then its transfers. footprint_bytes: of the trace's memory.
    """

    loads: Int64Array
    stores: Int64Array
    load_bytes: Int64Array
    store_bytes: Int64Array
    caches: tuple[CacheCounts, ...]
    run: Traffic
    flush: Traffic
    block_bytes: int
    partial_writes: int
    dram: DramResult | None
    description: dict[str, Any]
    work: EngineWork = field(default_factory=EngineWork)
    scratchpad: ScratchpadCounts | None = None
    footprint_bytes: int = 0

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        return {
            "accesses": self.work.accesses, "hit rate": self.hit_rate if self.caches else None,
            "read bytes": self.read_bytes, "written bytes": self.written_bytes, "ones": self.total.ones,
            "toggles": self.total.toggles, "DRAM ns": None if self.dram is None else self.dram.time_ns,
        }  # fmt: skip

    @cached_property
    def total(self) -> Traffic:
        """Traffic with the final flush."""
        return self.run + self.flush

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds over all lanes, padding included; 0 of a recorded trace."""
        return self.work.multiply_adds

    @property
    def read_bytes(self) -> int:
        return int(self.total.reads.sum()) * self.block_bytes

    @property
    def written_bytes(self) -> int:
        """Bytes written to memory, the final flush included."""
        return int(self.total.writes.sum()) * self.block_bytes

    @property
    def hit_rate(self) -> float:
        """Line look-ups of the first level that hit; 0 without a cache."""
        first = self.caches[0] if self.caches else None
        return first.hits / first.lookups if first and first.lookups else 0.0


def replay(
    trace: Trace | KeptPass,
    machine: Machine,
    *,
    progress: Callable[[int, int | None, str], None] | None = None,
    arrival: npt.ArrayLike | None = None,
) -> ReplayResult:
    """Play a trace on a machine and count; or what a machine with the same caches and bursts made of it (`keep`).

    Returns a ReplayResult; wire counts are None for an address-only trace, dram is None without a part.
    arrival: int64, the clock at which each burst is asked for, in program order with the final flush last (None: the
    engine's pace, or what the trace recorded). Those at which hwmodel.system served one engine
    (`requests.accept_cycle`) give its commands, times and energy; but where an engine works on after the last
    completion, writes that wait are drained there once it has ended, here at once: `end_cycle` is earlier.
    progress(accesses done, total or None, text) is called after each slice. Memory is independent of the trace's length
    (policy 'min' excepted). Raises InputError where the trace does not fit the machine, or the arrivals the bursts.
    """
    machine = machine.with_part_read()
    source = CachePass(trace, machine) if isinstance(trace, Trace) else trace.checked(machine)
    meter = _Meter(machine, source.has_data, source.description, _clocks(arrival, machine))
    for bursts in source.run():
        meter.take(bursts, RUN)
        if progress is not None:
            progress(int(source.access_counts[:, 0].sum()), source.n_accesses, "accesses replayed")
    accesses, caches = source.access_counts, source.levels
    if machine.flush:
        for bursts in source.flush():
            meter.take(bursts, FLUSH)
    dram = meter.finish()
    result = ReplayResult(
        loads=accesses[0, 0],
        stores=accesses[1, 0],
        load_bytes=accesses[0, 1],
        store_bytes=accesses[1, 1],
        caches=caches,
        run=meter.traffic(RUN),
        flush=meter.traffic(FLUSH),
        block_bytes=machine.bus.block_bytes,
        partial_writes=source.partial_writes,
        dram=dram,
        description=dict(source.description),
        work=source.work,
        scratchpad=source.scratchpad,
        footprint_bytes=source.footprint_bytes,
    )
    check_conservation(result, source.levels, machine)
    return result


def _clocks(arrival: npt.ArrayLike | None, machine: Machine) -> Int64Array | None:
    if arrival is None:
        return None
    if machine.part is None:
        raise InputError("arrival: clocks of requests need a machine with a DRAM part")
    return whole_numbers(arrival, "arrival", np.int64, item="burst", most=1 << 60)


class _Meter:
    """Counts requests, sends their addresses to the DRAM, and the bytes of the bursts that it serves over the wires."""

    def __init__(
        self, machine: Machine, has_data: bool, description: Mapping[str, Any], arrival: Int64Array | None
    ) -> None:
        self.counts = np.zeros((2, 2, len(STREAMS)), np.int64)  # run and flush; reads and writes
        self.engine: DramEngine | None = None
        self.clock = open_loop_clock(machine)
        self.arrival, self.taken = arrival, 0
        self.last_arrival = 0
        n_channels = 1
        if machine.part is not None:
            from hwmodel.dram.engine import DramEngine

            self.engine = DramEngine(machine.part, machine.memory_controller(), sent=True)
            organisation = self.engine.part.organisation
            n_channels, burst = organisation.channels, organisation.burst_bytes
            if burst != machine.bus.block_bytes:
                raise InputError(f"bus block_bytes {machine.bus.block_bytes} is not the part's burst of {burst} bytes")
        self.wires = Wires(machine, n_channels, description) if has_data else None
        self.in_flight = InFlight(machine.bus.block_bytes, 1, self.wires)
        self.served: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def take(self, bursts: Bursts, which: int) -> None:
        self.counts[which] += count_requests(bursts)
        if self.engine is None:
            if self.wires is not None:
                assert bursts.data is not None
                of_set = np.full(len(bursts), which, np.uint8)
                self.wires.send(bursts.data, bursts.stream, bursts.is_write, of_set)
            return
        arrival = self._arrival(bursts)
        if len(arrival):
            arrival = np.maximum(arrival, self.last_arrival)  # a final flush comes after everything recorded
            self.last_arrival = int(arrival[-1])
        self.in_flight.add(0, bursts, which)
        self._completed(self.engine.feed(bursts.address, bursts.is_write, arrival))

    def _arrival(self, bursts: Bursts) -> Int64Array:
        if self.arrival is None:
            assert self.clock is not None
            return self.clock(bursts.work) if bursts.cycle is None else bursts.cycle
        given = self.arrival[self.taken : self.taken + len(bursts)]
        self.taken += len(bursts)
        if len(given) < len(bursts):
            raise InputError(f"arrival has {len(self.arrival)} clocks, the trace causes {self.taken} bursts or more")
        return given

    def finish(self) -> DramResult | None:
        if self.engine is None:
            return None
        if self.arrival is not None and self.taken < len(self.arrival):
            raise InputError(f"arrival has {len(self.arrival)} clocks, the trace causes {self.taken} bursts")
        self._completed(self.engine.finish())
        self._hand_on()
        assert len(self.in_flight) == 0, "a request was never served"
        return self.engine.result(np.zeros(0, np.int64))

    def traffic(self, which: int) -> Traffic:
        bursts = self.counts if self.engine is None else self.in_flight.counts
        return wire_traffic(self.counts[which], bursts[which], self.wires, which)

    def _completed(self, block: Completions) -> None:
        """Keep what was served, to hand it on in larger blocks."""
        if len(block.sent) or len(block.unsent):
            self.served.append((block.sent, block.sent_channel, block.unsent))
        if sum(len(sent) for sent, _, _ in self.served) >= HANDED_ON:
            self._hand_on()

    def _hand_on(self) -> None:
        if len(self.served) == 1:
            self.in_flight.served(*self.served[0])
        elif self.served:
            self.in_flight.served(*map(np.concatenate, zip(*self.served, strict=True)))
        self.served = []


def check_conservation(result: ReplayResult, final: tuple[CacheCounts, ...], machine: Machine) -> None:
    """Assert that nothing was lost or made up between the levels, whose counts after the flush are `final`."""
    check_wires(result, machine)
    if result.scratchpad is not None:
        check_transfers(result, result.scratchpad)
    if not final:
        return
    first = result.caches[0]
    assert int(result.loads.sum() + result.stores.sum()) == first.loads + first.stores + first.bypassing
    for inner, outer in pairwise(final):
        assert (
            outer.loads + outer.bypassing == inner.fills + inner.bypassing_lines
            and outer.stores == inner.writebacks + inner.flushed + inner.through_writes
        )
    last, spec = final[-1], machine.caches[-1]
    assert result.read_bytes == (last.fills + last.bypassing_lines) * spec.line_bytes
    whole = (last.writebacks + last.flushed) * spec.line_bytes
    if last.through_writes == 0:
        assert result.written_bytes == whole
    else:
        assert result.written_bytes >= whole + last.through_writes * machine.bus.block_bytes
    if machine.flush:
        assert all(counts.dirty_at_end == 0 for counts in final)


def check_transfers(result: ReplayResult, counts: ScratchpadCounts) -> None:
    """Assert that the transfers of rows are those the I/O model counts, in every pass."""
    rows = [STREAMS.index(name) for name in ("inputs", "partial_sums", "outputs")]
    moved = [int(counted[rows].sum()) for counted in (result.loads, result.stores)]
    loads = counts.reads_neurons - (counts.bias_reads if counts.bias == "scalar" else 0)
    assert moved[0] == loads * counts.passes, "rows were loaded that the I/O model does not count"
    assert moved[1] == (counts.writes_live + counts.writes_outputs) * counts.passes, "rows stored and not counted"
    widths = np.array([counts.row_bytes, counts.sum_row_bytes, counts.row_bytes])
    for rows_moved, n_bytes in ((result.loads, result.load_bytes), (result.stores, result.store_bytes)):
        assert np.array_equal(n_bytes[rows], rows_moved[rows] * widths), "a row moved in part"


def check_wires(result: ReplayResult, machine: Machine) -> None:
    """Assert that no wire was at 1 or flipped more often than it was driven; undeclared flag wires never were."""
    beats = result.total.bursts * machine.beats_per_block
    flag_wires = machine.flag_wires
    total = result.total
    if total.wires is None:
        return
    groups = [(total.wires.data, 8), (total.wires.flag, min(flag_wires, 1))]
    if total.extra_wires is not None:
        groups.append((total.extra_wires, max(flag_wires - 1, 0)))
    for wires, driven in groups:
        per_wire = wires.counts.sum(axis=0).reshape(3 * machine.bus.bus_bytes, -1)
        assert int(per_wire.min()) >= 0 and int(per_wire.max()) <= beats, "a wire did more than it was driven"
        assert not per_wire[:, driven:].any(), f"{machine.encoder!r} drives wires it does not declare"
