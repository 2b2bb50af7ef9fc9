"""The wires of a byte-lane data bus: which bit is on which wire in which beat, how often each wire is 1 or flips, and
what that costs.

Byte i of a stream travels on lane i mod bus_bytes. Wire ``8 * lane + bit`` carries that bit of the lane's bytes; wire
``8 * bus_bytes + lane`` is the lane's flag (DBI) wire. All wires start at the idle level, and keep theirs between
transfers; a lane that gets no byte in the last beat keeps its level, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

import cython_ext.wires.counting as counting
from traces.base.checks import whole_number, whole_numbers
from traces.base.errors import InputError

MAX_LANES = 64

Bytes = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WireCounts:
    """What each wire did. counts: int64[..., 3, 9 * bus_bytes]: unit intervals at 1, edges of both directions, rising
    edges; DBI wires last."""

    counts: Counts

    def __add__(self, other: WireCounts) -> WireCounts:
        return WireCounts(self.counts + other.counts)

    @property
    def ones(self) -> Counts:
        """Unit intervals at 1, int64[..., 9 * bus_bytes]."""
        return self.counts[..., 0, :]

    @property
    def toggles(self) -> Counts:
        """Edges of both directions, int64[..., 9 * bus_bytes]."""
        return self.counts[..., 1, :]

    @property
    def rising(self) -> Counts:
        """Rising edges, int64[..., 9 * bus_bytes]."""
        return self.counts[..., 2, :]

    @property
    def n_data_wires(self) -> int:
        return int(self.counts.shape[-1]) // 9 * 8

    @property
    def data(self) -> WireCounts:
        return WireCounts(self.counts[..., : self.n_data_wires])

    @property
    def flag(self) -> WireCounts:
        return WireCounts(self.counts[..., self.n_data_wires :])

    @property
    def totals(self) -> tuple[int, int, int]:
        """Ones, toggles and rising edges over all wires (and streams)."""
        ones, toggles, rising = (int(each.sum()) for each in (self.ones, self.toggles, self.rising))
        return ones, toggles, rising


@dataclass(frozen=True)
class WireCosts:
    """What a data wire costs, in pJ or in any other unit: a unit interval at 1, one at 0, a rising edge."""

    one_pj: float = 1.0
    zero_pj: float = 0.0
    rise_pj: float = 1.0

    def __post_init__(self) -> None:
        if not all(0 <= cost < float("inf") for cost in (self.one_pj, self.zero_pj, self.rise_pj)):
            raise InputError(f"costs of wires are finite and not negative, not {self}")


@dataclass(frozen=True, eq=False)
class Coded:
    """What a stage hands on. n bytes go on the data wires in `data`.

    flags: uint8[ceil(n / 8)] or None: bit i (LSB first) travels with byte i on its lane's first flag (DBI) wire.
    extra: uint8[n] or None: the flag wires of a lane beyond the first; bit k of byte i is flag wire k + 1 beside data
    byte i.
    """

    data: Bytes
    flags: Bytes | None = None
    extra: Bytes | None = None

    def part(self, start: int, end: int) -> Coded:
        """Return what goes with bytes `start` to `end`, multiples of 8."""
        flags = None if self.flags is None else self.flags[start // 8 : end // 8]
        return Coded(self.data[start:end], flags, None if self.extra is None else self.extra[start:end])


class Bus:
    """A bus of `bus_bytes` (1 to 64) byte lanes with one flag wire each; counts accumulate per stream (`n_streams`).

    idle_level: 0 or 1, where every wire starts. level, flag_level: uint8[bus_bytes], what the wires carry now. lane:
    the lane of the next byte.
    """

    def __init__(self, bus_bytes: int = 2, *, idle_level: int = 0, n_streams: int = 1) -> None:
        if not 1 <= bus_bytes <= MAX_LANES:
            raise InputError(f"bus_bytes is {bus_bytes}: a bus has 1 to {MAX_LANES} byte lanes")
        if idle_level not in (0, 1):
            raise InputError(f"idle_level is {idle_level}: wires rest at 0 or at 1")
        if n_streams < 1:
            raise InputError(f"n_streams is {n_streams}: at least one stream is counted")
        self.bus_bytes = bus_bytes
        self.idle_level = idle_level
        self._rest()
        self._counts = np.zeros((n_streams, 3, 9 * bus_bytes), np.int64)
        self._counters = counting.new_counters(n_streams, bus_bytes)  # what is not in the counts yet

    def another_channel(self) -> Bus:
        """Return a bus of the same kind, at rest, whose counts go where those of this one do: another channel."""
        other = Bus.__new__(Bus)
        other.__dict__.update(self.__dict__)
        other._rest()
        return other

    def _rest(self) -> None:
        self.level, self.flag_level = np.zeros((2, self.bus_bytes), np.uint8)
        if self.idle_level:
            self.level[:], self.flag_level[:] = 255, 1
        self.lane = 0

    @property
    def counts(self) -> WireCounts:
        """int64[n_streams, 9 * bus_bytes] each: everything sent so far, per stream and wire, on all channels."""
        counting.empty_counters(self._counters, self._counts)
        return WireCounts(self._counts.copy())

    def send(
        self,
        data: Bytes,
        flags: Bytes | None = None,
        *,
        ends: npt.ArrayLike | None = None,
        streams: npt.ArrayLike | int = 0,
        idle_before: npt.ArrayLike | None = None,
    ) -> None:
        """Put bytes on the wires, O(n).

        data: uint8[n], as encoded. flags: uint8[ceil(n / 8)], bit i (LSB first) travels with byte i; None: flags are 0.
        ends: int64[k], segment j is ``data[ends[j-1]:ends[j]]`` (default: one segment). streams: int or int64[k].
        idle_before: bool[k]; True: the bus has rested before the segment, all wires went back to the idle level and the
        segment starts on lane 0. The edges of that return are counted with the segment.
        """
        data = np.ascontiguousarray(data, np.uint8)
        stops = np.ascontiguousarray(np.atleast_1d(len(data) if ends is None else ends), np.int64)
        names = np.asarray(streams, np.int64)
        names = np.ascontiguousarray(names if names.shape == stops.shape else np.broadcast_to(names, stops.shape))
        if (stops[-1] if stops.size else 0) != len(data):
            self._refuse(stops, names, len(data))
        rests = None if idle_before is None else np.ascontiguousarray(idle_before, bool).view(np.uint8)
        if rests is not None and rests.shape != stops.shape:
            raise InputError(f"{len(stops)} segments but {rests.size} idle_before marks")
        if flags is not None and len(flags) * 8 < len(data):
            raise InputError(f"{len(data)} bytes need {(len(data) + 7) // 8} bytes of flags, not {len(flags)}")
        lane = counting.count_wires(
            data, flags, stops, names, rests, self.idle_level, self.level, self.flag_level, self.lane, self._counters,
            self._counts,
        )  # fmt: skip
        if lane < 0:
            self._refuse(stops, names, len(data))
        self.lane = lane

    def _refuse(self, stops: Counts, names: Counts, n_bytes: int) -> NoReturn:
        if names.size and (names.min() < 0 or names.max() >= len(self._counts)):
            raise InputError(
                f"stream numbers run from 0 to {len(self._counts) - 1}, not {names.min()} to {names.max()}"
            )
        raise InputError(f"segment ends must ascend to the number of bytes, {n_bytes}")

    def restore(self, level: Sequence[int] | Bytes, flag_level: Sequence[int] | Bytes, lane: int) -> None:
        """Set what the wires carry, to continue where another bus stopped.

        level, flag_level: uint8[lanes]. lane: where the next byte goes. Raises InputError for others.
        """
        levels = [
            whole_numbers(given, name, np.uint8, item="lane")
            for name, given in (("level", level), ("flag_level", flag_level))
        ]
        for name, given in zip(("level", "flag_level"), levels, strict=True):
            if len(given) != len(self.level):
                raise InputError(f"{name} has {len(given)} lanes, the bus {len(self.level)}")
        at = whole_number(lane, "lane", 0, len(self.level) - 1)
        self.level[:], self.flag_level[:], self.lane = *levels, at
