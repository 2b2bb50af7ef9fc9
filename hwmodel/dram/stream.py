"""Sequential streams: what reading consecutive bursts of a memory costs, its wires bit by bit and its commands exactly.

A DMA asks for one burst after the other. Commands and clocks do not depend on the data, so the memory is played once,
at the end, and of what repeats one period. The bytes go over the wires of their channels, through the encoder, by
address; between bursts the wires hold the last one, as in `replay`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

import cython_ext.dram.engine as kernel
from hwmodel.bus import Bytes, WireCounts
from hwmodel.coding.codec import as_bytes
from hwmodel.coding.in_burst import share_flags
from hwmodel.coding.streams import ChannelWires, stream_chain
from hwmodel.dram.controller import ControllerSpec, as_wide, controller_spec, decoding
from hwmodel.dram.energy import EnergyRow, WireRow, core_rows, data_rows, data_wire_costs, energy_range, interface_rows
from hwmodel.dram.engine import collect_result, open_memory, stuck_error
from hwmodel.dram.interface import WAYS, timed_groups
from hwmodel.dram.result import DramResult
from hwmodel.dram.tables import address_map, channel_of
from hwmodel.parts.part import READ_COMMANDS, WRITE_COMMANDS, Part, cached_on
from hwmodel.parts.part_file import load_part
from traces.base.checks import whole_number
from traces.base.errors import InputError

PIECE_BYTES = 1 << 20
"""Bytes that go to the wires together: many for a call, few enough for the processor's caches."""
MOST_CHANNELS = 64
"""Of a memory, those inside parts counted."""
PRIMED = len(WAYS)
"""The stream of a bus whose counts are discarded."""


@dataclass(frozen=True)
class StreamCounts:
    """What some reads (and writes) moved; those of all reads add up to those of the whole stream.

    bytes: asked for. bursts: commands for them; each read begins with a burst of its own. ones, toggles: unit intervals
    at 1 and edges of the data wires; dbi_ones, dbi_toggles: of the flag wires. known_bytes: bytes whose data
    were given: what the wires did is counted for these alone.
    """

    bytes: int = 0
    bursts: int = 0
    ones: int = 0
    toggles: int = 0
    dbi_ones: int = 0
    dbi_toggles: int = 0
    known_bytes: int = 0

    def __add__(self, other: StreamCounts) -> StreamCounts:
        return StreamCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class StreamResult:
    """A stream that was played to its end.

    commands: issued by name, over all channels (RD and RDA are apart). cycles: clocks up to the last data, time_ns
    the same. rows: all terms of the energy, dynamic and static; the wires of unknown bytes are taken to carry random
    ones (an estimate): unknown_ones and unknown_toggles, of the data wires and of the flag wires. driven: unit
    intervals of a burst on either. repeated: bursts that were counted as repeating others, not played.
    """

    counts: StreamCounts
    commands: Mapping[str, int]
    cycles: int
    time_ns: float
    rows: tuple[EnergyRow, ...]
    unknown_ones: tuple[int, int]
    unknown_toggles: tuple[int, int]
    driven: tuple[int, int]
    dram: DramResult
    repeated: int
    part: Part

    @property
    def range_pj(self) -> tuple[float, float]:
        """(least, most) of the energy over the ranges of the part's estimates."""
        wires = [row for row in self.rows if isinstance(row, WireRow)]
        return energy_range(self.part, [row for row in self.rows if not isinstance(row, WireRow)], wires)

    def energy_pj(self, counts: StreamCounts | None = None) -> dict[str, float]:
        """Return 'dynamic', 'static' and 'total' in pJ of the stream, or of the reads that have these counts.

        The energies of all reads add up to those of the stream.
        """
        energy = {"dynamic": 0.0, "static": 0.0}
        for row in self.rows:
            share = 1.0
            if counts is not None:  # of the term, that these reads have
                whole = self._weight(row, self.counts)
                share = self._weight(row, counts) / whole if whole else 0.0
            energy[row.kind] += row.energy_pj * share
        return energy | {"total": energy["dynamic"] + energy["static"]}

    def _weight(self, row: EnergyRow, counts: StreamCounts) -> float:
        if not isinstance(row, WireRow) or row.group not in ("dq", "dbi", "extra"):
            return counts.bursts
        of_flags, edges, whole = row.group != "dq", row.current == "dynamic", self.counts
        unknown = (counts.bytes - counts.known_bytes) / max(whole.bytes - whole.known_bytes, 1)
        if edges:
            return (counts.dbi_toggles if of_flags else counts.toggles) + unknown * self.unknown_toggles[of_flags]
        ones = (counts.dbi_ones if of_flags else counts.ones) + unknown * self.unknown_ones[of_flags]
        return self.driven[of_flags] * counts.bursts - ones if self.part.interface.costly_level == 0 else ones


