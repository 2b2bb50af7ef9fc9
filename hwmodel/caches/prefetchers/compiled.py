"""Those that are compiled (cython_ext/cache/prefetchers has a file for each), and none."""

from __future__ import annotations

from hwmodel.caches.prefetcher import PREFETCHERS, Prefetcher


@PREFETCHERS.register("next-line", summary="the lines after a miss or a first use")
class NextLine(Prefetcher):
    """Tagged next-line prefetching."""

    kernel = "next_line"


@PREFETCHERS.register("none", summary="no prefetching")
class Nothing(Prefetcher):
    fetches = False


@PREFETCHERS.register("stride", summary="the stride a reference prediction table has learnt")
class Stride(Prefetcher):
    """After Chen and Baer 1995."""

    kernel = "stride"
