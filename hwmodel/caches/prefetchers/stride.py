"""stride: after Chen and Baer 1995; cython_ext/cache/prefetchers/prefetch_stride.h."""

from __future__ import annotations

from hwmodel.caches.prefetcher import PREFETCHERS, Prefetcher


@PREFETCHERS.register("stride", summary="the stride a reference prediction table has learnt")
class Stride(Prefetcher):
    """The stride a reference prediction table has learnt."""

    kernel = "stride"
