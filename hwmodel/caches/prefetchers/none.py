"""none: no prefetching."""

from __future__ import annotations

from hwmodel.caches.prefetcher import PREFETCHERS, Prefetcher


@PREFETCHERS.register("none", summary="nothing is fetched unasked")
class Nothing(Prefetcher):
    """Nothing is fetched unasked."""

    fetches = False
