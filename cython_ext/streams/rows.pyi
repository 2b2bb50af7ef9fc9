import numpy as np
import numpy.typing as npt

def assign_rows(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    last_use: npt.NDArray[np.int64],
    keep: npt.NDArray[np.uint8],
    resident: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], int]: ...
