"""Memory traces: accesses with address, size, kind, stream and real bytes, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.trace.accesses as kernel
from traces.base.memory import claim
from traces.base.reprs import OneLineRepr

STREAMS = ("values", "ids", "row_pointers", "inputs", "partial_sums", "outputs", "tuples", "external", "biases",
           "instructions")  # fmt: skip
"""What an access is for; ``Chunk.stream`` holds indices into this tuple."""

LOAD, STORE = 0, 1


def by_stream(**columns: Any) -> dict[str, dict[str, int]]:
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    return {stream: dict(zip(columns, row, strict=True)) for stream, row in zip(STREAMS, rows, strict=True) if any(row)}


@dataclass(frozen=True, eq=False)
class Chunk:
    """n consecutive accesses, in program order.

    address: uint64[n] byte address. size: uint8[n] bytes (uint16 where rows of lanes or cache lines are longer).
    op: uint8[n], 0 load, 1 store. stream: uint8[n], see STREAMS.
    payload: uint8 bytes of all accesses one after another, those of access i at
        ``payload[payload_offset[i]:payload_offset[i + 1]]`` (int64[n + 1]): the bytes read by a load, written by a
        store. Both are None in an address-only trace.
    cycle: int64[n] or None, when a recorded request arrived, in clocks of its memory; traces built here have none.
    work: float64[n] or None, the cycles of an engine before the operation that this access belongs to, or before this
        transfer. Not kept in files.
    """

    address: npt.NDArray[np.uint64]
    size: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
    op: npt.NDArray[np.uint8]
    stream: npt.NDArray[np.uint8]
    payload_offset: npt.NDArray[np.int64] | None = None
    payload: npt.NDArray[np.uint8] | None = None
    cycle: npt.NDArray[np.int64] | None = None
    work: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.address)

    def part(self, start: int, stop: int) -> Chunk:
        """Return accesses [start, stop), which share memory with these; their payload is that of all."""
        part = slice(start, stop)
        offset = None if self.payload_offset is None else self.payload_offset[start : stop + 1]
        cycle = None if self.cycle is None else self.cycle[part]
        work = None if self.work is None else self.work[part]
        columns = self.address[part], self.size[part], self.op[part], self.stream[part]
        return Chunk(*columns, offset, self.payload, cycle, work)


@dataclass(frozen=True)
class Region:
    """A named part of the footprint: one array of the layout. `base_address` and `n_bytes` in bytes."""

    name: str
    base_address: int
    n_bytes: int


@dataclass(frozen=True, eq=False)
class Memory:
    """The footprint of a trace: bytes ``[base_address, base_address + total_bytes)``.

    image: uint8[total_bytes], the content before the first access, or None in an address-only trace.
    """

    base_address: int
    total_bytes: int
    image: npt.NDArray[np.uint8] | None
    regions: tuple[Region, ...] = ()

    def region(self, name: str) -> Region:
        for region in self.regions:
            if region.name == name:
                return region
        raise KeyError(name)


@dataclass(frozen=True, eq=False, repr=False)
class Trace(OneLineRepr):
    """A memory trace that can be walked any number of times: ``for chunk in trace``.

    make_chunks: returns a fresh iterator over the chunks. memory: footprint and initial content.
    n_accesses: length, or None where it is known only after a walk.
    description: what made the trace (layout, sample, sizes), for records; JSON values only.
    plan: the steps the trace was built from (a traces.trace.plan.Plan), None for a trace read from a file. A
        scratchpad needs them: which rows it moves depends on the order of work, not on the accesses.
    multiply_adds: of all lanes and passes, padding included; 0 for a trace that another program recorded.
    waits: int64[m, 3] or None, of an engine among several: before its access (ascending), another engine must have made
        so many of its own.
    """

    make_chunks: Callable[[], Iterator[Chunk]]
    memory: Memory
    n_accesses: int | None = None
    description: Mapping[str, Any] = field(default_factory=dict)
    plan: Any = None
    multiply_adds: int = 0
    waits: npt.NDArray[np.int64] | None = None

    def _repr_fields(self) -> dict[str, object]:
        layout = self.description.get("layout")
        return {
            "accesses": self.n_accesses, "bytes": self.memory.total_bytes,
            "layout": layout.get("kind") if isinstance(layout, Mapping) else layout,
            "regions": ", ".join(region.name for region in self.memory.regions) or None,
            "data": "yes" if self.has_data else "addresses alone",
        }  # fmt: skip

    def __iter__(self) -> Iterator[Chunk]:
        return self.make_chunks()

    @property
    def has_data(self) -> bool:
        """Whether the accesses carry their bytes; an address-only trace has no wire counts."""
        return self.memory.image is not None

    @classmethod
    def from_chunks(cls, chunks: Iterable[Chunk], memory: Memory, **description: Any) -> Trace:
        held = tuple(chunks)
        return cls(lambda: iter(held), memory, sum(map(len, held)), description)


SLICE_ACCESSES = 2**17  # accesses in flight: bounds memory (64-byte lines: 20 MB) and answers Ctrl-C
SLICE_BYTES = 64 * SLICE_ACCESSES  # that they touch: an access of many bytes is cut into many lines
_LOOKUP_BYTES = 32  # of memory for a line look-up that is held, and up to twice that while its next use is found


def slices(trace: Trace, accesses: int = SLICE_ACCESSES) -> Iterator[Chunk]:
    """Yield the trace in chunks of at most `accesses` that touch SLICE_BYTES at most; they share its memory."""
    for chunk in trace:
        widest = int(chunk.size.max(initial=1))
        most = min(accesses, max(SLICE_BYTES // widest, 1))
        if len(chunk) <= most:
            yield chunk
            continue
        for start in range(0, len(chunk), most):
            yield chunk.part(start, start + most)


def claim_lookups(n: int) -> None:
    """Raise InputError unless `n` line look-ups may be held."""
    claim(_LOOKUP_BYTES * n, "the trace", f"{n:,} line look-ups held at once")


DENSE = 4  # lines of the table for each look-up, at most
NEVER = np.iinfo(np.int64).max  # "not touched again"

ORACLE_GENERAL = np.dtype([("clock", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])
"""One record of libCacheSim's oracleGeneral format; `next` is -1 where the object is not asked for again."""


def touched_lines(
    address: npt.NDArray[np.uint64], size: npt.NDArray[np.integer], line_bytes: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return (line number uint64[m], access int64[m]): the lines each access touches, ascending within an access.

    address, size: [n] bytes, sizes at least 1, ends at most 2^63. line_bytes: any whole number of bytes.
    """
    sizes = np.asarray(size)
    kept = sizes.dtype if sizes.dtype in (np.uint8, np.uint16) else np.int64
    addresses = np.ascontiguousarray(address, np.uint64)
    return kernel.touched_blocks(addresses, np.ascontiguousarray(sizes, kept), line_bytes)


def next_uses(lines: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return int64[n]: for each position the next one with the same line, NEVER for the last.

    O(n) where the lines lie within a few times as many as there are look-ups, O(n log n) elsewhere.
    """
    if not len(lines):
        return np.zeros(0, np.int64)
    first, span = lines.min(), int(lines.max() - lines.min()) + 1
    if span <= DENSE * len(lines):
        return kernel.next_in_table(lines, first, np.full(span, NEVER, np.int64), NEVER)
    order = np.argsort(lines, kind="stable")
    upcoming = np.full(len(lines), NEVER, np.int64)
    same = lines[order[1:]] == lines[order[:-1]]
    upcoming[order[:-1][same]] = order[1:][same]
    return upcoming
