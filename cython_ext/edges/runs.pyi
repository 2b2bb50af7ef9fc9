from typing import Any

import numpy as np
import numpy.typing as npt

class Walk:
    def __init__(
        self, sources: Any, targets: Any, starts: Any, n_neurons: int, capacity: int, most_runs: int
    ) -> None: ...

def near_runs(
    sources: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    n_neurons: int,
    capacity: int,
) -> npt.NDArray[np.int64]: ...
