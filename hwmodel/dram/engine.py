"""DRAM timing: requests in, completion cycles, commands and core energy out.

`simulate_dram` takes whole arrays; `DramEngine` takes blocks and keeps its state, so traces of any length run in
constant memory. The arithmetic is compiled (cython_ext.dram.engine); the rules are in hwmodel.dram.constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.constraints import COMMANDS, gap_table
from hwmodel.dram.controller import PAGE_POLICIES, ControllerSpec
from hwmodel.dram.part import AddressMap, Part
from hwmodel.dram.part_file import load_part, part_names
from hwmodel.dram.result import DramCounts, DramResult
from traces.base.errors import EdgewattError, InputError, did_you_mean

__all__ = [
    "ControllerSpec",
    "DramCounts",
    "DramEngine",
    "DramResult",
    "Part",
    "load_part",
    "part_names",
    "simulate_dram",
]

# A run in which a request waits while no burst is served for this many refresh intervals makes no progress.
WATCHDOG_REFRESH_INTERVALS = 64


class StuckError(EdgewattError, RuntimeError):
    """A simulation made no progress; the message names the queues that wait."""


def simulate_dram(
    address: Any,
    is_write: Any,
    arrival_cycle: Any,
    *,
    part: str | Path | Mapping[str, Any] | Part,
    controller: ControllerSpec | Mapping[str, Any] | None = None,
    trace: bool = False,
) -> DramResult:
    """Simulate a request stream on a DRAM part.

    address uint64[n] (bytes, multiples of the part's burst), is_write bool[n], arrival_cycle int64[n] (earliest cycle
    of acceptance, not decreasing; a controller accepts at most one request per clock and channel).
    part: shipped name, YAML path or mapping. controller: ControllerSpec or its fields. trace: keep every command.
    Raises InputError for unaligned or out-of-range addresses, arrivals that go backwards or unequal lengths, StuckError
    if the run makes no progress.
    """
    engine = DramEngine(part, controller, trace=trace)
    address, is_write, arrival_cycle = _request_arrays(address, is_write, arrival_cycle)
    done, accepted = np.full((2, len(address)), -1, np.int64)
    trace_blocks: list[tuple[np.ndarray, ...]] = []

    def keep(completions: Completions) -> None:
        done[completions.request] = completions.done_cycle
        accepted[completions.request] = completions.accept_cycle
        if completions.commands is not None:
            trace_blocks.append(completions.commands)

    for start in range(0, len(address), engine.BLOCK):
        stop = start + engine.BLOCK
        keep(engine.feed(address[start:stop], is_write[start:stop], arrival_cycle[start:stop]))
    keep(engine.finish())
    commands = tuple(np.concatenate(blocks) for blocks in zip(*trace_blocks, strict=True)) if trace else None
    return engine.result(done, accepted, commands)


@dataclass(frozen=True)
class Completions:
    """Requests completed and commands issued since the last call: int64[n] each; commands per channel if traced."""

    request: np.ndarray
    accept_cycle: np.ndarray
    done_cycle: np.ndarray
    commands: tuple[np.ndarray, ...] | None


class DramEngine:
    """All channels of a part, fed in blocks.

    feed(address, is_write, arrival_cycle) -> Completions; finish() -> Completions; then result(). Requests are numbered
    in the order they are fed. Memory does not grow with the number of requests. Each channel takes its requests in
    order, independent of the other channels.
    """

    BLOCK = 1 << 20

    def __init__(
        self,
        part: str | Path | Mapping[str, Any] | Part,
        controller: ControllerSpec | Mapping[str, Any] | None = None,
        *,
        trace: bool = False,
    ) -> None:
        self.part = load_part(part)
        self.controller = controller_spec(controller)
        self.map = AddressMap.parse(self.controller.address_map or self.part.address_map, self.part.organisation)
        self.trace = trace
        self.channels = [
            open_channel(self.part, self.controller, self.map, trace=trace)
            for _ in range(self.part.organisation.channels)
        ]
        self._fed = 0
        self._last_arrival = 0
        self._finished = False

    def feed(self, address: np.ndarray, is_write: np.ndarray, arrival_cycle: np.ndarray) -> Completions:
        """Accept a block of requests (arrays as in simulate_dram) and return what completed so far."""
        address, is_write, arrival_cycle = _request_arrays(address, is_write, arrival_cycle)
        self._check(address, arrival_cycle)  # before anything is queued
        numbers = np.arange(self._fed, self._fed + len(address), dtype=np.int64)
        self._fed += len(address)
        if len(self.channels) == 1:
            self.channels[0].feed(0, numbers, address, is_write, arrival_cycle)
            return self._collect(range(1))
        channel = channel_of(address, self.map)
        for c in range(len(self.channels)):
            mine = np.flatnonzero(channel == c)
            self.channels[c].feed(0, numbers[mine], address[mine], is_write[mine], arrival_cycle[mine])
        return self._collect(range(len(self.channels)))

    def finish(self) -> Completions:
        """Complete everything, waiting writes too, and return the rest."""
        for channel in self.channels:
            channel.close(0)
        self._finished = True
        return self._collect(range(len(self.channels)))

    def result(
        self,
        done_cycle: np.ndarray,
        accept_cycle: np.ndarray | None = None,
        commands: tuple[np.ndarray, ...] | None = None,
    ) -> DramResult:
        """Return the result after finish(); the caller provides what it kept of completions and commands."""
        if not self._finished:
            raise RuntimeError("finish() the engine first")
        accepted = np.zeros(0, np.int64) if accept_cycle is None else accept_cycle
        return collect_result(self.channels, self.part, done_cycle, accepted, commands)

    def _check(self, address: np.ndarray, arrival: np.ndarray) -> None:
        check_addresses(address, self.part, self._fed)
        if len(arrival):
            steps = np.diff(arrival, prepend=self._last_arrival)
            if (steps < 0).any():
                at = int(np.argmax(steps < 0))
                before = self._last_arrival if at == 0 else int(arrival[at - 1])
                raise InputError(
                    f"request {self._fed + at}: arrival cycle {int(arrival[at])} goes back behind {before}: "
                    "sort the requests by arrival"
                )
            if arrival[-1] > 1 << 60:
                raise InputError(f"request {self._fed + len(arrival) - 1}: arrival cycle beyond 2^60")
            self._last_arrival = int(arrival[-1])

    def _collect(self, channels: range) -> Completions:
        requests, accepted, cycles = [], [], []
        commands: list[list[np.ndarray]] = [[np.empty(0, kernel.TRACE_DTYPE)] for _ in channels]
        for c in channels:
            status = kernel.OUTPUT_FULL
            while status == kernel.OUTPUT_FULL:
                status = self.channels[c].run()
                request, taken, cycle, _ = self.channels[c].take_done()
                requests.append(request)
                accepted.append(taken)
                cycles.append(cycle)
                if self.trace:
                    commands[c].append(self.channels[c].take_trace())
            if status == kernel.STUCK:
                raise stuck_error(self.channels[c], c)
        traces = tuple(np.concatenate(blocks) for blocks in commands) if self.trace else None
        return Completions(np.concatenate(requests), np.concatenate(accepted), np.concatenate(cycles), traces)


def controller_spec(controller: ControllerSpec | Mapping[str, Any] | None) -> ControllerSpec:
    """Return a ControllerSpec from itself, from a mapping of its fields, or the default."""
    if controller is None:
        return ControllerSpec()
    if isinstance(controller, ControllerSpec):
        return controller
    known = [f.name for f in fields(ControllerSpec)]
    for key in controller:
        if key not in known:
            raise InputError(f"the controller has no parameter {key!r}{did_you_mean(key, known)}")
    return ControllerSpec(**controller)


def open_channel(
    part: Part, controller: ControllerSpec, address_map: AddressMap, *, ports: int = 1, trace: bool = False
) -> kernel.Channel:
    """Return a compiled channel with the part's tables and the controller's policies."""
    t, o = part.timing, part.organisation
    if controller.refresh == "per-bank" and not t.tRFCpb:
        raise InputError(f"part {part.name!r} has no per-bank refresh (tRFCpb): use refresh 'all-bank'")
    read_end = (t.RL_dbi if controller.read_dbi else t.RL) + o.burst_cycles
    settings = {
        "faw": t.tFAW,
        "refresh_interval": t.tREFI,
        "refresh_cycles": t.tRFCab,
        "refresh_bank_cycles": t.tRFCpb,
        "read_data_end": read_end,
        "write_data_end": t.WL + o.burst_cycles,
        "rp": t.tRP,
        "rtp": t.tRTP,
        "write_recovery": t.WL + o.burst_cycles + t.tWR,
        "cke": t.tCKE,
        "ranks": o.ranks,
        "groups": o.bank_groups,
        "banks_per_group": o.banks_per_group,
        "command_buses": o.command_buses,
        "strict_order": controller.scheduler == "fcfs",
        "hit_cap": controller.hit_cap,
        "hit_cap_strict": controller.hit_cap_strict,
        "page": PAGE_POLICIES.index(controller.page_policy),
        "page_idle": controller.page_idle_cycles,
        "read_entries": controller.read_queue_entries,
        "write_entries": controller.write_queue_entries,
        "bank_entries": controller.bank_queue_entries,
        "write_high": controller.write_high,
        "write_low": controller.write_low,
        "write_idle": controller.write_idle,
        "latency": controller.controller_latency_cycles,
        "refresh": ("none", "all-bank", "per-bank").index(controller.refresh),
        "precharge_all": controller.refresh_precharge == "all",
        "power_down": controller.power_down_cycles,
        "watchdog": WATCHDOG_REFRESH_INTERVALS * t.tREFI,
        "ca_beats_per_clock": part.interface.wires["ca"].beats_per_clock,
        "offset_bits": (o.burst_bytes - 1).bit_length(),
    }
    wires = [_wire_cycles(part, name) if controller.command_occupancy else 1 for name in COMMANDS]
    column_shift = (o.burst_beats - 1).bit_length()  # the address counts bursts, the command columns
    fields_of_map = [
        (kernel.FIELD_NAMES.index(f.name), f.source, f.bits, f.target + (column_shift if f.name == "column" else 0))
        for f in address_map.fields
        if f.name in kernel.FIELD_NAMES
    ]
    return kernel.Channel(
        settings,
        gap_table(part, read_dbi=controller.read_dbi),
        np.array(wires, np.int64),
        np.array(fields_of_map, np.int32),
        [_level_codes(part.interface.command_levels.get(name)) for name in COMMANDS],
        n_ports=ports,
        trace=trace,
    )


def _wire_cycles(part: Part, command: str) -> int:
    stem = {"RDA": "RD", "WRA": "WR", "PREA": "PRE", "REFab": "REF", "REFpb": "REF"}.get(command, command)
    return part.command_cycles.get(stem, 0)  # power-down uses CKE, not the command wires


def _level_codes(rows: tuple[tuple[str, ...], ...] | None) -> np.ndarray | None:
    if not rows:
        return None

    def code(token: str) -> int:
        stem = token.rstrip("0123456789")
        return kernel.LEVELS[token] if token in kernel.LEVELS else kernel.WORD_BITS[stem] + int(token[len(stem) :])

    return np.array([[code(token) for token in row] for row in rows], np.int16)


def channel_of(address: np.ndarray, address_map: AddressMap) -> np.ndarray:
    """Return the channel int64[n] of byte addresses."""
    channel = np.zeros(len(address), np.int64)
    for f in address_map.fields:
        if f.name == "channel":
            piece = (address >> np.uint64(f.source)) & np.uint64((1 << f.bits) - 1)
            channel |= piece.astype(np.int64) << f.target
    return channel


def check_addresses(address: np.ndarray, part: Part, first: int = 0) -> None:
    """Raise InputError for the first address outside the part or not at the start of a burst."""
    o = part.organisation
    for wrong, why in (
        (address % np.uint64(o.burst_bytes) != 0, f"is no multiple of the {o.burst_bytes}-byte burst"),
        (address >= np.uint64(o.capacity_bytes), f"is beyond the {o.capacity_bytes} bytes of {part.name!r}"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"request {first + at}: address {int(address[at]):#x} {why}")


def _request_arrays(address: Any, is_write: Any, arrival: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    arrays = []
    for name, given, dtype in (("address", address, np.uint64), ("arrival_cycle", arrival, np.int64)):
        array = np.asarray(given)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "ui"):
            raise InputError(f"{name} must be a one-dimensional array of whole numbers")
        if array.size and array.dtype.kind == "i" and int(array.min()) < 0:
            raise InputError(f"request {int(np.argmax(array < 0))}: {name} is negative")
        if array.size and dtype is np.int64 and int(array.max()) > 1 << 60:
            raise InputError(f"request {int(np.argmax(array > 1 << 60))}: {name} is beyond 2^60")
        arrays.append(np.ascontiguousarray(array, dtype=dtype))
    write = np.asarray(is_write)
    if write.ndim != 1 or (write.size and (write.dtype.kind not in "bui" or ((write != 0) & (write != 1)).any())):
        raise InputError("is_write must be a one-dimensional array of true/false or 0/1")
    if not len(arrays[0]) == len(write) == len(arrays[1]):
        raise InputError(
            f"address, is_write and arrival_cycle differ in length: {len(arrays[0])}, {len(write)}, {len(arrays[1])}"
        )
    return arrays[0], np.ascontiguousarray(write, dtype=np.uint8), arrays[1]


def stuck_error(channel: kernel.Channel, number: int) -> StuckError:
    """Return the watchdog's error: which queues of which channel wait."""
    waiting = ", ".join(f"{name} holds {n}" for name, n in channel.state().items() if n)
    return StuckError(
        f"channel {number} made no progress up to cycle {channel.now()}: {waiting}. "
        "The part's refresh or the controller's limits leave no time to serve a request"
    )


