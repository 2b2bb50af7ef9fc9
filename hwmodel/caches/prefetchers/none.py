"""none: no prefetching."""

from __future__ import annotations

from hwmodel.caches.prefetcher import PREFETCHERS, Prefetcher


@PREFETCHERS.register("none", summary="no prefetching")
class Nothing(Prefetcher):
    """No prefetching."""

    fetches = False
