from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.cache.level import CacheKernel

class PrefetchingKernel(CacheKernel):
    prefetches: int
    useful: int
    useless: int
    def set_prefetch(
        self, prefetcher: Any, degree: int, distance: int, entries: int, first_line: int, last_line: int
    ) -> None: ...
    @property
    def waiting(self) -> int: ...
    def access_prefetching(
        self,
        op: npt.NDArray[np.uint8],
        address: npt.NDArray[np.uint64],
        size: npt.NDArray[np.uint16],
        stream: npt.NDArray[np.uint8],
    ) -> tuple[tuple[npt.NDArray[Any], ...], tuple[npt.NDArray[Any], ...]]: ...