def side_by_side(part: Part, channels: int, *, widen: bool = True) -> Part:
    """Return a part with `channels` times its channels, a power of two, which take bursts in turn (widen: its address
    map says so). Raises InputError for other numbers, or more than MOST_CHANNELS."""
    o = part.organisation
    what, why = f"channels of {part.name!r} (--channels)", f"each is {o.channels} in itself" if o.channels > 1 else ""
    if whole_number(channels, what, 1, MOST_CHANNELS // o.channels, why=why) & (channels - 1):
        raise InputError(f"channels must be a power of two, not {channels}")
    if channels == 1:
        return part
    fields_of_map = part.address_map.split()
    at = next((k for k, field in enumerate(fields_of_map) if field.startswith("channel:")), 0) + 1
    fields_of_map.insert(at, f"channel:{channels.bit_length() - 1}")
    text = " ".join(fields_of_map) if widen else part.address_map
    return replace(part, organisation=replace(o, channels=o.channels * channels), address_map=text)


def play_runs(
    part: Part, controller: ControllerSpec, start: int, runs: Sequence[tuple[int, int]], *, every: bool = False
) -> tuple[DramResult, int]:
    """Play consecutive bursts from address `start` on: (how many, 0 read or 1 written) in turn, each as soon as it is
    accepted. every: play every burst, repeat none. Return what they did and how many were repeated, not played. Raises
    StuckError."""
    memory = open_memory(part, controller, stream=not every)
    bursts, ways = (
        (np.array(column, np.int64) for column in zip(*runs, strict=True)) if runs else np.zeros((2, 0), np.int64)
    )
    if memory.play_stream(start, bursts, ways.astype(np.uint8)) == kernel.STUCK:
        raise stuck_error(memory)
    none = np.zeros(0, np.int64)
    return collect_result(memory, part, none, none, None), memory.repeated


class StreamPlayer:
    """Sequential reads and writes of one memory, from address `start` (bytes) on.

    part: shipped name, YAML path, mapping or Part. channels: so many of it side by side, a power of two, which take the
    bursts in turn. encoder: a chain of hwmodel.encoders. element_bytes: of one value, for encoders that compare values.
    preset, controller: named behaviour and other fields of ControllerSpec. Memory does not grow with the stream.

    A stream may be played in pieces, whose states the player of the whole takes with `add`. Workers begin behind the
    bytes `before` theirs: exact for encoders that code a burst by itself, others are refused.
    """

    def __init__(
        self,
        part: str | Path | Mapping[str, Any] | Part,
        *,
        channels: int = 1,
        encoder: str | None = None,
        preset: str = "dramsim3",
        controller: ControllerSpec | Mapping[str, Any] | None = None,
        element_bytes: int = 2,
        start: int = 0,
        before: Any = b"",
    ) -> None:
        given = {} if controller is None else controller
        spec = given if isinstance(given, ControllerSpec) else controller_spec({"preset": preset, **given})
        self.part = side_by_side(load_part(part), channels, widen=spec.address_map is None)
        o = self.part.organisation
        shares, costs = cached_on(self.part, share_flags, 0), cached_on(self.part, data_wire_costs)
        whole_number(element_bytes, "element_bytes", 1, 2**16)
        chain = stream_chain(encoder or "raw", (element_bytes,), o.byte_lanes, o.burst_bytes, costs, shares)
        self.controller = as_wide(decoding(spec, chain.facts), o.channels)
        self._map = cached_on(self.part, address_map, self.controller.address_map)
        self._tile_bytes = 1 << max((f.source + f.bits for f in self._map.fields if f.name == "channel"), default=0)
        self._all = ChannelWires(chain, o.byte_lanes, PRIMED + 1, o.channels)
        self._chain, self._channels = chain, [self._all.channel(number) for number in range(o.channels)]
        self._start = whole_number(start, "start", 0)
        if start % o.burst_bytes:
            raise InputError(f"start is {start}: no multiple of the part's burst of {o.burst_bytes} bytes")
        self._next = self._start // o.burst_bytes  # burst
        self._runs: list[tuple[int, int]] = []  # bursts one after the other in one direction, 1: writes
        self._unknown = [0, 0]  # bursts read and written
        self.counts = StreamCounts()
        self._order: tuple[int, int, np.ndarray, list[int]] | None = None
        self._room = np.empty((0, o.burst_bytes), np.uint8)
        self._kind = [self.part.name, o.channels, chain.encoder, element_bytes, repr(self.controller)]
        self._added: list[np.ndarray | int] = [0, 0, 0]  # wires of other players
        if isinstance(before, Mapping):
            self._carry(before)
        elif len(last := as_bytes(before)):
            if not chain.by_block:
                raise InputError(
                    f"a stream through {chain.encoder!r} cannot be split: bursts are coded after each other"
                )
            if len(last) % o.burst_bytes or len(last) > start:
                raise InputError(
                    f"{len(last)} bytes before address {start}: give whole bursts of {o.burst_bytes} bytes"
                )
            self._next -= len(last) // o.burst_bytes
            self._send(last, PRIMED)
            self._next = start // o.burst_bytes

    @property
    def tile_bytes(self) -> int:
        """Bytes of a run of bursts in which every channel has its share: `before` of these is enough."""
        return max(self._tile_bytes, self.part.organisation.burst_bytes)

    def read(self, data_or_nbytes: Any, *, write: bool = False) -> StreamCounts:
        """Read the next bytes, which begin with a burst; the last one is filled up with zeros.

        data_or_nbytes: bytes or an array, whose memory is taken as it lies; or how many bytes, if their data are not
        known. A tensor may come in pieces of whole bursts. Raises InputError beyond the end of the memory.
        """
        size = self.part.organisation.burst_bytes
        if isinstance(data_or_nbytes, np.integer):
            data_or_nbytes = int(data_or_nbytes)
        known = not isinstance(data_or_nbytes, Number)
        data = as_bytes(data_or_nbytes) if known else None
        n = whole_number(data_or_nbytes, "bytes to read", 0) if data is None else len(data)
        bursts = -(-n // size)
        if (self._next + bursts) * size > self.part.organisation.capacity_bytes:
            raise InputError(
                f"{n} bytes from address {self._next * size} do not fit in the {self.part.organisation.capacity_bytes} "
                f"bytes of {self.part.organisation.channels} channels of {self.part.name!r}: take more channels"
            )
        way, so_far = int(bool(write)), self.counts
        sent = before = so_far.ones, so_far.toggles, so_far.dbi_ones, so_far.dbi_toggles
        if data is None:
            self._unknown[way] += bursts
        elif bursts:
            self._send(data, way)
            sent = self._sent()
        self._next += bursts
        self._append(bursts, way)
        ones, toggles, dbi_ones, dbi_toggles = (after - was for after, was in zip(sent, before, strict=True))
        counts = StreamCounts(n, bursts, ones, toggles, dbi_ones, dbi_toggles, n if known else 0)
        self.counts += counts
        return counts

    def _sent(self) -> tuple[int, int, int, int]:
        """Return ones and toggles so far of the data wires and of the flag wires."""
        data, flags, extra = self._wires()
        ones, toggles, _ = (int(n) for n in data.sum(axis=(0, 1, 3)))
        of_flags = flags.sum(axis=(0, 1, 3)) + (0 if extra is None else extra.sum(axis=(0, 1, 3)))
        return ones, toggles, int(of_flags[0]), int(of_flags[1])

    def _wires(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return counts int64[way, 1, 3, wires] of data wires, flag wires and those beyond the first of a lane."""
        counts, beyond = self._all.bus.counts, self._all.extra
        extra = None if beyond is None else beyond.counts.data.counts[:PRIMED, None] + self._added[2]
        data, flags = (each.counts[:PRIMED, None] for each in (counts.data, counts.flag))
        return data + self._added[0], flags + self._added[1], extra

    @property
    def is_plain_state(self) -> bool:
        """Whether `state` is numbers and lists (JSON): not where an encoder from outside keeps other things."""
        return self._chain.is_plain_state

    def state(self) -> dict[str, Any]:
        """Return what was read so far, what the wires carry now and what encoders keep from burst to burst."""
        return {
            "kind": self._kind,
            "start": self._start,
            "next": self._next,
            "runs": [list(run) for run in self._runs],
            "unknown": list(self._unknown),
            "counts": list(astuple(self.counts)),
            "wires": [0 if each is None else each.tolist() for each in self._wires()],
            "levels": [
                [[wires.level.tolist(), wires.flag_level.tolist()] for wires in (bus, extra) if wires is not None]
                for _, bus, extra in self._channels
            ],
            "chains": [] if self._chain.by_block else [chain.state() for chain, *_ in self._channels],
        }

    def _carry(self, state: Mapping[str, Any]) -> None:
        """Take over what wires and encoders carry."""
        for (_, bus, extra), levels in zip(self._channels, state["levels"], strict=True):
            for wires, (level, flags) in zip([bus] if extra is None else [bus, extra], levels, strict=True):
                wires.restore(level, flags, 0)
        chains = [] if self._chain.by_block else [each.chain for each in self._channels]
        for chain, kept_by in zip(chains, state["chains"], strict=True):
            chain.restore(kept_by)

    def add(self, state: Mapping[str, Any]) -> StreamCounts:
        """Go on behind what another player read from here on, given its `state`; return its counts."""
        at = self._next * self.part.organisation.burst_bytes
        whole = self._next + sum(whole_number(bursts, "bursts", 0) for bursts, _ in state["runs"]) == state["next"]
        if state["kind"] != self._kind or state["start"] != at or not whole:
            raise InputError(f"this state does not continue the stream at address {at} of {self._kind}")
        self._added = [mine + np.array(its, np.int64) for mine, its in zip(self._added, state["wires"], strict=True)]
        self._carry(state)
        for bursts, way in state["runs"]:
            self._append(bursts, way)
        self._unknown = [mine + its for mine, its in zip(self._unknown, state["unknown"], strict=True)]
        self._next = state["next"]
        counts = StreamCounts(*state["counts"])
        self.counts += counts
        return counts

    def _append(self, bursts: int, way: int) -> None:
        if bursts and self._runs and self._runs[-1][1] == way:
            self._runs[-1] = (self._runs[-1][0] + bursts, way)
        elif bursts:
            self._runs.append((bursts, way))

    def _send(self, data: Bytes, way: int) -> None:
        """Send bytes over the wires of their channels, the first one at the start of the next burst."""
        size = self.part.organisation.burst_bytes
        at, step = self._next, PIECE_BYTES // size
        for begin in range(0, len(data), step * size):
            piece = data[begin : begin + step * size]
            if len(piece) % size:
                piece = np.concatenate((piece, np.zeros(-len(piece) % size, np.uint8)))
            self._send_bursts(piece.reshape(-1, size), at, way)
            at += len(piece) // size

    def _send_bursts(self, bursts: Bytes, first: int, way: int) -> None:
        n, ends = len(bursts), [len(bursts)]
        if len(self._channels) > 1:
            order, ends = self._by_channel(first * bursts.shape[1] % self._tile_bytes, n)
            if len(self._room) < n:  # kept: new pages cost more than what is put there
                self._room = np.empty_like(bursts)
            bursts = np.take(bursts, order, axis=0, out=self._room[:n], mode="clip")
        self._all.send(bursts, np.zeros(n, np.uint8), ends, lambda *_: (None, way))

    def _by_channel(self, address: int, n: int) -> tuple[np.ndarray, list[int]]:
        """Return the order that puts n bursts from an address on together by channel, and where those of each end."""
        if self._order is None or self._order[:2] != (address, n):
            addresses = np.arange(n, dtype=np.uint64) * np.uint64(self._chain.block_bytes) + np.uint64(address)
            channel = channel_of(addresses, self._map).astype(np.uint8)
            ends = np.cumsum(np.bincount(channel, minlength=len(self._channels)))
            self._order = address, n, np.argsort(channel, kind="stable"), ends.tolist()
        return self._order[2:]

    def finish(self) -> StreamResult:
        """Play the commands of all reads so far and return the result; more may be read, and finished, afterwards."""
        dram, repeated = play_runs(self.part, self.controller, self._start, self._runs)
        bursts = [sum(n for n, way in self._runs if way == k) for k in (0, 1)]
        issued = dram.counts
        assert [issued.command(*READ_COMMANDS), issued.command(*WRITE_COMMANDS)] == bursts, "a burst was lost"
        guess = [None if each is None else self._guessed(each) for each in self._of_random]
        wires = [w if g is None or w is None else w + g for w, g in zip(self._wires(), guess, strict=True)]
        o, flag_wires = self.part.organisation, self._chain.flag_wires
        sent = [None if each is None else WireCounts(each) for each in wires]
        timed = timed_groups(issued, (bursts[0], bursts[1]), dram.end_cycle, self.part)
        rows: list[EnergyRow] = [*data_rows(sent, bursts, flag_wires, self.part), *interface_rows(timed, self.part)]
        rows += core_rows(issued, self.part)
        totals = [np.zeros(3, np.int64) if each is None else each.sum(axis=(0, 1, 3)) for each in guess]
        ones, toggles = ((int(totals[0][k]), int(totals[1][k] + totals[2][k])) for k in (0, 1))
        return StreamResult(
            self.counts, issued.commands, dram.total_cycles, dram.time_ns, tuple(r for r in rows if r.count), ones,
            toggles, (o.burst_beats * o.dq_bits, flag_wires * o.burst_bytes), dram, repeated, self.part,
        )  # fmt: skip

    def _guessed(self, of_random: np.ndarray) -> np.ndarray:
        """Return the counts of unknown bursts, as those of random ones."""
        unknown = np.array(self._unknown)[:, None, None, None]
        guessed: np.ndarray = of_random * unknown // (PIECE_BYTES // self.part.organisation.burst_bytes)
        return guessed

    @cached_property
    def _of_random(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Counts of PIECE_BYTES random bytes (the same ones always) on the wires of a channel, as of `_wires`."""
        wires, size = ChannelWires(self._chain.fresh(), self._all.bus.bus_bytes, 1), self._chain.block_bytes
        data = np.random.default_rng(0).integers(0, 256, PIECE_BYTES, np.uint8).reshape(-1, size)
        wires.send(data, np.zeros(len(data), np.uint8), [len(data)], lambda *_: (None, 0))
        extra = None if wires.extra is None else wires.extra.counts.data.counts[None]
        return wires.bus.counts.data.counts[None], wires.bus.counts.flag.counts[None], extra
