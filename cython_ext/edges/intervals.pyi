import numpy as np
import numpy.typing as npt

def latest_opens(drops: npt.NDArray[np.int32], wish: npt.NDArray[np.int32], slots: int) -> npt.NDArray[np.int32]: ...
def grouped(
    keys: npt.NDArray[np.int32], groups: int, first: npt.NDArray[np.int32] | None = None
) -> npt.NDArray[np.int32]: ...
def in_groups(values: npt.NDArray[np.int32], keys: npt.NDArray[np.int32], groups: int) -> npt.NDArray[np.int64]: ...
def carried(
    start: npt.NDArray[np.int64],
    opened: npt.NDArray[np.int32],
    finish: npt.NDArray[np.int32],
    release: npt.NDArray[np.int32],
    stages: int,
) -> npt.NDArray[np.int32]: ...
