"""What the caches do with a trace: hits per level, stream and address region, and misses over all sizes in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.bus import Bytes
from hwmodel.caches.cache import CacheCounts, CacheLevel
from hwmodel.caches.policy import CACHE_POLICIES
from hwmodel.caches.spec import CacheSpec
from hwmodel.replay.hierarchy import Int64Array, lookups_of_level
from traces.base.checks import is_whole
from traces.base.errors import InputError
from traces.base.memory import claim
from traces.base.units import size_in_bytes
from traces.trace.chunks import STREAMS, Memory, Region, Trace, next_uses, slices, touched_lines

OUTSIDE = "elsewhere"
_CURVE_BYTES, _WRITER_BYTES = 64, 130  # of memory for a look-up of the curve, and for a line that was stored to


@dataclass(frozen=True)
class LookupCounts:
    """Line look-ups of one stream or region at one level, and how many of them missed."""

    lookups: int
    misses: int

    @property
    def hits(self) -> int:
        return self.lookups - self.misses

    @property
    def hit_rate(self) -> float:
        """Hits per look-up; 0 without any."""
        return self.hits / self.lookups if self.lookups else 0.0


@dataclass(frozen=True)
class LevelProfile:
    """One level: its spec, its counts before any final flush, and its look-ups by stream and by address region."""

    spec: CacheSpec
    counts: CacheCounts
    streams: dict[str, LookupCounts]
    regions: dict[str, LookupCounts]


@dataclass(frozen=True, eq=False)
class MissCurve:
    """Misses of an LRU cache over its size, exact at every size (Mattson et al. 1970: LRU caches include each other).

    sets: of the cache, 1 is fully associative. ways: int64[k], size_bytes: int64[k] = sets x ways x line_bytes.
    misses: int64[k], of `lookups` line look-ups; the last size holds every line, so its misses are first uses.
    """

    line_bytes: int
    sets: int
    lookups: int
    ways: Int64Array
    misses: Int64Array

    @property
    def size_bytes(self) -> Int64Array:
        return self.ways * self.sets * self.line_bytes


@dataclass(frozen=True, eq=False)
class CacheProfile:
    """What `profile_caches` found; `as_dict` gives JSON values."""

    accesses: int
    levels: tuple[LevelProfile, ...]
    curve: MissCurve

    def as_dict(self) -> dict[str, Any]:

        def parts(of: dict[str, LookupCounts]) -> dict[str, Any]:
            return {name: {**asdict(p), "hits": p.hits, "hit_rate": p.hit_rate} for name, p in of.items()}

        levels = [
            {
                "spec": asdict(level.spec),
                **asdict(level.counts),
                "hits": level.counts.hits,
                "misses": level.counts.misses,
                "streams": parts(level.streams),
                "regions": parts(level.regions),
            }
            for level in self.levels
        ]
        curve = self.curve
        points = [
            {"size_bytes": int(size), "ways": int(ways), "misses": int(misses)}
            for size, ways, misses in zip(curve.size_bytes, curve.ways, curve.misses, strict=True)
        ]
        drawn = {name: getattr(curve, name) for name in ("line_bytes", "sets", "lookups")} | {"points": points}
        return {"accesses": self.accesses, "levels": levels, "curve": drawn}


def parse_level(text: str) -> CacheSpec:
    """Return the cache level of SIZE[:LINE[:WAYS[:POLICY]]], e.g. ``32KiB:64:8:lru``. Raises InputError."""
    size, line, ways, policy, *more = [*text.split(":"), *("", "64", "8", "lru")[text.count(":") + 1 :]]
    if more or not (is_whole(line) and is_whole(ways)):
        raise InputError(f"cache level {text!r}: write SIZE:LINE:WAYS:POLICY, e.g. 32KiB:64:8:lru")
    try:
        size_bytes = size_in_bytes(size)
    except InputError as error:
        raise InputError(f"cache level {text!r}: {error}; write SIZE:LINE:WAYS:POLICY, e.g. 32KiB:64:8:lru") from None
    return CacheSpec(size_bytes, int(line), int(ways), CACHE_POLICIES[policy].name)


def profile_caches(
    trace: Trace, specs: Sequence[CacheSpec], *, sets: int = 1, region_bytes: int | None = None
) -> CacheProfile:
    """Play a trace through cache levels, and measure the misses of LRU over all sizes.

    specs: the levels, the engine's first; at least one. sets: of the caches of the curve, a power of two, whose lines
    are those of the first level. region_bytes: cut the addresses into pieces of so many bytes; None: the trace's own
    regions, else at most 16 pieces of a power of two. The curve takes 64 bytes per look-up of the first level.
    Returns a CacheProfile. Raises InputError for no level, or sizes that cannot be used.
    """
    if not specs:
        raise InputError("a profile needs at least one cache level")
    if any(spec.bypass for spec in specs):
        raise InputError("a profile plays every access through every level: leave out bypass")
    if sets < 1 or sets & (sets - 1):
        raise InputError(f"sets must be a power of two, not {sets}")
    names, find = _regions(trace.memory, region_bytes)
    levels = [CacheLevel(spec) for spec in specs]
    for k, spec in enumerate(specs):
        if spec.policy_type.needs_future:
            levels[k].set_future(lookups_of_level(trace, tuple(specs[: k + 1]), flush=False))
    streams = np.zeros((len(specs), 2, len(STREAMS)), np.int64)
    regions = np.zeros((len(specs), 2, len(names)), np.int64)
    accesses, first_lines = 0, []
    writers = [_Writers() for _ in specs]
    for chunk in slices(trace):
        accesses += len(chunk)
        op, address, size, stream = chunk.op, chunk.address, np.asarray(chunk.size, np.uint16), chunk.stream
        for k, level in enumerate(levels):
            out, missed = level.access_counting(op, address, size)
            lines, access = touched_lines(address, size, level.spec.line_bytes)
            if k == 0:
                first_lines.append(lines)
            where = find(np.maximum(lines * np.uint64(level.spec.line_bytes), address[access]))
            for counts, name in ((streams[k], stream[access]), (regions[k], where)):
                counts[0] += np.bincount(name, minlength=counts.shape[1])
                counts[1] += np.bincount(name, missed, minlength=counts.shape[1]).astype(np.int64)
            stored = np.flatnonzero(op[access])
            writers[k].note(lines[stored], access[stored], stream[access[stored]])
            back = np.flatnonzero(out.is_write)
            after = stream[out.access_index]
            after[back] = writers[k].of(out.address[back] // np.uint64(level.spec.line_bytes), out.access_index[back])
            op, address, size, stream = out.is_write, out.address, out.size, after
        held = _CURVE_BYTES * sum(map(len, first_lines)) + _WRITER_BYTES * sum(map(len, writers))
        claim(held, "the trace", "what is kept of its line look-ups")
    profiles = tuple(
        LevelProfile(spec, level.counts, _named(STREAMS, streams[k]), _named(names, regions[k]))
        for k, (spec, level) in enumerate(zip(specs, levels, strict=True))
    )
    for profile in profiles:
        for parts in (profile.streams, profile.regions):
            assert sum(part.lookups for part in parts.values()) == profile.counts.lookups
            assert sum(part.misses for part in parts.values()) == profile.counts.misses
    lines = np.concatenate(first_lines) if first_lines else np.zeros(0, np.uint64)
    return CacheProfile(accesses, profiles, miss_curve(lines, line_bytes=specs[0].line_bytes, sets=sets))


class _Writers:
    """The stream of the last store of each line: a write-back is of that one."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {}  # by line, before the present accesses
        self._lines = np.zeros(0, np.uint64)
        self._keys, self._streams, self._scale = np.zeros(0, np.int64), np.zeros(0, np.uint8), 1

    def __len__(self) -> int:
        return len(self._before)

    def note(self, lines: npt.NDArray[np.uint64], access: Int64Array, stream: Bytes) -> None:
        """Take the stores of some accesses, uint64[n] lines by int64[n] access ascending."""
        self._before.update(zip(self._lines[self._keys // self._scale].tolist(), self._streams.tolist(), strict=True))
        self._lines, number = np.unique(lines, return_inverse=True)
        self._scale = int(access.max(initial=0)) + 2
        keys = number * self._scale + access
        order = np.argsort(keys, kind="stable")
        self._keys, self._streams = keys[order], stream[order]

    def of(self, lines: npt.NDArray[np.uint64], access: Int64Array) -> Bytes:
        """Return uint8[n]: of these lines, written back by these of the accesses, the last store's stream."""
        if not len(lines):
            return np.zeros(0, np.uint8)
        number = np.searchsorted(self._lines, lines)
        here = number < len(self._lines)
        here[here] = self._lines[number[here]] == lines[here]
        at = np.searchsorted(self._keys, number * self._scale + np.minimum(access, self._scale - 1), "right") - 1
        here &= (at >= 0) & (self._keys[at] // self._scale == number) if len(self._keys) else False
        found = np.empty(len(lines), np.uint8)
        found[here] = self._streams[at[here]]
        found[~here] = [self._before[line] for line in lines[~here].tolist()]
        return found


def miss_curve(lines: npt.NDArray[np.uint64], *, line_bytes: int, sets: int = 1) -> MissCurve:
    """Return the misses of LRU caches of `sets` sets over a sequence of line numbers uint64[n], at every size.

    Sizes are powers of two of ways, up to the one that holds every line. O(n log n).
    """
    from cython_ext.cache.stack import stack_distances

    chosen = lines & np.uint64(sets - 1)
    if sets > 1:  # each set by itself: its look-ups one after another
        lines = lines[np.argsort(chosen, kind="stable")]
    upcoming = next_uses(lines)
    previous = np.full(len(lines), -1, np.int64)
    again = np.flatnonzero(upcoming < len(lines))
    previous[upcoming[again]] = again
    distance = stack_distances(previous)
    most = int(distance.max(initial=0)) + 1
    ways = 2 ** np.arange((most - 1).bit_length() + 1, dtype=np.int64)
    reused = np.sort(distance[distance >= 0])
    misses = len(lines) - np.searchsorted(reused, ways, side="left")
    return MissCurve(line_bytes, sets, len(lines), ways, misses.astype(np.int64))


def _regions(memory: Memory, region_bytes: int | None) -> tuple[list[str], Any]:
    """Return names of regions and a function uint64[n] address -> int64[n] number of its region."""
    if region_bytes is not None and region_bytes < 1:
        raise InputError(f"region_bytes must be at least 1, not {region_bytes}")
    regions = list(memory.regions)
    if region_bytes is not None or not regions:
        piece = region_bytes or max(1, 1 << max(0, (memory.total_bytes - 1).bit_length() - 4))
        first, end = memory.base_address // piece, memory.base_address + max(memory.total_bytes, 1)
        count = -(-end // piece) - first
        if count > 2**16:
            raise InputError(f"{count} regions of {piece} bytes: choose region_bytes of at least {-(-end // 2**16)}")
        regions = [Region(f"{at * piece:#x}", at * piece, piece) for at in range(first, first + count)]
    regions.sort(key=lambda region: region.base_address)
    starts = np.array([region.base_address for region in regions], np.uint64)
    ends = np.array([region.base_address + region.n_bytes for region in regions], np.uint64)

    def find(address: npt.NDArray[np.uint64]) -> Int64Array:
        at = np.searchsorted(starts, address, side="right").astype(np.int64) - 1
        inside = (at >= 0) & (address < ends[at])
        return np.where(inside, at, len(regions))

    return [*(region.name for region in regions), OUTSIDE], find


def _named(names: Sequence[str], counts: Int64Array) -> dict[str, LookupCounts]:
    return {name: LookupCounts(int(n), int(m)) for name, n, m in zip(names, *counts, strict=True) if n}
