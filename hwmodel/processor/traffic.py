"""What an order makes the first two caches move: rows of values, and the stream, in set-associative LRU caches.

All lines of a row are used together and rows begin at multiples of their pitch, so a row stands for its lines: where a
pitch is a power of two, a cache of rows with fewer sets counts exactly what the cache of lines would. The trace is the
kernel's: a target is loaded when a run goes on with it and stored at the run's end; sums stay in registers between. Two
runs that make a pair load both targets, then what they share, once; then comes the rest of one, and of the other. The
stream's tables are read in pieces of a row's size, each when the run that it begins in begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hwmodel.caches.cache import CacheLevel
from hwmodel.caches.spec import CacheSpec
from hwmodel.processor.work import RUN_BYTES, OrderedWork, narrow_places, spread

LINE_BYTES = 64
Caches = tuple[tuple[int, int], tuple[int, int]]
"""(bytes, ways) of the first two levels."""
TABLE_ALIGNMENT = 2 << 20  # the arena and the table of inputs begin at huge pages
STREAM_AT = 1 << 40  # beyond all rows


@dataclass(frozen=True)
class LineTraffic:
    """Lines of 64 bytes in one pass of many: filled into each level from beyond it, and written back from it.

    Fills are of rows; l1_stream and l2_stream: of the stream. l1_stores: those of the first level that a
    store caused.
    """

    l1_fills: int
    l1_written: int
    l2_fills: int
    l2_written: int
    l1_stream: int
    l2_stream: int
    l1_stores: int


def row_bytes(lanes: int) -> int:
    """Pitch of a row: a multiple of a line."""
    return -(-lanes // 16) * LINE_BYTES


def value_accesses(
    work: OrderedWork, pitch: int, pairs: bool = False
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """Return op (0 load, 1 store) and address of every access to a row in one pass. pairs: as kernels that take runs
    in pairs."""
    row, n_rows = work.rows(keep_all=False)
    row = spread(row)
    inputs = work.network.inputs[work.fed_inputs]
    table = -(-(n_rows + 16) * pitch // TABLE_ALIGNMENT) * TABLE_ALIGNMENT
    starts, lengths = work.starts[:-1], np.diff(work.starts)
    targets = work.targets[starts]
    first = first_runs(targets)
    ends = np.cumsum(lengths + 1 + ~first)  # of each run: its target's load, its sources, its target's store
    address = np.empty(int(ends[-1]), np.int64)
    op = np.zeros(len(address), np.uint8)
    address[ends - 1], op[ends - 1] = row[targets], 1
    begins = ends - 1 - lengths  # of the sources
    address[begins[~first] - 1] = row[targets[~first]]
    outside = np.zeros(work.network.n_neurons, np.int64)
    outside[inputs] = spread(np.arange(len(inputs)))
    places = np.repeat(begins - starts, lengths) + np.arange(len(work.sources))
    from_table = np.repeat(work.outside, lengths)
    address[places] = np.where(from_table, outside[work.sources], row[work.sources])
    address *= pitch
    address[places[from_table]] += table
    if pairs and work.shared.any():
        order = _pairwise(work.shared, begins, ends)
        op, address = op[order], address[order]
    return op, address.astype(np.uint64)


def _pairwise(
    shared: npt.NDArray[np.int64], begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return which accesses a kernel makes that takes runs in pairs, in its order. begins, ends: of each run, its first
    source and the place behind its store."""
    run = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    second = np.zeros(len(ends), bool)
    second[1:] = shared[:-1] > 0
    quads = shared + np.concatenate(([0], shared[:-1]))
    place = np.arange(len(run)) - begins[run]  # below 0: the target's load
    alike = (place >= 0) & (place < 4 * quads[run])
    # 0, 1: loads of the two targets; 2: what is shared; 3: the rest of the first and its store; 4: of the second
    step = np.where(place < 0, second[run], np.where(alike, 2, 3 + second[run]))
    key = 8 * (run - second[run]) + step
    order = np.argsort(key, kind="stable")
    return order[~(alike & second[run])[order]]


def first_runs(targets: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return bool[R]: runs that are the first of their target."""
    first = np.zeros(len(targets), bool)
    first[np.unique(targets, return_index=True)[1]] = True
    return first


def stream_pieces(work: OrderedWork, pitch: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return (run, address) of every piece of `pitch` bytes of a float32 stream, table by table."""
    lengths = np.diff(work.starts)
    quads = -(-lengths // 4)
    rows = max(work.rows(keep_all=False)[1], len(work.fed_inputs))
    place_bytes = 2 if narrow_places(-(-rows // 16) * 16, pitch) else 4
    runs, addresses, base = [], [], STREAM_AT
    for bytes_of in (np.full(len(lengths), RUN_BYTES), quads * 4 * place_bytes, quads * 16):
        ends = np.cumsum(bytes_of)
        pieces = np.arange(-(-int(ends[-1]) // pitch)) * pitch
        runs.append(np.searchsorted(ends, pieces, side="right"))
        addresses.append(base + pieces)
        base += (len(pieces) + 1) * pitch
    return np.concatenate(runs), np.concatenate(addresses).astype(np.uint64)


def accesses(
    work: OrderedWork, pitch: int, pairs: bool = False
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """Return op and address of every access of one pass, to `pitch` bytes each: rows, and pieces of the stream."""
    op, address = value_accesses(work, pitch, pairs)
    run, piece = stream_pieces(work, pitch)
    stored = np.flatnonzero(op)  # a run ends with its store
    where = np.concatenate(([0], stored[:-1] + 1))[run]
    return np.insert(op, where, 0), np.insert(address, where, piece)


def traffic(work: OrderedWork, lanes: int, caches: Caches, pairs: bool = False) -> LineTraffic:
    """Return what one pass of many moves. O(W)."""
    pitch = row_bytes(lanes)
    op, address = accesses(work, pitch, pairs)
    levels = [CacheLevel(_spec(size, ways, pitch)) for size, ways in caches]
    for _ in range(2):  # the second pass finds what the first one left
        before = [_moved(level) for level in levels]
        wanted = levels[0].access(op, address, np.full(len(op), pitch))
        beyond = levels[1].access(wanted.is_write, wanted.address, wanted.size)
    (l1, l1_written, l1_stores), (l2, l2_written, _) = (
        np.subtract(_moved(level), old).tolist() for level, old in zip(levels, before, strict=True)
    )
    l1_stream, l2_stream = (
        int(moved.size[moved.address >= STREAM_AT].sum(dtype=np.int64)) // LINE_BYTES for moved in (wanted, beyond)
    )
    return LineTraffic(l1 - l1_stream, l1_written, l2 - l2_stream, l2_written, l1_stream, l2_stream, l1_stores)


def _moved(level: CacheLevel) -> tuple[int, int, int]:
    lines = level.spec.line_bytes // LINE_BYTES
    counts = level.counts
    return counts.misses * lines, counts.writebacks * lines, counts.store_line_misses * lines


def _spec(size: int, ways: int, pitch: int) -> CacheSpec:
    """A cache of rows, or where a pitch is no power of two or fills a way of lines, of lines."""
    line = pitch if pitch & (pitch - 1) == 0 and pitch <= 4096 and pitch * ways <= size else LINE_BYTES
    sets = 1 << ((size // (line * ways)).bit_length() - 1)  # of a cache that does not come out: the next smaller one
    return CacheSpec(sets * line * ways, line, ways)
