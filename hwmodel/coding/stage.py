"""What an encoder is: a stage that maps bytes to bytes (and flags) and keeps a small state along a stream."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

import cython_ext.wires.encode as kernels
from hwmodel.bus import Bytes, Coded, WireCosts
from traces.base.errors import InputError
from traces.base.registry import Registry

if TYPE_CHECKING:
    from hwmodel.coding.in_burst import ShareFlags

Int64Array = npt.NDArray[np.int64]

MAX_FLAG_WIRES = 9
ONES_AND_EDGES = WireCosts()  # a 1 and a rising edge cost 1 each


class Role(enum.IntEnum):
    """Where in a chain a stage makes sense; a chain's roles strictly ascend."""

    SIMILARITY = 1  # sends differences between neighbouring values
    SCRAMBLE = 2  # whitens what is sent
    BUS_CODE = 3  # decides per beat, with wires of its own
    SIGNALLING = 4  # what a 1 means on the wire


@dataclass(frozen=True)
class Geometry:
    """element_bytes: size of one value. bus_bytes: byte lanes. block_bytes: a base is sent at every multiple of it.

    records: an element is a record of up to 64 bytes, and a block need not hold a whole number of them.
    costs: of the wires, for encoders that weigh ones against edges. shares: of a part whose inversion flags travel
    inside the burst, each for several bytes; blocks are then its bursts.
    """

    element_bytes: int
    bus_bytes: int = 2
    block_bytes: int = 32
    records: bool = False
    costs: WireCosts = ONES_AND_EDGES
    shares: ShareFlags | None = None

    def __post_init__(self) -> None:
        if self.records and not 1 <= self.element_bytes <= min(self.block_bytes, 64):
            raise InputError(f"element_bytes is {self.element_bytes}: a record has 1 to 64 bytes and fits in a block")
        if self.element_bytes not in (1, 2, 4, 8) and not self.records:
            raise InputError(f"element_bytes is {self.element_bytes}: elements have 1, 2, 4 or 8 bytes")
        if not 1 <= self.bus_bytes <= 64:
            raise InputError(f"bus_bytes is {self.bus_bytes}: a bus has 1 to 64 byte lanes")
        if self.block_bytes < self.element_bytes or (self.block_bytes % self.element_bytes and not self.records):
            raise InputError(
                f"block_bytes is {self.block_bytes}: a block holds a whole number of {self.element_bytes}-byte elements"
            )


class Stage:
    """One encoder: subclasses register in ENCODERS, declare themselves and implement `encode` and `decode`.

    role: the place in a chain.
    flag_wires: wires per lane beside its eight data wires, 0 to 9: the first in `Coded.flags`, the others in
        `Coded.extra`. They are driven in every beat that sends a byte on the lane.
    inverts: the memory undoes it as its own data bus inversion, so reads have the part's longer latency RL_dbi.
    inverts_shares: with Geometry.shares it decides for whole shares, all bytes of one alike, and its flags fit a burst.
    plain: bytes go out as they are.
    by_block: what becomes of a whole block depends on no other, so blocks may be encoded together and in any order.
    latency_cycles: clocks of the memory that decoding adds to each read in the controller.
    element_sizes: bytes per element it works with. uses_elements: what it sends depends on that size.
    takes_records: it also works with records of any size up to 64 bytes (Geometry.records).
    fused: by the name of the stage that may follow it, one stage that does both in a single pass over the bytes.

    `state` values are never changed in place: encode and decode return the next one, so any state can be resumed twice.
    """

    role: ClassVar[Role]
    flag_wires: ClassVar[int] = 0
    inverts: ClassVar[bool] = False
    inverts_shares: ClassVar[bool] = False
    plain: ClassVar[bool] = False
    by_block: ClassVar[bool] = False
    latency_cycles: ClassVar[int] = 0
    element_sizes: ClassVar[tuple[int, ...]] = (1, 2, 4, 8)
    uses_elements: ClassVar[bool] = False
    takes_records: ClassVar[bool] = False
    fused: ClassVar[Mapping[str, type[Stage]]] = {}

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry

    @classmethod
    def objection(cls, others: Sequence[type[Stage]]) -> str | None:
        """Return why this stage makes no sense in one chain with `others`, as the end of a sentence; None: it does."""
        return None

    def start(self) -> Any:
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

    @classmethod
    def encode_blocks(cls, stages: Sequence[Stage], coded: Coded, which: Int64Array, kind: Bytes) -> Coded | None:
        """Encode blocks in one pass, block k as stages[which[kind[k]]] does; None: by one stage after the other."""
        return None


ENCODERS: Registry[type[Stage]] = Registry(
    "encoder", "edgewatt.encoders", folder="hwmodel.encoders", subclasses_of=Stage
)


class LaneStage(Stage):
    """A stage whose state is what each lane carries, uint8[bus_bytes]."""

    def start(self) -> Any:
        return np.zeros(self.geometry.bus_bytes, np.uint8)

    def lane(self, offset: int) -> int:
        return offset % self.geometry.bus_bytes


class InvertingStage(Stage):
    """A bus code that sends bytes (or shares of a burst) inverted, as their flags say.

    low_active: a flag is 0 for an inverted byte, as DBI_n pins are.
    """

    role = Role.BUS_CODE
    flag_wires = 1
    inverts = True
    inverts_shares = True
    low_active: bool = False

    def decode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        assert coded.flags is not None
        out = np.empty_like(coded.data)
        kernels.invert_flagged(coded.data, ~coded.flags if self.low_active else coded.flags, out)
        return Coded(out), state


class ElementStage(Stage):
    """A stage that works on whole elements inside blocks; its state is the last element, as plain bytes."""

    role = Role.SIMILARITY
    uses_elements = True

    def start(self) -> Any:
        """An element of zeros."""
        return np.zeros(self.geometry.element_bytes, np.uint8)

    def cut(self, end: int) -> int:
        """A stream may be cut between elements, one of records between blocks."""
        return end - end % (self.geometry.block_bytes if self.geometry.records else self.geometry.element_bytes)

    def after(self, state: Bytes, data: Bytes) -> Bytes:
        """Return the last element of `data`, which followed `state`."""
        n = self.geometry.element_bytes
        return data[-n:].copy() if len(data) >= n else np.concatenate((state, data))[-n:]

    def whole(self, offset: int, n: int) -> int:
        """Return how many of n bytes from `offset` on lie in whole elements."""
        return self.cut(offset + n) - offset


def packed_flags(n: int) -> Bytes:
    """Return the flags of n bytes, none set: uint8[ceil(n / 8)]."""
    return np.zeros((n + 7) // 8, np.uint8)


def same_bytes(coded: Coded, data: Bytes) -> Coded:
    """Return `coded` with other data bytes."""
    return replace(coded, data=data)
