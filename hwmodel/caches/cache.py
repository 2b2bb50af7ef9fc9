"""Line caches: set-associative levels whose state is kept between chunks, and the counts they make.

An access that touches k lines makes k look-ups in ascending order. A miss allocates the line (stores
only with `allocate`), clean, empty ways first; a store makes it dirty (write-back) or goes on to the next level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.caches.spec import CacheSpec
from traces.base.checks import whole_numbers
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.trace.chunks import STREAMS, next_uses, touched_lines

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CacheCounts:
    """What one level did. `loads` and `stores` count accesses; hits and misses count line look-ups.

    evictions: valid lines displaced; writebacks: those of them that were dirty (the final flush is not among them).
    fills: lines fetched.
    through_writes: stores passed on (write-through, or misses that do not allocate).
    resident_at_end, dirty_at_end: lines left in the cache.
    bypassing: loads that passed by, which are not among `loads`; bypassing_lines: lines they asked the next level for.
    """

    loads: int
    stores: int
    load_line_hits: int
    load_line_misses: int
    store_line_hits: int
    store_line_misses: int
    evictions: int
    writebacks: int
    resident_at_end: int
    dirty_at_end: int
    fills: int = 0
    through_writes: int = 0
    flushed: int = 0
    bypassing: int = 0
    bypassing_lines: int = 0

    @property
    def lookups(self) -> int:
        return self.hits + self.misses

    @property
    def hits(self) -> int:
        return self.load_line_hits + self.store_line_hits

    @property
    def misses(self) -> int:
        return self.load_line_misses + self.store_line_misses


@dataclass(frozen=True, eq=False)
class LineTransactions:
    """What a level asks of the next one, in program order: a fill comes after the write-back it causes.

    address: uint64[m] of the first byte; whole lines, but for stores that pass through, which keep their own bytes.
    size: uint16[m] bytes. is_write: uint8[m]. access_index: int64[m], the access (in the chunk given) that caused it,
    -1 in a flush.
    """

    address: npt.NDArray[np.uint64]
    size: npt.NDArray[np.uint16]
    is_write: npt.NDArray[np.uint8]
    access_index: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.address)


_LINE_BYTES = 16  # of memory for a line, with what its policy keeps


class CacheLevel:
    """One cache level; its state and counts go on from chunk to chunk.

    A policy may need the future: call `set_future` with the line look-ups of the whole run first.
    """

    def __init__(self, spec: CacheSpec) -> None:
        from cython_ext.cache.level import CacheKernel

        claim(_LINE_BYTES * spec.sets * spec.ways, f"a cache of {spec.size_bytes} bytes", "its table of lines")
        self.spec = spec
        shift = spec.line_bytes.bit_length() - 1
        policy = spec.policy_type
        try:
            self._kernel: Any = CacheKernel(
                spec.sets,
                spec.ways,
                shift,
                policy(spec.sets, spec.ways, spec.seed) if policy.kernel is None else policy.kernel,
                policy.needs_future,
                spec.write == "through",
                spec.allocate,
                spec.seed,
            )
        except MemoryError as error:
            raise InputError(f"a cache of {spec.size_bytes} bytes does not fit in this machine's memory") from error
        except ValueError as error:  # a policy of somebody else's that cannot be one
            raise InputError(f"cache policy {spec.policy!r}: {error}") from error
        self._flushed = 0
        self._passing = np.array([name in spec.bypass for name in STREAMS])
        self._buffered = np.full(len(STREAMS), -1, np.int64)  # number of the line that a stream's buffer holds
        self._bypassing = self._bypassing_lines = 0

    def access(
        self, op: npt.ArrayLike, address: npt.ArrayLike, size: npt.ArrayLike, stream: npt.ArrayLike | None = None
    ) -> LineTransactions:
        """Make the accesses (op 0 load, 1 store; addresses and sizes in bytes) and return the line transactions.

        stream: uint8[n], by which accesses bypass the level (default: none does).
        """
        if self.spec.bypass and stream is not None:
            return self._access_some(np.asarray(op), np.asarray(address), np.asarray(size), np.asarray(stream))
        return LineTransactions(*self._accessed(op, address, size, True))

    def _accessed(self, op: npt.ArrayLike, address: npt.ArrayLike, size: npt.ArrayLike, transactions: bool) -> Any:
        """Make the accesses by the kernel, which looks at each before any is made; say which one it does not take."""
        arrays = self._arrays(op, address, size)
        try:
            return self._kernel.access(*arrays, transactions)
        except ValueError:
            self._refuse_bad(*arrays)
            raise

    def _access_some(self, op: Array, address: Array, size: Array, stream: Array) -> LineTransactions:
        """Do as `access` for the streams that do not pass by, and ask for the lines of those that do."""
        passes = self._passing[stream]
        own, passing = np.flatnonzero(~passes), np.flatnonzero(passes)
        out = LineTransactions(*self._accessed(op[own], address[own], size[own], True))
        if op[passing].any():
            names = ", ".join(self.spec.bypass)
            raise InputError(f"a store of a stream that bypasses a cache ({names}): loads alone pass by")
        line_bytes = self.spec.line_bytes
        lines, access = touched_lines(np.ascontiguousarray(address[passing]), size[passing], line_bytes)
        of, new = stream[passing][access], np.zeros(len(lines), bool)
        for number in np.flatnonzero(self._passing):
            mine = np.flatnonzero(of == number)
            if len(mine):
                held = lines[mine].astype(np.int64)
                new[mine] = np.diff(held, prepend=self._buffered[number]) != 0
                self._buffered[number] = held[-1]
        self._bypassing += len(passing)
        self._bypassing_lines += int(new.sum())
        n_fills = int(new.sum())
        index = np.concatenate((own[out.access_index], passing[access[new]]))
        order = np.argsort(index, kind="stable")
        return LineTransactions(
            np.concatenate((out.address, lines[new] * np.uint64(line_bytes)))[order],
            np.concatenate((out.size, np.full(n_fills, line_bytes, np.uint16)))[order],
            np.concatenate((out.is_write, np.zeros(n_fills, np.uint8)))[order],
            index[order],
        )

    def access_counting(
        self, op: npt.ArrayLike, address: npt.ArrayLike, size: npt.ArrayLike
    ) -> tuple[LineTransactions, npt.NDArray[np.uint8]]:
        """Do as `access`; return the transactions, and uint8 for each look-up: whether it missed."""
        arrays = self._checked(op, address, size)
        missed = np.zeros(len(touched_lines(*arrays[1:], self.spec.line_bytes)[0]), np.uint8)
        self._kernel.note_misses(missed)
        return LineTransactions(*self._kernel.access(*arrays, True)), missed

    def count(self, op: npt.ArrayLike, address: npt.ArrayLike, size: npt.ArrayLike) -> None:
        """Make the accesses for their counts only."""
        self._accessed(op, address, size, False)

    def lines(
        self, address: npt.ArrayLike, size: npt.ArrayLike, stream: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.uint64]:
        """Return uint64: the line number of each look-up of these accesses, without making them."""
        if self.spec.bypass and stream is not None:
            own = ~self._passing[np.asarray(stream)]
            address, size = np.asarray(address)[own], np.asarray(size)[own]
        _, where, sizes = self._checked(np.zeros(np.shape(address), np.uint8), address, size)
        return touched_lines(where, sizes, self.spec.line_bytes)[0]

    def set_future(self, lines: npt.NDArray[np.uint64]) -> None:
        """Give a policy that needs the future the line number of every look-up of the run (uint64), in order."""
        self._kernel.set_future(next_uses(lines))

    def flush(self) -> LineTransactions:
        """Write every dirty line back, by ascending address; they stay resident and are clean. Counted as `flushed`."""
        lines, dirty = self._kernel.resident()
        address = lines[dirty] * np.uint64(self.spec.line_bytes)
        self._kernel.clean()
        self._flushed += len(address)
        return LineTransactions(
            address,
            np.full(len(address), self.spec.line_bytes, np.uint16),
            np.ones(len(address), np.uint8),
            np.full(len(address), -1, np.int64),
        )

    @property
    def counts(self) -> CacheCounts:
        k = self._kernel
        resident, dirty = k.occupancy()
        counts = CacheCounts(
            loads=k.loads,
            stores=k.stores,
            load_line_hits=k.load_lookups - k.load_misses,
            load_line_misses=k.load_misses,
            store_line_hits=k.store_lookups - k.store_misses,
            store_line_misses=k.store_misses,
            evictions=k.evictions,
            writebacks=k.writebacks,
            resident_at_end=resident,
            dirty_at_end=dirty,
            fills=k.fills,
            through_writes=k.through_writes,
            flushed=self._flushed,
            bypassing=self._bypassing,
            bypassing_lines=self._bypassing_lines,
        )
        assert counts.fills == counts.evictions + counts.resident_at_end, "a line was lost or made up"
        demand = counts.misses if self.spec.allocate else counts.load_line_misses
        assert counts.fills == demand, "fills are not the misses that allocate"
        return counts

    def _checked(self, op: npt.ArrayLike, address: npt.ArrayLike, size: npt.ArrayLike) -> tuple[Any, Any, Any]:
        """Raise InputError for accesses that no cache takes: of no byte, or not ending below 2^63."""
        arrays = self._arrays(op, address, size)
        self._refuse_bad(*arrays)
        return arrays

    def _arrays(self, op: npt.ArrayLike, address: npt.ArrayLike, size: npt.ArrayLike) -> tuple[Any, Any, Any]:
        ops = whole_numbers(op, "op", np.uint8, item="access")
        where = whole_numbers(address, "address", np.uint64, item="access")
        sizes = np.asarray(size)
        sizes = whole_numbers(size, "size", np.uint8 if sizes.dtype == np.uint8 else np.uint16, item="access")
        if not len(ops) == len(where) == len(sizes):
            raise InputError(f"op, address and size differ in length: {len(ops)}, {len(where)}, {len(sizes)}")
        return ops, where, sizes

    def _refuse_bad(self, ops: Array, where: Array, sizes: Array) -> None:
        from cython_ext.cache.level import first_bad_access

        # With one-byte lines the last line number would be the mark of an empty way.
        limit = 2**63 - (self.spec.line_bytes == 1)
        bad = first_bad_access(where, sizes, ops, limit)
        if bad >= 0:
            if ops[bad] > 1:
                raise InputError(f"access {bad}: op is {ops[bad]}, expected 0 (load) or 1 (store)")
            what = f"{sizes[bad]} bytes at address {where[bad]:#x}"
            reason = "it touches no byte" if sizes[bad] == 0 else "it does not end below 2^63"
            raise InputError(f"access {bad} ({what}): {reason}")


def simulate_cache(
    op: npt.ArrayLike,
    address: npt.ArrayLike,
    size: npt.ArrayLike,
    *,
    size_bytes: int,
    line_bytes: int,
    ways: int,
    policy: str = "lru",
    write: str = "back",
    allocate: bool = True,
    seed: int = 0,
) -> CacheCounts:
    """Play accesses through one cache level and return its counts.

    op: [n] 0 load, 1 store. address, size: [n] in bytes; addresses up to 2^63, sizes up to 65535. One op or size
        serves all accesses.
    size_bytes = sets x ways x line_bytes.
    policy: a name of CACHE_POLICIES (lru, fifo, rr, random, plru, min ...). write: 'back' or 'through'.
    allocate: store misses fill. Nothing is flushed at the end.
    Raises InputError for a geometry, name or access that cannot be used.
    """
    spec = CacheSpec(
        size_bytes, line_bytes, ways, policy.lower() if isinstance(policy, str) else policy, write, allocate, seed
    )
    level = CacheLevel(spec)
    n = np.shape(address)
    op, size = (np.broadcast_to(values, n) if np.ndim(values) == 0 else values for values in (op, size))
    if spec.policy_type.needs_future:
        level.set_future(level.lines(address, size))
    level.count(op, address, size)
    return level.counts
