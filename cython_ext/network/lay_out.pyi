import numpy as np
import numpy.typing as npt

def lay_out(
    ends: npt.NDArray[np.int32], order: npt.NDArray[np.int64] | None, n: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int, bool]: ...
def is_valid(ends: npt.NDArray[np.int32], order: npt.NDArray[np.int64] | None, n: int) -> bool: ...
