"""What the wires between controller and DRAM do: ones, edges and inversions per wire group, from a command table.

Groups: DQ and DBI (data), DQS (strobe, runs during bursts), CK (clock, runs all the time), CA (commands). Read and
write data are counted apart, because each way has its own driver and termination.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import cython_ext.wires.encode as kernels
from hwmodel.bus import Bus
from hwmodel.dram.command_table import command_rows, command_table, command_wires, data_clock_cycles
from hwmodel.dram.counts import DramCounts
from hwmodel.parts.burst_cells import BurstCells
from hwmodel.parts.part import Part
from traces.base.errors import InputError, unknown_name

GAPS = ("rest", "hold")
BEAT_ORDERS = ("first-to-last", "last-to-first")
WAYS = ("read", "write")


@dataclass(frozen=True)
class GroupCounts:
    """One wire group in one direction.

    ones, zeros: unit intervals of ui_ns at 1 and (while driven) at 0. rising, toggles: edges.
    wire_ones, wire_rising: int64[wires], the heat map.
    """

    group: str
    way: str
    ui_ns: float
    ones: int
    zeros: int
    rising: int
    toggles: int
    wire_ones: np.ndarray
    wire_rising: np.ndarray
    ones_of: dict[str, int] | None = None  # where a burst carries more than data: ones of data, metadata and dbi


@dataclass(frozen=True)
class InterfaceCounts:
    """Counts of all groups, the bursts they belong to, and how many bytes were sent inverted."""

    groups: tuple[GroupCounts, ...]
    bursts: int
    inverted_bytes: int

    def group(self, name: str, way: str | None = None) -> GroupCounts:
        """Return one group, e.g. group('dq', 'read'); without `way` the only direction the group has."""
        for counts in self.groups:
            if counts.group == name and way in (None, counts.way):
                return counts
        raise unknown_name("wire group", name, {g.group for g in self.groups})


def count_interface(
    commands: Any,
    *,
    part: Part,
    dbi: bool,
    beat_order: str = "first-to-last",
    lane_order: tuple[int, ...] | None = None,
    end_cycle: int | None = None,
    metadata: tuple[int, ...] = (0,),
    gaps: str | None = None,
) -> InterfaceCounts:
    """Count what the wires do for a command table with data (see hwmodel.dram.command_table).

    Data are on the wires from the command's own cycle on, for the clocks of a burst; bursts that follow each other
    without a gap meet without returning to the idle level. Others: as of `hwmodel.dram.energy.interface_energy`.
    """
    if beat_order not in BEAT_ORDERS:
        raise unknown_name("beat order", beat_order, BEAT_ORDERS)
    if gaps is not None and gaps not in GAPS:
        raise unknown_name("rule for gaps", gaps, GAPS)
    if dbi and part.interface.dbi == "none":
        raise InputError(f"part {part.name!r} has no data bus inversion")
    table = command_table(commands, part=part, end_cycle=end_cycle)
    gaps = gaps or table.gaps
    bursts = table.is_read | table.is_write
    if table.data is None and bursts.any():
        raise InputError("the command table has no data: ones and edges need the bytes of each burst")
    data = table.data if table.data is not None else np.empty((0, part.organisation.burst_bytes), "u1")
    if data.shape[1] != part.organisation.burst_bytes:
        raise InputError(f"bursts of {data.shape[1]} bytes: a burst of {part.name} has {part.organisation.burst_bytes}")
    kinds = [(table.is_read, WAYS[:1]), (table.is_write, WAYS[1:])] if gaps == "rest" else [(bursts, WAYS)]
    groups: list[GroupCounts] = []
    inverted = 0
    for mine, ways in kinds:
        way_of = table.is_write[mine] if len(ways) > 1 else np.zeros(int(mine.sum()), bool)
        counted, flips = _data_groups(
            table.cycle[mine], data[mine[bursts]], way_of, part, dbi, ways, beat_order, lane_order, metadata
        )
        groups += counted
        inverted += flips
    of_ways = int(table.is_read.sum()), int(table.is_write.sum())
    running = data_clock_cycles(table, part)
    groups += _timed(of_ways, table.end_cycle, running, command_wires(table, part=part), part)
    return InterfaceCounts(tuple(groups), int(bursts.sum()), inverted)


def strobes(way: str, bursts: int, part: Part) -> list[GroupCounts]:
    """Return the strobes of so many bursts; none where that way has no strobe."""
    group = part.interface.wires.get("dqs")
    if group is None or way not in group.ways:
        return []
    return [running_wires("dqs", way, bursts * part.organisation.burst_cycles, part)]


def timed_groups(counts: DramCounts, bursts: tuple[int, int], end_cycle: int, part: Part) -> list[GroupCounts]:
    """Return the wires that do not depend on data: DQS during (read, write) bursts, CK always, CA as commanded."""
    beats = sum(n * len(command_rows(part, name)) for name, n in counts.commands.items())
    commanded = counts.ca_ones.sum(axis=0), counts.ca_rising.sum(axis=0), beats
    return _timed(bursts, end_cycle * part.organisation.channels, counts.data_clock_cycles, commanded, part)


def _timed(
    bursts: tuple[int, int], cycles: int, running: int, commanded: tuple[np.ndarray, np.ndarray, int], part: Part
) -> list[GroupCounts]:
    """running: clocks in which a data clock (WCK) is needed. commanded: as of `command_wires`."""
    groups = [group for way, n in zip(WAYS, bursts, strict=True) for group in strobes(way, n, part)]
    if (wck := part.interface.wires.get("wck")) is not None:
        groups.append(running_wires("wck", "write", cycles if wck.always else running, part))
    return [*groups, running_wires("ck", "write", cycles, part), _command_group(*commanded, part)]


def _command_group(ones: np.ndarray, rising: np.ndarray, beats: int, part: Part) -> GroupCounts:
    group = part.interface.wires["ca"]
    total, edges = int(ones.sum()), int(rising.sum())
    ui_ns = part.tck_ns / group.beats_per_clock
    return GroupCounts("ca", "write", ui_ns, total, beats * group.count - total, edges, 2 * edges, ones, rising)


def sent_group(
    name: str, way: str, counts: np.ndarray, driven: int, part: Part, ones_of: dict[str, int] | None = None
) -> GroupCounts:
    """Return a group of data wires in one direction, int64[3, wires] as of WireCounts, driven for so many intervals."""
    ones, toggles, rising = counts
    high = int(ones.sum())
    edges = int(rising.sum()), int(toggles.sum())
    return GroupCounts(name, way, part.beat_ns, high, driven - high, *edges, ones, rising, ones_of)


def running_wires(name: str, way: str, clocks: int, part: Part) -> GroupCounts:
    """A strobe or clock: half of the time at 1, one rising edge per period and wire."""
    group = part.interface.wires[name]
    periods = clocks * group.periods_per_clock
    each = np.full(group.count, periods, np.int64)
    total = periods * group.count
    return GroupCounts(
        name, way, part.tck_ns / (2 * group.periods_per_clock), total, total, total, 2 * total, each, each
    )


def _data_groups(
    cycle: np.ndarray,
    data: np.ndarray,
    way_of: np.ndarray,
    part: Part,
    dbi: bool,
    ways: tuple[str, ...],
    beat_order: str,
    lane_order: tuple[int, ...] | None,
    metadata: tuple[int, ...],
) -> tuple[list[GroupCounts], int]:
    """Count data wires of bursts of one way, which rest in gaps, or of both (way_of: index in `ways`), which do not."""
    o, wires = part.organisation, part.interface
    lanes = o.byte_lanes
    ones_of: list[dict[str, int] | None] = [None] * len(ways)
    gaps = np.diff(cycle, prepend=-o.burst_cycles) - o.burst_cycles
    if len(cycle) > 1 and (gaps[1:] < 0).any():
        at = int(np.argmax(gaps[1:] < 0)) + 1
        name = ways[int(way_of[at])]
        raise InputError(f"the {name} burst at cycle {int(cycle[at])} overlaps the one at {int(cycle[at - 1])}")
    hold = len(ways) > 1
    rests = gaps > 0 if not hold else np.zeros(len(cycle), bool)
    if len(rests):
        rests[0] = True
    if wires.cells:
        cells = BurstCells(wires.cells, o, wires.dbi)
        flags = inverted = cells.decide(data) if dbi else np.zeros((len(data), cells.flags), np.uint8)
        packed = cells.pack(data, inverted, metadata)
        sent = packed["D"] | packed["M"] | packed["I"]
        ones_of = [
            {
                name: int(np.bitwise_count(packed[kind][way_of == k]).sum(dtype=np.int64))
                for name, kind in (("data", "D"), ("metadata", "M"), ("dbi", "I"))
            }
            for k in range(len(ways))
        ]
    else:
        sent, inverted = invert(data, rests, wires.dbi if dbi else "none", lanes, wires.idle_level)
        flags = inverted ^ 1 if wires.dbi == "zeros" else inverted  # a DBI_n pin is low when the byte is inverted
    pins, sent_bytes = dbi and not wires.cells, sent.shape[1]
    if beat_order == "last-to-first":
        sent = sent.reshape(len(cycle), o.burst_beats, lanes)[:, ::-1, :]
    bus = Bus(lanes, idle_level=wires.idle_level, n_streams=len(ways))
    bus.send(
        np.ascontiguousarray(sent).reshape(-1),
        np.packbits(flags.reshape(-1), bitorder="little") if pins else None,
        ends=np.arange(1, len(cycle) + 1) * sent_bytes,
        streams=way_of.astype(np.int64),
        idle_before=rests,
    )
    if len(cycle) and not hold:
        bus.send(np.empty(0, np.uint8), ends=[0], idle_before=[True])  # and back to rest
    counts = bus.counts
    groups = []
    for (k, way), (name, part_of, each) in product(
        enumerate(ways),
        (("dq", counts.data, o.burst_beats * o.dq_bits), ("dbi", counts.flag, o.burst_bytes if dbi else 0)),
    ):
        if name not in wires.wires:
            continue
        of = part_of.counts[k][:, : o.dq_bits] * (name == "dq" or dbi)
        if lane_order is not None:
            of = _reorder(of, lane_order, lanes)
        driven = int((way_of == k).sum()) * each
        groups.append(sent_group(name, way, of, driven, part, ones_of[k] if name == "dq" else None))
    return groups, int(inverted.sum())


def _reorder(counts: np.ndarray, lane_order: tuple[int, ...], lanes: int) -> np.ndarray:
    if sorted(lane_order) != list(range(lanes)):
        raise InputError(f"lane_order must be a permutation of 0 to {lanes - 1}, not {lane_order}")
    result = np.empty_like(counts).reshape(3, lanes, -1)
    result[:, list(lane_order)] = counts.reshape(3, lanes, -1)
    return result.reshape(counts.shape)


def invert(
    data: np.ndarray, rests: np.ndarray, rule: str, lanes: int, idle_level: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (bytes as sent, inverted uint8 per byte) of bursts uint8[n, burst_bytes] under a bus inversion rule.

    ones: inverted with 5 or more ones; zeros: with 5 or more zeros; toggles: with 5 or more flips against the byte sent
    before on its lane (the idle level after a rest); none: never.
    """
    if rule == "none" or not data.size:
        return data, np.zeros(data.shape, np.uint8)
    if rule == "toggles":
        sent, flags = np.empty_like(data), np.zeros(data.size // 8 + 1, np.uint8)
        packed = np.zeros_like(flags)
        last = np.full(lanes, 255 * idle_level, np.uint8)
        bits = np.zeros(data.shape, np.uint8)
        for k in range(len(data)):
            if rests[k]:
                last[:] = 255 * idle_level
            packed[:] = 0
            kernels.encode_dbi_ac(data[k], sent[k], packed, last, 0)
            bits[k] = np.unpackbits(packed, bitorder="little", count=data.shape[1])
        return sent, bits
    ones = np.bitwise_count(data)
    flip = (ones > 4 if rule == "ones" else ones < 4).astype(np.uint8)
    return data ^ (flip * np.uint8(255)), flip
