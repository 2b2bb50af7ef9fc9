from typing import Any

import numpy as np
import numpy.typing as npt

def rolling(
    in_start: npt.NDArray[np.int32],
    in_source: npt.NDArray[np.int32],
    out_start: npt.NDArray[np.int64],
    out_target: npt.NDArray[np.int32],
    own: npt.NDArray[np.int32],
    item: npt.NDArray[np.int32],
    slots: int,
    keep: int,
    age: float,
    degree_weight: float,
    window: int,
    over: Any = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
