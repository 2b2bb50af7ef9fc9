"""rr: the ways of a set are filled in turn, which is what fifo does."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("rr", summary="round robin over the ways of a set")
class RoundRobin(Policy):
    """Round robin over the ways of a set."""

    kernel = "fifo"
