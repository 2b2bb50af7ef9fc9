"""plru: a binary tree over the ways points away from what was looked up last."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("plru", summary="tree pseudo-LRU")
class TreePlru(Policy):
    """Tree pseudo-LRU."""

    kernel = "plru"

    @classmethod
    def objection(cls, ways: int) -> str | None:
        """The tree is a whole one."""
        return f"needs a power of two of ways, not {ways}" if ways & (ways - 1) else None
