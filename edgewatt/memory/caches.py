"""A trace through caches, for `edgewatt cache`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hwmodel.replay.profile import parse_level, profile_caches
from traces.trace_files import open_trace


def profile_trace(
    trace: str | Path, levels: Sequence[str], *, format: str | None, sets: int, region_bytes: int | None
) -> Any:
    """Return the profile (`ew.profile_caches`) of a trace file; levels: texts as 32KiB:64:8:lru."""
    specs = [parse_level(text) for text in levels]
    return profile_caches(open_trace(trace, format), specs, sets=sets, region_bytes=region_bytes)


def curve_rows(curve: Any) -> list[tuple[str, str, str]]:
    """Return size in bytes, misses and miss ratio at each size of a miss curve, as text."""
    points = zip(curve.size_bytes.tolist(), curve.misses.tolist(), strict=True)
    return [(f"{size:,}", f"{n:,}", _share(n, curve.lookups)) for size, n in points]


def level_rows(counts: Any) -> list[tuple[str, str]]:
    """Return the counts of a level, and its hit rate, as text."""
    names = ("lookups", "hits", "misses", "evictions", "writebacks")
    return [
        *((name, f"{getattr(counts, name):,}") for name in names),
        ("hit rate", _share(counts.hits, counts.lookups)),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.4f}" if whole else ""
