"""lru: the line looked up longest ago goes."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("lru", summary="least recently used")
class Lru(Policy):
    """Least recently used."""

    kernel = "lru"
