"""DRAM timing: requests in, completion cycles, commands and core energy out. `DramEngine` takes blocks and keeps
its state, so traces of any length run in constant memory. The arithmetic is compiled (cython_ext.dram.engine).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.dram.controller import ControllerSpec, controller_spec
from hwmodel.dram.counts import DramCounts
from hwmodel.dram.result import DramResult
from hwmodel.dram.tables import address_map, channel_of, check_addresses, compiled_tables
from hwmodel.parts.part import COMMANDS, Part, cached_on
from hwmodel.parts.part_file import load_part
from traces.base.checks import as_array, whole_numbers
from traces.base.errors import EdgewattError, InputError

LATEST_ARRIVAL = 1 << 60
_DIRECTIONS = "is_write must be a one-dimensional array of true/false or 0/1 (2: a masked write)"
MAX_TRACED_REFRESHES = 50_000_000  # 2 GB of commands


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

    address: uint64[n], bytes, multiples of the part's burst. is_write: bool[n] (or 2: masked). arrival_cycle: int64[n],
    earliest cycle of acceptance, not decreasing; a controller accepts at most one request per clock and channel.
    part: shipped name, YAML path or mapping. controller: ControllerSpec or its fields. trace: keep every command.
    Returns a DramResult. Raises InputError for unaligned or out-of-range addresses, arrivals that go backwards or
    unequal lengths, StuckError if the run makes no progress.
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
    """Requests completed and commands issued since the last call: int64[n] each; commands per channel if traced.

    sent, sent_channel, unsent (of an engine with sent=True): requests whose burst was on the wires, in the order of
    their commands, with their channel; and those without a burst of their own, because another's answered them, a
    waiting write did, or a later write replaced them.
    """

    request: np.ndarray
    accept_cycle: np.ndarray
    done_cycle: np.ndarray
    commands: tuple[np.ndarray, ...] | None
    sent: np.ndarray
    sent_channel: np.ndarray
    unsent: np.ndarray


class DramEngine:
    """All channels of a part, fed in blocks.

    feed(address, is_write, arrival_cycle) -> Completions; finish() -> Completions; then result(). Requests are numbered
    in the order they are fed. Memory does not grow with the number of requests. Requests enter in order: one that is
    refused by its channel holds up all behind it. Where the controller's front_end is `independent`, each channel has
    requests of its own, and those that some channels are ahead of others are kept.
    """

    BLOCK = 1 << 20

    def __init__(
        self,
        part: str | Path | Mapping[str, Any] | Part,
        controller: ControllerSpec | Mapping[str, Any] | None = None,
        *,
        trace: bool = False,
        sent: bool = False,
    ) -> None:
        self.part = load_part(part)
        self.controller = controller_spec(controller)
        self.map = cached_on(self.part, address_map, self.controller.address_map)
        self.trace = trace
        self._ports = self.part.organisation.channels if self.controller.front_end == "independent" else 1
        self.memory = open_memory(
            self.part,
            self.controller,
            ports=self._ports,
            requests_per_clock=None if self._ports == 1 else self._ports,
            trace=trace,
            sent=sent,
        )
        self._waiting: list[deque[tuple[np.ndarray, ...]]] = [deque() for _ in range(self._ports)]
        self._fed = 0
        self._last_arrival = 0
        self._finished = False

    def feed(self, address: np.ndarray, is_write: np.ndarray, arrival_cycle: np.ndarray) -> Completions:
        """Accept a block of requests (arrays as in simulate_dram) and return what completed so far."""
        address, is_write, arrival_cycle = _request_arrays(address, is_write, arrival_cycle)
        self._check(address, is_write, arrival_cycle)  # before anything is queued
        numbers = np.arange(self._fed, self._fed + len(address), dtype=np.int64)
        self._fed += len(address)
        block = numbers, address, is_write, arrival_cycle
        if self._ports == 1:
            self._waiting[0].append(block)
            return self._collect()
        channel = channel_of(address, self.map)
        for c, waiting in enumerate(self._waiting):
            mine = np.flatnonzero(channel == c)
            if len(mine):
                waiting.append(tuple(column[mine] for column in block))
        return self._collect()

    def finish(self) -> Completions:
        """Complete everything, waiting writes too, refresh all channels up to the end, and return the rest."""
        self._finished = True
        return self._collect()

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
        return collect_result(self.memory, self.part, done_cycle, accepted, commands)

    def _check(self, address: np.ndarray, is_write: np.ndarray, arrival: np.ndarray) -> None:
        o, after = self.part.organisation, self._last_arrival
        bad = kernel.first_bad_request(
            address, is_write, arrival, o.burst_bytes, o.capacity_bytes, after, LATEST_ARRIVAL
        )
        if bad >= 0:
            self._refuse(address, arrival)
        if len(arrival):
            self._last_arrival = int(arrival[-1])
            if self.trace:
                self._check_trace_length()

    def _refuse(self, address: np.ndarray, arrival: np.ndarray) -> NoReturn:
        whole_numbers(arrival, "arrival_cycle", np.int64, item="request", first=self._fed, most=LATEST_ARRIVAL)
        check_addresses(address, self.part, self._fed)
        back = np.diff(arrival, prepend=self._last_arrival) < 0
        if not back.any():
            raise InputError(_DIRECTIONS)
        at = int(np.argmax(back))
        before = self._last_arrival if at == 0 else int(arrival[at - 1])
        raise InputError(
            f"request {self._fed + at}: arrival cycle {int(arrival[at])} goes back behind {before}: "
            "sort the requests by arrival"
        )

    def _check_trace_length(self) -> None:
        o, t = self.part.organisation, self.part.timing
        behaviour = str(self.controller.engine_settings["refresh"])
        each = {"none": 0, "all-bank": 1, "per-bank": o.refresh_sets}[behaviour]
        refreshes = self._last_arrival // t.tREFI * each * o.ranks * o.channels
        if refreshes > MAX_TRACED_REFRESHES:
            raise InputError(
                f"by the last arrival, cycle {self._last_arrival}, there are {refreshes} refreshes, too many for "
                "a command trace: leave the trace out, or let the arrivals begin earlier"
            )

    def _feed_ports(self) -> bool:
        """Give ports that have used up their requests the next ones; return whether none has to wait for more."""
        fed = True
        for port in self.memory.hungry_ports():
            if self._waiting[port]:
                number, address, is_write, arrival = self._waiting[port].popleft()
                self.memory.feed(port, number, address, is_write, arrival, more=self._ports == 1)
            elif self._finished:
                self.memory.close(port)
            else:
                fed = False
        return fed

    def _collect(self) -> Completions:
        done, sent = [], []
        commands: list[list[np.ndarray]] = []
        self._feed_ports()
        more = True
        while more:
            status = self.memory.run()
            more = status == kernel.OUTPUT_FULL or (status == kernel.NEEDS_INPUT and self._feed_ports())
            done.append(self.memory.take_done())
            sent.append(self.memory.take_sent())
            if self.trace:
                commands.append(self.memory.take_traces())
        if status == kernel.STUCK:
            raise stuck_error(self.memory)
        traces = tuple(map(np.concatenate, zip(*commands, strict=True))) if self.trace else None
        request, accepted, cycle = map(_joined, zip(*done, strict=True))
        bursts, channel, unsent = map(_joined, zip(*sent, strict=True))
        return Completions(request, accepted, cycle, traces, bursts, channel, unsent)


def _joined(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """Return blocks, at least one, one after the other; a single one as it is."""
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _request_arrays(address: Any, is_write: Any, arrival: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return uint64[n], uint8[n] and int64[n]; `first_bad_request` is still to look at what is in them."""
    where, write = address, as_array(is_write, "is_write")
    if not _is_typed(address, np.uint64):
        where = whole_numbers(address, "address", np.uint64, item="request")
    if not _is_typed(arrival, np.int64):
        arrival = whole_numbers(arrival, "arrival_cycle", np.int64, item="request", most=LATEST_ARRIVAL)
    if not _is_typed(write, np.uint8):
        if write.ndim != 1 or (write.size and (write.dtype.kind not in "bui" or ((write < 0) | (write > 2)).any())):
            raise InputError(_DIRECTIONS)
        write = np.ascontiguousarray(write, dtype=np.uint8)
    if not len(where) == len(write) == len(arrival):
        raise InputError(
            f"address, is_write and arrival_cycle differ in length: {len(where)}, {len(write)}, {len(arrival)}"
        )
    return where, write, arrival


