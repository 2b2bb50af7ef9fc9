"""Cache levels one behind the other, without a hierarchy."""

from collections.abc import Sequence

import numpy.typing as npt

from hwmodel.caches.cache import CacheCounts, CacheLevel
from hwmodel.caches.spec import CacheSpec


def simulate_levels(
    op: npt.ArrayLike, address: npt.ArrayLike, size: npt.ArrayLike, specs: Sequence[CacheSpec]
) -> tuple[CacheCounts, ...]:
    """Play accesses through several levels, each fed by the transactions of the one before; return their counts."""
    counts = []
    for spec in specs:
        level = CacheLevel(spec)
        if spec.policy_type.needs_future:
            level.set_future(level.lines(address, size))
        out = level.access(op, address, size)
        op, address, size = out.is_write, out.address, out.size
        counts.append(level.counts)
    return tuple(counts)
