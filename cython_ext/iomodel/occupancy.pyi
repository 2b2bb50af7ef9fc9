import numpy as np
import numpy.typing as npt

def play(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    is_output: npt.NDArray[np.uint8],
    memory: int,
    policy: int,
    pinning: int,
    moments: npt.NDArray[np.int64],
    drawn: npt.NDArray[np.int64],
) -> tuple[
    npt.NDArray[np.uint8],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    int,
    int,
]: ...
