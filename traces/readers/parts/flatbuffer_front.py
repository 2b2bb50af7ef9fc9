"""New tables in front of a flatbuffer's old bytes.

References in a flatbuffer point forward, so whatever is new stands in front and points to what is kept; the old bytes
follow unchanged. Scalars take 4 bytes each, which little-endian readers of smaller ones accept.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_ALIGNMENT = 64  # of what comes in front, so that the old bytes keep theirs


@dataclass(frozen=True)
class Old:
    """What stands at a place of the old bytes."""

    at: int


@dataclass(frozen=True, eq=False)
class FlatTable:
    """Number of a field -> a scalar, or what it refers to."""

    fields: Mapping[int, int | Part]


@dataclass(frozen=True, eq=False)
class Vector:
    """References."""

    items: Sequence[Part]


@dataclass(frozen=True, eq=False)
class Numbers:
    """A vector of numbers, its first one aligned to `alignment` bytes; of text (uint8), a zero follows."""

    values: npt.NDArray[np.generic]
    alignment: int = 4
    text: bool = False


Part = Old | FlatTable | Vector | Numbers


def text(value: str) -> Numbers:
    """Return a string."""
    return Numbers(np.frombuffer(value.encode(), np.uint8), text=True)


def integers(values: Sequence[int]) -> Numbers:
    """Return a vector of int32."""
    return Numbers(np.array(values, "<i4"))


def in_front(root: FlatTable, data: bytes) -> bytes:
    """Return a flatbuffer with a new root, which keeps the mark of the format of the old one."""
    front = _Front()
    front.bytes += bytes(4) + data[4:8]
    front.pending.append((0, root))
    done = 0
    while done < len(front.pending):  # parts come behind what refers to them
        place, part = front.pending[done]
        done += 1
        if not isinstance(part, Old):
            struct.pack_into("<I", front.bytes, place, front.new(part) - place)
    front.pad(_ALIGNMENT)
    for place, part in front.pending:
        if isinstance(part, Old):
            struct.pack_into("<I", front.bytes, place, len(front.bytes) + part.at - place)
    return bytes(front.bytes) + data


class _Front:
    """Bytes that grow; places are positions in them. pending: (place of a reference, what it refers to)."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.pending: list[tuple[int, Part]] = []

    def pad(self, alignment: int, ahead: int = 0) -> None:
        """Fill up so that the length and `ahead` bytes more are a multiple of `alignment`."""
        self.bytes += bytes(-(len(self.bytes) + ahead) % alignment)

    def new(self, part: FlatTable | Vector | Numbers) -> int:
        self.pad(4)
        if isinstance(part, FlatTable):
            return self._table(part)
        if isinstance(part, Vector):
            at = len(self.bytes)
            self.bytes += struct.pack("<I", len(part.items)) + bytes(4 * len(part.items))
            self.pending += [(at + 4 + 4 * i, item) for i, item in enumerate(part.items)]
            return at
        self.pad(part.alignment, 4)
        at = len(self.bytes)
        self.bytes += struct.pack("<I", part.values.size) + part.values.tobytes() + bytes(part.text)
        return at

    def _table(self, part: FlatTable) -> int:
        present = sorted(part.fields)
        n_fields = present[-1] + 1 if present else 0
        places = [4 * (present.index(k) + 1) if k in part.fields else 0 for k in range(n_fields)]
        vtable = len(self.bytes)
        self.bytes += struct.pack(f"<{2 + n_fields}H", 4 + 2 * n_fields, 4 * (len(present) + 1), *places)
        self.pad(4)
        at = len(self.bytes)
        self.bytes += struct.pack("<i", at - vtable) + bytes(4 * len(present))
        for i, k in enumerate(present):
            value = part.fields[k]
            if isinstance(value, int):
                struct.pack_into("<i" if value < 0 else "<I", self.bytes, at + 4 * (i + 1), value)
            else:
                self.pending.append((at + 4 * (i + 1), value))
        return at
