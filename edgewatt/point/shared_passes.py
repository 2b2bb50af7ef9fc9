"""Which points of a sweep need the same pass through the caches, known before anything is computed.

A pass is worth keeping only where another point needs it: it is the one stage that can be large.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgewatt.config.points import Point
from edgewatt.point.work import ordering_identity, tuple_order_identity
from edgewatt.results.record import content_hash
from traces.base.errors import InputError


def pass_key(point: Point) -> str | None:
    """Return what names a point's pass through the caches; None where it has none that could be kept."""
    from edgewatt.point.machine import burst_bytes

    config = point.config
    if config["measure"] == "io" or config["timing"] != "replay":
        return None
    work: Any = config.get("trace")
    if work is None:
        order = ordering_identity(config) if config["stride"]["kind"] == "none" else tuple_order_identity(config)
        work = [order, *(config[key] for key in ("format", "layout", "sample"))]
    try:
        return content_hash([work, config["caches"], burst_bytes(config, point.paths)])
    except InputError:
        return None  # its part cannot be read: the point will say so


def passes(points: Iterable[Point]) -> dict[str, list[str]]:
    """Return the hashes of the points that need each pass."""
    found: dict[str, list[str]] = {}
    for point in points:
        key = pass_key(point)
        if key is not None:
            found.setdefault(key, []).append(point.hash)
    return found


def shared_passes(points: Iterable[Point]) -> set[str]:
    """Return the hashes of the points whose pass another one needs, too."""
    return {name for users in passes(points).values() if len(users) > 1 for name in users}
