from collections.abc import Callable

import numpy as np
import numpy.typing as npt

MOST_EDGES: int
MOST_VALUES: int
MOST_PLACES: int

def least_order(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    n_neurons: int,
    outputs: npt.NDArray[np.uint8],
    memory: int,
    policy: int,
    bound: int,
    states: int,
    over: Callable[[], bool] | None = None,
) -> tuple[npt.NDArray[np.int64] | None, bool, int]: ...
