import numpy as np
import numpy.typing as npt

def largest_matching(
    start: npt.NDArray[np.int64], target: npt.NDArray[np.int32], n_targets: int
) -> npt.NDArray[np.int32]: ...