def collect_result(
    channels: list[kernel.Channel],
    part: Part,
    done_cycle: np.ndarray,
    accept_cycle: np.ndarray,
    commands: tuple[np.ndarray, ...] | None,
) -> DramResult:
    """Return the result of channels that have run to the end."""
    from hwmodel.energy.memory import core_energy_pj

    raw = [channel.counts() for channel in channels]
    end = max(max(counts["last_done"], counts["last_data"]) for counts in raw)
    counts = collect_counts(channels, end)
    return DramResult(
        done_cycle=done_cycle,
        accept_cycle=accept_cycle,
        total_cycles=max(c["last_done"] for c in raw),
        end_cycle=end,
        tck_ns=part.tck_ns,
        burst_bytes=part.organisation.burst_bytes,
        commands=counts.commands,
        counts=counts,
        energy_pj=core_energy_pj(counts, part),
        command_trace=commands,
    )


def collect_counts(channels: list[kernel.Channel], end: int) -> DramCounts:
    """Return the counters of all channels, background up to cycle `end`."""
    raw = [channel.counts() for channel in channels]

    def total(name: str) -> int:
        return int(sum(counts[name] for counts in raw))

    return DramCounts(
        bank_commands=np.stack([channel.bank_counts() for channel in channels]),
        rank_commands=np.stack([channel.rank_counts() for channel in channels]),
        background_cycles=np.stack([channel.background(end) for channel in channels]),
        ca_ones=np.stack([channel.command_wires()[0] for channel in channels]),
        ca_rising=np.stack([channel.command_wires()[1] for channel in channels]),
        reads=total("reads"),
        writes=total("writes"),
        forwarded_reads=total("forwarded"),
        merged_reads=total("merged_reads"),
        merged_writes=total("merged_writes"),
        read_row_hits=total("read_hits"),
        write_row_hits=total("write_hits"),
        read_latency_cycles=total("latency_sum"),
        max_read_latency_cycles=max(counts["latency_max"] for counts in raw),
    )
