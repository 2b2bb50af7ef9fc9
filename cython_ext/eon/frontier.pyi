from typing import Any

import numpy as np
import numpy.typing as npt

class Frontiers:
    frontier: Any
    size: Any
    cache: Any
    def __init__(
        self,
        sources: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int64],
        in_degree: npt.NDArray[np.int64],
        out_start: npt.NDArray[np.int64],
        out_edges: npt.NDArray[np.int64],
        count: int,
        capacity: int,
    ) -> None: ...
    def reset(self) -> None: ...
    def step(self, place: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
