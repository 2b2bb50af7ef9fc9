"""next-line: tagged next-line prefetching."""

from __future__ import annotations

from hwmodel.caches.prefetcher import PREFETCHERS, Prefetcher


@PREFETCHERS.register("next-line", summary="the lines after a miss or a first use")
class NextLine(Prefetcher):
    """The lines after a miss or a first use."""

    kernel = "next_line"
