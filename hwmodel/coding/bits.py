"""What is sent, as bitarrays: `Bits`, to and from bytes, and the counts of its wires.

Bit b of byte i is bit ``8 * i + b`` (little endian), so the wire of bit b on lane l is the slice
``data[8 * l + b :: 8 * bus_bytes]`` of a stream that starts on lane 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from bitarray import bitarray
from bitarray.util import count_xor

from hwmodel.bus import WireCounts
from hwmodel.coding.coded import Bytes, Coded


@dataclass(frozen=True, eq=False)
class Bits:
    """`Coded` as bitarrays: n bytes in 8 n bits of data.

    flags: n bits or None, bit i beside byte i. extra: 8 n bits or None, the flag wires of a lane beyond the first.
    order: what the receiver must hold (Coded.order).
    """

    data: bitarray
    flags: bitarray | None = None
    extra: bitarray | None = None
    order: npt.NDArray[np.int64] | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of data."""
        return len(self.data) // 8


def bits_of(data: bytes | Bytes) -> bitarray:
    """Return the bits of bytes, each byte's least significant bit first."""
    bits = bitarray(endian="little")
    bits.frombytes(bytes(data))
    return bits


def bytes_of(bits: bitarray) -> Bytes:
    """Return the bytes of bits, uint8[ceil(n / 8)]; missing bits are 0."""
    return np.frombuffer(bits.tobytes(), np.uint8).copy()


def to_bits(coded: Coded) -> Bits:
    """Return what is sent as bitarrays."""
    n = len(coded.data)
    flags = None if coded.flags is None else bits_of(coded.flags)[:n]
    return Bits(bits_of(coded.data), flags, None if coded.extra is None else bits_of(coded.extra), coded.order)


def to_bytes(sent: Bits) -> Coded:
    """Return what is sent as bytes."""
    flags = None if sent.flags is None else bytes_of(sent.flags)
    return Coded(bytes_of(sent.data), flags, None if sent.extra is None else bytes_of(sent.extra), sent.order)


def each_byte(bits: bitarray, size: int = 1) -> Iterator[bitarray]:
    """Yield the eight bits of each byte in turn, or those of `size` bytes."""
    for at in range(0, len(bits), 8 * size):
        yield bits[at : at + 8 * size]


def pieces(n: int, offset: int, block_bytes: int, element_bytes: int) -> Iterator[tuple[slice, bool, bool]]:
    """Cut n bytes that start at `offset` in the stream into elements inside blocks.

    Yields the piece's bits, whether it is the first of its block, and whether it is a whole element (what remains of a
    block, or of the stream, is not). `offset` is at the start of an element.
    """
    at = 0
    while at < n:
        place = (offset + at) % block_bytes
        end = min(at + min(element_bytes, block_bytes - place), n)
        yield slice(8 * at, 8 * end), place == 0, end - at == element_bytes
        at = end


def count_wires(
    data: bitarray, flags: bitarray | None, bus_bytes: int, lane: int, level: Bytes, flag_level: Bytes
) -> WireCounts:
    """Count the wires of a bus by slicing each wire's bits out of the stream; the reference of `Bus.send`.

    data: 8 n bits. flags: n bits, None: 0. lane: of the first byte. level, flag_level: uint8[bus_bytes] before it;
    updated. Returns int64[9 * bus_bytes] counts.
    """
    counts = np.zeros((3, 9 * bus_bytes), np.int64)
    for k in range(bus_bytes):
        at = (lane + k) % bus_bytes
        carried = [(8 * at + bit, data[8 * k + bit :: 8 * bus_bytes], level, bit) for bit in range(8)]
        if flags is not None:
            carried.append((8 * bus_bytes + at, flags[k::bus_bytes], flag_level, 0))
        elif 8 * k < len(data):
            low = bitarray(len(data[8 * k :: 8 * bus_bytes]), endian="little")
            low.setall(0)
            carried.append((8 * bus_bytes + at, low, flag_level, 0))
        for wire, bits, levels, bit in carried:
            if not bits:
                continue
            before = bitarray([levels[at] >> bit & 1], endian="little") + bits[:-1]
            counts[:, wire] = bits.count(1), count_xor(before, bits), (~before & bits).count(1)
            levels[at] = (int(levels[at]) & ~(1 << bit)) | bits[-1] << bit
    return WireCounts(counts)
