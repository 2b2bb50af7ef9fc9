"""The encoders once more, bit by bit with bitarray: slow, obvious, and written against the rules, not the kernels."""

from __future__ import annotations

from bitarray import bitarray
from bitarray.util import count_xor, zeros


def bits_of(byte: int) -> bitarray:
    bits = bitarray(endian="little")
    bits.frombytes(bytes([byte]))
    return bits


def elements(data: bytes, element_bytes: int, block_bytes: int) -> list[list[bytes]]:
    """Blocks of elements; a broken last element is kept as it is."""
    blocks = [data[i : i + block_bytes] for i in range(0, len(data), block_bytes)]
    return [[block[i : i + element_bytes] for i in range(0, len(block), element_bytes)] for block in blocks]


def xor(a: bytes, b: bytes) -> bytes:
    left, right = bitarray(endian="little"), bitarray(endian="little")
    left.frombytes(a)
    right.frombytes(b)
    return (left ^ right).tobytes()


def base_xor(data: bytes, element_bytes: int, block_bytes: int, zdr: bool = False) -> bytes:
    constant = (1 << (8 * element_bytes - 2)).to_bytes(element_bytes, "little")
    out = b""
    for block in elements(data, element_bytes, block_bytes):
        for k, element in enumerate(block):
            if k == 0 or len(element) < element_bytes:
                out += element
            elif zdr and not any(element):
                out += constant
            elif zdr and element == xor(block[k - 1], constant):
                out += block[k - 1]
            else:
                out += xor(element, block[k - 1])
    return out


def universal_xor(data: bytes, element_bytes: int, block_bytes: int) -> bytes:
    out = b""
    for start in range(0, len(data), block_bytes):
        block = data[start : start + block_bytes]
        if len(block) == block_bytes:
            size = block_bytes
            while size > element_bytes:
                half = size // 2
                block = block[:half] + xor(block[half:size], block[:half]) + block[size:]
                size = half
        out += block
    return out


def dbi_dc(data: bytes) -> tuple[bytes, bitarray]:
    flags = bitarray([bits_of(x).count() >= 5 for x in data], endian="little")
    return bytes(x ^ 255 if flag else x for x, flag in zip(data, flags, strict=True)), flags


def dbi_ac(data: bytes, bus_bytes: int) -> tuple[bytes, bitarray]:
    sent, flags = [], bitarray(endian="little")
    for i, x in enumerate(data):
        before = sent[i - bus_bytes] if i >= bus_bytes else 0
        flags.append(count_xor(bits_of(x), bits_of(before)) > 4)
        sent.append(x ^ 255 if flags[-1] else x)
    return bytes(sent), flags


def transition(data: bytes, bus_bytes: int) -> bytes:
    sent: list[int] = []
    for i, x in enumerate(data):
        sent.append(x ^ (sent[i - bus_bytes] if i >= bus_bytes else 0))
    return bytes(sent)


def encode(data: bytes, encoder: str, element_bytes: int, bus_bytes: int, block_bytes: int) -> tuple[bytes, bitarray]:
    flags = zeros(len(data), endian="little")
    for stage in encoder.split("+"):
        if stage in ("base-xor", "base-xor-zdr"):
            data = base_xor(data, element_bytes, block_bytes, zdr=stage.endswith("zdr"))
        elif stage == "universal-xor":
            data = universal_xor(data, element_bytes, block_bytes)
        elif stage == "dbi-dc":
            data, flags = dbi_dc(data)
        elif stage == "dbi-ac":
            data, flags = dbi_ac(data, bus_bytes)
        elif stage == "transition":
            data = transition(data, bus_bytes)
            flags = bitarray(
                [b & 1 for b in transition(bytes(flags.tolist()), bus_bytes)], endian="little"
            )  # the flag wires signal by transitions too
        else:
            assert stage == "raw"
    return data, flags


def wire_counts(data: bytes, flags: bitarray, bus_bytes: int, idle_level: int = 0) -> tuple[list[int], ...]:
    """Ones, toggles and rising edges per wire: 8 * bus_bytes data wires, then one flag wire per lane."""
    ones, toggles, rising = ([0] * (9 * bus_bytes) for _ in range(3))
    level = [idle_level] * (9 * bus_bytes)
    for i, byte in enumerate(data):
        lane = i % bus_bytes
        sent = [(8 * lane + k, bit) for k, bit in enumerate(bits_of(byte))] + [(8 * bus_bytes + lane, flags[i])]
        for wire, bit in sent:
            ones[wire] += bit
            toggles[wire] += bit != level[wire]
            rising[wire] += bit > level[wire]
            level[wire] = bit
    return ones, toggles, rising
