"""What an encoder is: a stage that maps bytes to bytes (and flags) and keeps a small state along a stream."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.base.registry import Registry

Bytes = npt.NDArray[np.uint8]


class Role(enum.IntEnum):
    """Where in a chain a stage makes sense; a chain's roles strictly ascend."""

    ORDER = 0  # changes which word comes when
    SIMILARITY = 1  # sends differences between neighbouring values
    SCRAMBLE = 2  # whitens what is sent
    BUS_CODE = 3  # decides per beat, with wires of its own
    SIGNALLING = 4  # what a 1 means on the wire


@dataclass(frozen=True)
class Geometry:
    """element_bytes: size of one value. bus_bytes: byte lanes. block_bytes: a base is sent at every multiple of it."""

    element_bytes: int
    bus_bytes: int = 2
    block_bytes: int = 32

    def __post_init__(self) -> None:
        if self.element_bytes not in (1, 2, 4, 8):
            raise InputError(f"element_bytes is {self.element_bytes}: elements have 1, 2, 4 or 8 bytes")
        if not 1 <= self.bus_bytes <= 64:
            raise InputError(f"bus_bytes is {self.bus_bytes}: a bus has 1 to 64 byte lanes")
        if self.block_bytes < self.element_bytes or self.block_bytes % self.element_bytes:
            raise InputError(
                f"block_bytes is {self.block_bytes}: a block holds a whole number of {self.element_bytes}-byte elements"
            )


@dataclass(frozen=True, eq=False)
class Coded:
    """What a stage hands on. n bytes go on the data wires in `data`.

    flags: uint8[ceil(n / 8)] or None: bit i (LSB first) travels with byte i on its lane's flag (DBI) wire.
    extra: uint8[n] or None: eight more wires per lane (limited-weight codes), byte i beside data byte i.
    order: int64[k] or None: what the receiver must already hold to decode (cache-line reordering); not on any wire.
    """

    data: Bytes
    flags: Bytes | None = None
    extra: Bytes | None = None
    order: npt.NDArray[np.int64] | None = None


class Stage:
    """One encoder. Subclasses register in ENCODERS, state their `role` and implement encode and decode.

    `state` values are never changed in place: encode and decode return the next one, so any state can be resumed twice.
    """

    role: ClassVar[Role]

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry

    def start(self) -> Any:
        """Return the state before the first byte of a stream."""
        return None

    def cut(self, end: int) -> int:
        """Return the last place <= `end` (bytes from the start of the stream) where the stream may be cut."""
        return end

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Encode bytes that start at `offset` in the stream; return the result and the next state."""
        raise TypeError(f"{type(self).__name__} does not encode")

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        """Inverse of encode."""
        raise TypeError(f"{type(self).__name__} does not decode")


ENCODERS: Registry[Callable[[Geometry], Stage]] = Registry("encoder", "edgewatt.encoders")


def aligned_empty(n: int) -> Bytes:
    """Return uint8[n] that starts on a cache line, so that long results can be written past the caches."""
    raw = np.empty(n + 63, np.uint8)
    return raw[-raw.ctypes.data % 64 :][:n]


def same_bytes(coded: Coded, data: Bytes) -> Coded:
    """Return `coded` with other data bytes."""
    return replace(coded, data=data)
