from typing import Any

import numpy as np
import numpy.typing as npt

HUBS: int
LEAST_HUB: int

class Ego:
    processed: int
    def __init__(
        self, sources: Any, targets: Any, out_start: Any, out_edges: Any, in_start: Any, in_edges: Any, window: int
    ) -> None: ...
    def run(self, connections: int) -> int: ...
    def result(self) -> npt.NDArray[np.int64]: ...

def go_ranks(
    sources: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    out_start: npt.NDArray[np.int64],
    out_edges: npt.NDArray[np.int64],
    in_start: npt.NDArray[np.int64],
    in_edges: npt.NDArray[np.int64],
    window: int,
    go_on: Any = None,
) -> npt.NDArray[np.int64]: ...
