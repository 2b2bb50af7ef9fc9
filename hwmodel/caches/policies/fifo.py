"""fifo: the line filled longest ago goes."""

from __future__ import annotations

from hwmodel.caches.policy import CACHE_POLICIES, Policy


@CACHE_POLICIES.register("fifo", summary="first in, first out")
class Fifo(Policy):
    """First in, first out."""

    kernel = "fifo"
