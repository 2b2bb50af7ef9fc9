"""Encode and decode streams, and count what their wires do: ``encode(data, "base-xor+dbi-dc", element_bytes=2)``.

Conventions (byte and lane order, idle wires, ties) are those of docs/concepts/encoders.md; `ENCODERS` lists the names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hwmodel.bus import Bus, Bytes, Coded, WireCosts, WireCounts
from hwmodel.coding.chain import Chain, ChainState
from hwmodel.coding.stage import Geometry
from traces.base.checks import as_array
from traces.base.errors import InputError, shown
from traces.base.reprs import OneLineRepr


@dataclass(frozen=True, eq=False)
class StreamState:
    """Where a stream stopped: the encoder's state and what every wire carries. Pass it on; it is never changed."""

    encoder: str
    geometry: Geometry
    chain: ChainState
    level: Bytes
    flag_level: Bytes
    extra_level: Bytes
    lane: int


@dataclass(frozen=True, eq=False)
class Encoded(OneLineRepr):
    """What went over the bus in one call of `encode`.

    data: uint8[n], one byte per lane and beat. flags: uint8[ceil(n / 8)] or None, bit i (LSB first) goes with byte i.
    extra: uint8[n] or None, up to eight further wires per lane. extra_wires: wires beyond the 8 * bus_bytes data wires.
    ones, toggles, rising: over ALL wires, flag (DBI) and extra wires included. wires: the same per wire (data, then one
    flag wire per lane). extra_counts: per extra wire. state: give it to the next call to continue the stream.
    """

    data: Bytes
    flags: Bytes | None
    extra: Bytes | None
    extra_wires: int
    ones: int
    toggles: int
    rising: int
    wires: WireCounts
    extra_counts: WireCounts | None
    state: StreamState

    __repr__ = OneLineRepr.__repr__

    def _repr_fields(self) -> dict[str, object]:
        return {
            "encoder": self.state.encoder, "bytes": len(self.data), "ones": self.ones, "toggles": self.toggles,
            "rising": self.rising, "wires beyond the data": self.extra_wires,
        }  # fmt: skip


def as_bytes(data: Any) -> Bytes:
    """Return the memory of bytes, or of an array of numbers, as it lies."""
    if isinstance(data, bytes | bytearray | memoryview):
        return np.frombuffer(data, np.uint8)
    array = np.ascontiguousarray(as_array(data, "data"))
    if array.dtype.kind in "OUMm":
        raise InputError(f"data must be bytes or an array of numbers, not {shown(data)}")
    return array.reshape(-1).view(np.uint8)


def _continue(state: StreamState, *call: object) -> None:
    made = (state.encoder, state.geometry)
    if made != call:
        raise InputError("the state belongs to {!r} with {}, this call is {!r} with {}".format(*made, *call))


def encode(
    data: Any,
    encoder: str,
    *,
    element_bytes: int,
    bus_bytes: int = 2,
    block_bytes: int = 32,
    state: StreamState | None = None,
    last: bool = True,
    costs: WireCosts | None = None,
) -> Encoded:
    """Encode bytes and count the wires of a `bus_bytes`-lane bus, O(n).

    data: bytes, or an array whose memory is taken as it lies (little endian). encoder: a name or chain of ENCODERS.
    element_bytes: of one number. block_bytes: a base is sent at every multiple of it.
    state: of the call before, to continue its stream (wires included). last: False when more of the stream follows:
    bytes of an unfinished element (or block) are then held back, so that a stream may be cut anywhere. costs: of the
    wires, for encoders that weigh ones against edges (default: a 1 and a rising edge cost 1 each).

    Returns an Encoded: data, flags, extra, wires, state. Raises InputError: unknown encoder, senseless chain, sizes
    that do not fit, a state of another encoder.
    """
    geometry = Geometry(element_bytes, bus_bytes, block_bytes, costs=costs or WireCosts())
    chain = Chain(encoder, geometry)
    bus, extra_bus = (Bus(bus_bytes) for _ in range(2))
    if state is not None:
        _continue(state, encoder, geometry)
        bus.restore(state.level, state.flag_level, state.lane)
        extra_bus.restore(state.extra_level, np.zeros(bus_bytes, np.uint8), state.lane)
    coded, after = chain.encode(as_bytes(data), None if state is None else state.chain, last=last)
    bus.send(coded.data, coded.flags)
    wires = bus.counts
    totals, extra_counts = wires.totals, None
    if coded.extra is not None:
        extra_bus.send(coded.extra)
        extra_counts = extra_bus.counts.data
        totals = tuple(a + b for a, b in zip(totals, extra_counts.totals, strict=True))  # type: ignore[assignment]
    return Encoded(
        coded.data,
        coded.flags,
        coded.extra,
        chain.facts.flag_wires * bus_bytes,
        *totals,
        WireCounts(wires.counts[0]),
        extra_counts,
        StreamState(encoder, geometry, after, bus.level, bus.flag_level, extra_bus.level, bus.lane),
    )


def decode(
    data: Any,
    encoder: str,
    *,
    flags: Any = None,
    extra: Any = None,
    element_bytes: int,
    bus_bytes: int = 2,
    block_bytes: int = 32,
    state: ChainState | None = None,
    costs: WireCosts | None = None,
) -> Bytes:
    """Return the bytes that `encode` was given; `data` may also be an Encoded, which brings flags and extra.

    flags, extra: bytes or arrays, as `encode` returns them.
    encoder, element_bytes, bus_bytes, block_bytes, costs: as of `encode`. For a stream in pieces use `Chain.decode`,
    which returns the decoder's state too. Raises InputError where the data cannot come from that encoder.
    """
    geometry = Geometry(element_bytes, bus_bytes, block_bytes, costs=costs or WireCosts())
    if isinstance(data, Encoded):
        _continue(data.state, encoder, replace(geometry, costs=data.state.geometry.costs))
        coded = Coded(data.data, data.flags, data.extra)
    else:
        flag_bytes, extra_bytes = (None if given is None else as_bytes(given) for given in (flags, extra))
        coded = Coded(as_bytes(data), flag_bytes, extra_bytes)
    return Chain(encoder, geometry).decode(coded, state)[0]
