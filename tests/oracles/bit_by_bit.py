"""The encoders of hwmodel.encoders once more, each by its rule over bitarrays: slow, and without their kernels.

Bit b of byte i is bit ``8 * i + b`` (little endian), so the wire of bit b on lane l is the slice
``data[8 * l + b :: 8 * bus_bytes]`` of a stream that starts on lane 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from bitarray import bitarray
from bitarray.util import ba2int, count_xor, int2ba, zeros

from hwmodel.bus import Bytes, Coded
from hwmodel.coding.in_burst import LeastCost, ShareFlags
from hwmodel.coding.stage import ENCODERS
from hwmodel.encoders.limited_weight import limited_weight_code


@dataclass(frozen=True, eq=False)
class Bits:
    """`Coded` as bitarrays: n bytes in 8 n bits of data.

    flags: n bits or None, bit i beside byte i. extra: 8 n bits or None, the flag wires of a lane beyond the first.
    """

    data: bitarray
    flags: bitarray | None = None
    extra: bitarray | None = None

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
    return Bits(bits_of(coded.data), flags, None if coded.extra is None else bits_of(coded.extra))


def to_bytes(sent: Bits) -> Coded:
    """Return what is sent as bytes."""
    flags = None if sent.flags is None else bytes_of(sent.flags)
    return Coded(bytes_of(sent.data), flags, None if sent.extra is None else bytes_of(sent.extra))


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


class BitWires:
    """One burst bit by bit, for encoders' readable references. level: of each wire before it; None: 0."""

    def __init__(self, shares: ShareFlags, burst: bitarray, level: list[int] | None) -> None:
        self._source, self._given = shares.source.tolist(), shares.given.tolist()
        self._share_bits, self._burst = shares.share_bits, burst
        self._level = level or [0] * shares.wires

    def places(self, share: int) -> list[tuple[int, int]]:
        """Return the (beat, wire) of a share's bits, beat by beat."""
        beats, wires = range(len(self._source)), range(len(self._level))
        return [(beat, wire) for beat in beats for wire in wires if self.share(beat, wire) == share]

    def share(self, beat: int, wire: int) -> int:
        """Return the share whose data a wire carries in a beat, -1 for none."""
        source = self._source[beat][wire] if beat >= 0 else -1
        return source // self._share_bits if source >= 0 else -1

    def flag(self, beat: int, wire: int) -> int:
        """Return the flag that turns what a wire carries in a beat (itself, or that of a share), -1 for none."""
        source = self._source[beat][wire] if beat >= 0 else -1
        return -2 - source if source < -1 else self.share(beat, wire)

    def plain(self, beat: int, wire: int) -> int:
        """Return what a wire carries in a beat while no share is inverted; beat -1: before the burst."""
        if beat < 0:
            return self._level[wire]
        source = self._source[beat][wire]
        if source >= 0:
            return self._burst[source]
        return int(self._given[beat][wire]) if source == -1 else 0

    def carried(self, beat: int, wire: int, flags: Sequence[Any]) -> Any:
        """Return what it carries with these flags (0 or 1, or an array of choices each)."""
        flag = self.flag(beat, wire)
        return self.plain(beat, wire) if flag < 0 else self.plain(beat, wire) ^ flags[flag]

    def after(self, flags: Sequence[Any]) -> list[int]:
        """Return what each wire carries after the burst."""
        last = len(self._source) - 1
        return [int(self.carried(last, wire, flags)) for wire in range(len(self._level))]

    def cost(self, flags: Sequence[np.ndarray], one: int, zero: int, edge: int) -> np.ndarray:
        """Return the cost of each choice of flags, less what all of them cost."""
        alone = [0] * len(flags)
        both: dict[tuple[int, int], int] = {}
        for wire in range(len(self._level)):
            for beat in range(len(self._source)):
                before, now = (self.flag(at, wire) for at in (beat - 1, beat))
                high = self.plain(beat, wire)
                if now >= 0:
                    alone[now] += zero - one if high else one - zero
                flips = -edge if high != self.plain(beat - 1, wire) else edge  # more where just one of them turns
                if before != now and min(before, now) >= 0:
                    pair = (min(before, now), max(before, now))
                    both[pair] = both.get(pair, 0) + flips
                elif before != now:
                    alone[max(before, now)] += flips
        total = sum(weight * turned.astype(np.int64) for weight, turned in zip(alone, flags, strict=True))
        for (a, b), weight in both.items():
            total = total + weight * (flags[a] != flags[b]).astype(np.int64)
        return np.asarray(total)


class BitByBit:
    """A stage in place of its kernel: `encode_bits(sent, offset, state)`, whose state is None before the first byte."""

    fused: ClassVar[dict[str, Any]] = {}

    def start(self) -> Any:
        return None

    def encode(self, coded: Coded, offset: int, state: Any) -> tuple[Coded, Any]:
        sent, state = self.encode_bits(to_bits(coded), offset, state)
        return to_bytes(sent), state

    @classmethod
    def encode_blocks(cls, *_: Any) -> None:
        return None


