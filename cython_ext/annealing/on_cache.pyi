from typing import Any

import numpy as np
import numpy.typing as npt

COUNTS: tuple[str, ...]
MOST_ELEMENTS: int
MOST_BANKS: int

class OnCache:
    value: float
    def __init__(
        self,
        sources: npt.NDArray[np.int32],
        targets: npt.NDArray[np.int32],
        n_neurons: int,
        order: Any,
        *,
        elements: Any,
        rows: Any,
        cache: Any,
        memory: Any,
        access_bytes: int,
        policy: Any = ...,
        seed: int = ...,
    ) -> None: ...
    @property
    def counts(self) -> npt.NDArray[np.int64]: ...
    @property
    def order(self) -> npt.NDArray[np.int64]: ...
    def weigh(self, weights: npt.NDArray[np.float64]) -> None: ...
    def replace(self, order: Any) -> None: ...
    def recount(self) -> None: ...
    def swap(self, i: int, j: int, k: int) -> float | None: ...
    def run(self, moves: int, hot: float, cold: float, reach: int) -> int: ...
