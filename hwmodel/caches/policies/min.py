"""min: Belady 1966. Ties go to the lowest way."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("min", summary="Belady's MIN: the line used furthest in the future (offline)")
class Min(Policy):
    """Belady's MIN: the line used furthest in the future (offline)."""

    kernel = "min"
    needs_future = True