@contextmanager
def bit_by_bit() -> Iterator[None]:
    """Every encoder by its rule over bitarrays."""
    real = dict(ENCODERS._entries)
    ENCODERS._entries.update({name: replace(real[name], item=stage) for name, stage in RULES.items()})
    try:
        yield
    finally:
        ENCODERS._entries.clear()
        ENCODERS._entries.update(real)


class BaseXor(BitByBit, ENCODERS["base-xor"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """XOR whole elements with their predecessors."""
        g, out, before = self.geometry, bitarray(endian="little"), state
        for at, first, whole in pieces(sent.n_bytes, offset, g.block_bytes, g.element_bytes):
            element = sent.data[at]
            out += element if first or not whole else element ^ before
            before = element
        return Bits(out), before


class BaseXorZdr(BitByBit, ENCODERS["base-xor-zdr"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """Zeros send the constant, what would send the constant sends its predecessor, the others XOR."""
        g, out, before = self.geometry, bitarray(endian="little"), state
        constant = zeros(8 * g.element_bytes, endian="little")
        constant[-2] = 1
        for at, first, whole in pieces(sent.n_bytes, offset, g.block_bytes, g.element_bytes):
            element = sent.data[at]
            if first or not whole:
                out += element
            elif not element.any():
                out += constant
            else:
                out += before if element == before ^ constant else element ^ before
            before = element
        return Bits(out, sent.flags, sent.extra), before


class DbiAc(BitByBit, ENCODERS["dbi-ac"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """More than four wires of the lane would flip: invert. State: the byte each lane carries."""
        if self.geometry.shares is not None:
            return self._shares_bits(sent, self.geometry.shares, state)
        out, flags = bitarray(endian="little"), bitarray(endian="little")
        lanes = list(state or [zeros(8, endian="little")] * self.geometry.bus_bytes)
        for i, byte in enumerate(each_byte(sent.data)):
            lane = self.lane(offset + i)
            flags.append(count_xor(byte, lanes[lane]) > 4)
            lanes[lane] = ~byte if flags[-1] else byte
            out += lanes[lane]
        return Bits(out, flags), lanes

    def _shares_bits(self, sent: Bits, shares: ShareFlags, state: Any) -> tuple[Bits, Any]:
        """More than half of the wires on which a share begins would flip: invert. State: what each wire carries."""
        out, flags, level = bitarray(endian="little"), bitarray(endian="little"), state
        for burst in each_byte(sent.data, shares.cells.burst_bytes):
            wires = BitWires(shares, burst, level)
            turned = [False] * shares.cells.flags
            for share in range(len(turned)):
                begins = [(beat, wire) for beat, wire in wires.places(share) if wires.share(beat - 1, wire) != share]
                flips = [wires.carried(beat - 1, wire, turned) != wires.plain(beat, wire) for beat, wire in begins]
                turned[share] = 2 * sum(flips) > len(flips)
            level = wires.after(turned)
            for share, bits in enumerate(each_byte(burst, shares.cells.share_bytes)):
                out += ~bits if turned[share] else bits
                flags += shares.cells.share_bytes * bitarray([turned[share]])
        return Bits(out, flags), level


class DbiDc(BitByBit, ENCODERS["dbi-dc"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """More than half of the levels are costly: invert."""
        out, flags, shares = bitarray(endian="little"), bitarray(endian="little"), self.geometry.shares
        size = 1 if shares is None else shares.cells.share_bytes
        for share in each_byte(sent.data, size):
            heavy = share.count(not self.zeros_cost) > 4 * size
            out += ~share if heavy else share
            flags += size * bitarray([heavy != self.low_active])
        return Bits(out, flags), state


class DbiOptimal(BitByBit, ENCODERS["dbi-opt"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """Of all ways to invert the bytes of a burst on a lane the cheapest; plain where two cost the same."""
        if self._least is not None:
            return self._shares_bits(sent, self._least, state)
        g, out, flags = self.geometry, sent.data.copy(), zeros(sent.n_bytes, endian="little")
        lanes = list(state or [zeros(9, endian="little")] * g.bus_bytes)
        for start in range(0, sent.n_bytes, g.block_bytes):
            end = min(start + g.block_bytes, sent.n_bytes)
            for first in range(start, min(start + g.bus_bytes, end)):
                places = range(first, end, g.bus_bytes)
                lane = self.lane(offset + first)
                words = self._cheapest([sent.data[8 * i : 8 * i + 8] for i in places], lanes[lane])
                for i, word in zip(places, words, strict=True):
                    out[8 * i : 8 * i + 8], flags[i] = word[:8], word[8]
                lanes[lane] = words[-1]
        return Bits(out, flags), lanes

    def _cheapest(self, data: list[bitarray], level: bitarray) -> list[bitarray]:
        """Return the nine-bit words (flag last) that send these bytes at least cost from `level`."""
        costs, paths = self.geometry.costs, [(0.0, [level]), (0.0, [level])]
        for byte in data:
            plain = byte + bitarray([self.low_active], endian="little")
            extended = []
            for word in (plain, ~plain):
                ones = word.count(1)
                beat = [
                    costs.one_pj * ones + costs.zero_pj * (9 - ones) + costs.rise_pj / 2 * count_xor(word, path[-1])
                    for _, path in paths
                ]
                ends = [cost + more for (cost, _), more in zip(paths, beat, strict=True)]
                best = int(ends[1] < ends[0])
                extended.append((ends[best], [*paths[best][1], word]))
            paths = extended
        return paths[int(paths[1][0] < paths[0][0])][1][1:]

    def _shares_bits(self, sent: Bits, least: LeastCost, state: Any) -> tuple[Bits, Any]:
        """Of all ways to flag the shares of a burst the cheapest; of those that cost the same the lowest number."""
        out, flags, level = bitarray(endian="little"), bitarray(endian="little"), state
        cells = least.shares.cells
        settings = np.arange(1 << cells.flags)
        turned = [(settings >> (cells.flags - 1 - c) & 1).astype(bool) for c in range(cells.flags)]
        for burst in each_byte(sent.data, cells.burst_bytes):
            wires = BitWires(least.shares, burst, level)
            best = int(np.argmin(wires.cost(turned, least.one, least.zero, least.edge)))
            chosen = [bool(column[best]) for column in turned]
            level = wires.after(chosen)
            for share, bits in enumerate(each_byte(burst, cells.share_bytes)):
                out += ~bits if chosen[share] else bits
                flags += cells.share_bytes * bitarray([chosen[share]])
        return Bits(out, flags), level


class LimitedWeight(BitByBit, ENCODERS["3-lwc"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """A byte's rank by weight and value names the codeword of that rank."""
        code, _ = limited_weight_code()
        data, flags, extra = (bitarray(endian="little") for _ in range(3))
        for byte in each_byte(sent.data):
            word = int2ba(int(code[ba2int(byte)]), 17, endian="little")
            data, flags, extra = data + word[:8], flags + word[8:9], extra + word[9:]
        return Bits(data, flags, extra), state


class Raw(BitByBit, ENCODERS["raw"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """Hand the bits on."""
        return sent, state


class Scrambler(BitByBit, ENCODERS["scrambler"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """XOR with the shift register's output, bit 0 of byte 0 first."""
        register, out = 0x7FFF, sent.data.copy()
        for _ in range(8 * offset % 32767):
            register = (register << 1 | (register >> 14 ^ register >> 13) & 1) & 0x7FFF
        for k in range(len(out)):
            bit = (register >> 14 ^ register >> 13) & 1
            register = (register << 1 | bit) & 0x7FFF
            out[k] ^= bit
        return Bits(out, sent.flags, sent.extra), state


class Transition(BitByBit, ENCODERS["transition"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """A wire carries the XOR of all its bits so far. State: what the wires of the three groups carry, by lane."""
        lanes = self.geometry.bus_bytes
        levels = list(state or [[zeros(width, endian="little")] * lanes for width in (8, 1, 8)])

        def signalled(bits: bitarray, group: int, width: int) -> bitarray:
            out, level = bitarray(endian="little"), list(levels[group])
            for i in range(len(bits) // width):
                lane = self.lane(offset + i)
                level[lane] = level[lane] ^ bits[width * i : width * (i + 1)]
                out += level[lane]
            levels[group] = level
            return out

        data = signalled(sent.data, 0, 8)
        flags = None if sent.flags is None else signalled(sent.flags, 1, 1)
        extra = None if sent.extra is None else signalled(sent.extra, 2, 8)
        return Bits(data, flags, extra), levels


class UniversalXor(BitByBit, ENCODERS["universal-xor"].item):
    def encode_bits(self, sent: Bits, offset: int, state: Any) -> tuple[Bits, Any]:
        """XOR the upper half with the lower, then halve the lower half."""
        g, out = self.geometry, sent.data.copy()
        for start in range(0, sent.n_bytes - g.block_bytes + 1, g.block_bytes):
            low, size = 8 * start, 8 * g.block_bytes
            while size > 8 * g.element_bytes:
                half = low + size // 2
                out[half : low + size] ^= out[low:half]
                size //= 2
        return Bits(out, sent.flags, sent.extra), state


RULES: dict[str, Any] = {
    "base-xor": BaseXor,
    "base-xor-zdr": BaseXorZdr,
    "dbi-ac": DbiAc,
    "dbi-dc": DbiDc,
    "dbi-opt": DbiOptimal,
    "3-lwc": LimitedWeight,
    "raw": Raw,
    "scrambler": Scrambler,
    "transition": Transition,
    "universal-xor": UniversalXor,
}