def _is_typed(values: Any, dtype: type) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == dtype and values.ndim == 1 and values.flags.c_contiguous


class StuckError(EdgewattError, RuntimeError):
    """A simulation made no progress; the message names the queues that wait."""


def open_memory(
    part: Part,
    controller: ControllerSpec,
    *,
    ports: int = 1,
    requests_per_clock: int | None = None,
    trace: bool = False,
    sent: bool = False,
    stream: bool = False,
) -> kernel._Memory:
    """Return compiled channels with the part's tables and the controller's policies.

    ports: sources of requests. requests_per_clock: None takes the controller's. trace: keep every command. sent: report
    which requests drove the wires, in what order. stream: to repeat the periods of `play_stream`.
    """
    return kernel._Memory(
        cached_on(part, compiled_tables, controller),
        n_channels=part.organisation.channels,
        n_ports=ports,
        width=requests_per_clock or controller.requests_per_clock or 1,
        trace=trace,
        sent=sent,
        stream=stream,
    )


def stuck_error(memory: kernel._Memory) -> StuckError:
    """Return the watchdog's error: which queues of which channels wait."""
    return StuckError(
        f"the memory made no progress up to cycle {memory.now()}: {waiting(memory)}. "
        "The part's refresh or the controller's limits leave no time to serve a request"
    )


def waiting(memory: kernel._Memory) -> str:
    """Return what waits in the queues, channel by channel."""
    return "; ".join(
        f"channel {c}: " + (", ".join(f"{name} holds {n}" for name, n in memory.state(c).items() if n) or "idle")
        for c in range(memory.n_channels)
    )


def collect_result(
    memory: kernel._Memory,
    part: Part,
    done_cycle: np.ndarray,
    accept_cycle: np.ndarray,
    commands: tuple[np.ndarray, ...] | None,
) -> DramResult:
    """Return the result of a memory that has run to the end; background is charged up to its last data."""
    raw = memory.counts()
    end = max(raw["last_done"], raw["last_data"])
    bank_commands, row_hits, conflicts = memory.bank_counts()
    rank_commands, background = memory.rank_counts(end)
    ca_ones, ca_rising = memory.command_wires()
    requests = {name: count for name, count in raw.items() if name not in ("last_done", "last_data")}
    counts = DramCounts(
        bank_commands, rank_commands, background, ca_ones, ca_rising, bank_row_hits=row_hits, conflicts=conflicts,
        **requests,
    )  # fmt: skip
    return DramResult(
        done_cycle=done_cycle,
        accept_cycle=accept_cycle,
        total_cycles=raw["last_done"],
        end_cycle=end,
        part=part,
        commands_at_completion=dict(zip(COMMANDS, memory.completed().tolist(), strict=True)),
        counts=counts,
        command_trace=commands,
    )
