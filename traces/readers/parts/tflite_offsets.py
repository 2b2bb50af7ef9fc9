"""Offsets of tensors in an arena, put into a TensorFlow Lite file where its runtime for microcontrollers finds them.

Its offline planner reads a metadata entry `OfflineMemoryAllocation` (memory_management.md of that project): a buffer of
int32, the version 1, the number of the subgraph, the number of tensors, then the offset of each, -1 where it is to be
found at run time.

References in a flatbuffer point forward, so the new tables are put in front: a new root whose fields point to the lists
of the old one, and new lists of buffers and metadata with one entry more. The old bytes follow unchanged.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from traces.base.errors import InputError

NAME = b"OfflineMemoryAllocation"
VERSION = 1
_ALIGNMENT = 64  # of what comes in front, so that the old bytes keep their alignment
_FIELDS = 8  # of the table Model
_BUFFERS, _METADATA = 4, 6  # fields of it, in the order of the schema


def with_offsets(data: bytes, model: Any, offsets: Sequence[int], where: str) -> bytes:
    """Return the file with the offsets of all tensors of its first subgraph (-1: to be found at run time).

    model: the flatbuffer's root, whose lists have been checked. An entry of the same name is replaced.
    """
    table = model._tab
    fields: list[int | None] = []  # where each field of the root stands in the old bytes
    for k in range(_FIELDS):
        at = table.Offset(4 + 2 * k)
        fields.append(table.Pos + at if at else None)
    version = struct.unpack_from("<I", data, fields[0])[0] if fields[0] is not None else 0
    buffers = [_target(data, slot) for slot in _slots(data, fields[_BUFFERS])]
    entries = [_target(data, slot) for slot in _slots(data, fields[_METADATA])]
    kept = [target for i, target in enumerate(entries) if model.Metadata(i).Name() != NAME]
    for i in range(model.BuffersLength()):
        if model.Buffers(i).Offset() > 1:
            raise InputError(f"{where}: its data lie behind the tables, as in files above 2 GB: it cannot be extended")
    plan = np.array([VERSION, 0, len(offsets), *offsets], np.int64)
    if plan.max(initial=0) >= 2**31:
        raise InputError(f"{where}: offsets of 2^31 bytes and more have no place in the file")
    front = _Front()
    old: list[tuple[int, int]] = []  # (place of a reference in front, its target in the old bytes)
    root = front.reserve(8)  # where the root is, then the mark of the format
    front.bytes[4:8] = data[4:8]
    present = [k for k in range(_FIELDS) if fields[k] is not None or k in (_BUFFERS, _METADATA)]
    vtable = front.vtable(present, _FIELDS)
    main = front.table(vtable, len(present))
    struct.pack_into("<I", front.bytes, root, main - root)
    places = {k: main + 4 * (i + 1) for i, k in enumerate(present)}
    for k in present:
        if k == 0:
            struct.pack_into("<I", front.bytes, places[k], version)
        elif k not in (_BUFFERS, _METADATA):
            at = fields[k]
            assert at is not None
            old.append((places[k], _target(data, at)))
    lists = {}
    for k, targets in ((_BUFFERS, buffers), (_METADATA, kept)):
        start = front.reserve(4 + 4 * (len(targets) + 1))
        struct.pack_into("<I", front.bytes, start, len(targets) + 1)
        struct.pack_into("<I", front.bytes, places[k], start - places[k])
        old += [(start + 4 + 4 * i, target) for i, target in enumerate(targets)]
        lists[k] = start + 4 + 4 * len(targets)
    holder = front.table(front.vtable([0], 1), 1)  # the buffer: its bytes
    struct.pack_into("<I", front.bytes, lists[_BUFFERS], holder - lists[_BUFFERS])
    entry = front.table(front.vtable([0, 1], 2), 2)  # the entry: its name, the number of the buffer
    struct.pack_into("<I", front.bytes, lists[_METADATA], entry - lists[_METADATA])
    struct.pack_into("<I", front.bytes, entry + 8, len(buffers))
    name = front.vector(NAME + b"\0", len(NAME))
    struct.pack_into("<I", front.bytes, entry + 4, name - (entry + 4))
    raw = plan.astype("<i4").tobytes()
    front.pad(16, 4)  # the numbers themselves start at a multiple of 16
    content = front.vector(raw, len(raw))
    struct.pack_into("<I", front.bytes, holder + 4, content - (holder + 4))
    front.pad(_ALIGNMENT)
    for place, target in old:
        struct.pack_into("<I", front.bytes, place, len(front.bytes) + target - place)
    return bytes(front.bytes) + data


def offsets_of(model: Any) -> list[int] | None:
    """Return the offsets that a file holds for its first subgraph, None where it holds none."""
    for i in range(model.MetadataLength()):
        if model.Metadata(i).Name() == NAME:
            raw = model.Buffers(model.Metadata(i).Buffer()).DataAsNumpy()
            words = np.frombuffer(bytes(raw), "<i4").tolist()
            if words[1] == 0:
                return words[3 : 3 + words[2]]
    return None


def _slots(data: bytes, field: int | None) -> list[int]:
    """Places of a vector's elements."""
    if field is None:
        return []
    start = _target(data, field)
    return [start + 4 + 4 * i for i in range(struct.unpack_from("<I", data, start)[0])]


def _target(data: bytes, place: int) -> int:
    target: int = place + struct.unpack_from("<I", data, place)[0]
    return target


class _Front:
    """Bytes that grow; places are positions in them."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def pad(self, alignment: int, remainder: int = 0) -> None:
        """Fill up so that the length, less `remainder` ahead, is a multiple of `alignment`."""
        self.bytes += bytes(-(len(self.bytes) + remainder) % alignment)

    def reserve(self, size: int) -> int:
        self.pad(4)
        self.bytes += bytes(size)
        return len(self.bytes) - size

    def vtable(self, present: Sequence[int], fields: int) -> int:
        """A vtable of a table whose fields are 4 bytes each, in this order."""
        at = self.reserve(0)
        places = [4 * (present.index(k) + 1) if k in present else 0 for k in range(fields)]
        self.bytes += struct.pack(f"<{2 + fields}H", 4 + 2 * fields, 4 * (len(present) + 1), *places)
        return at

    def table(self, vtable: int, fields: int) -> int:
        at = self.reserve(4 * (fields + 1))
        struct.pack_into("<i", self.bytes, at, at - vtable)
        return at

    def vector(self, raw: bytes, count: int) -> int:
        self.pad(4)
        at = len(self.bytes)
        self.bytes += struct.pack("<I", count) + raw
        return at
