"""random: the seed of the cache decides, with splitmix64."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("random", summary="seeded random way")
class Random(Policy):
    """Seeded random way."""

    kernel = "random"
