from collections.abc import Callable

import numpy as np
import numpy.typing as npt

def fewest_at_a_time(
    group: npt.NDArray[np.int32],
    item: npt.NDArray[np.int32],
    n_groups: int,
    n: int,
    over: Callable[[], bool],
    moved: bool = True,
) -> npt.NDArray[np.int64]: ...
