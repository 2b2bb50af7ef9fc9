import numpy as np
import numpy.typing as npt

def depth_and_repeats(
    source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], n: int
) -> tuple[npt.NDArray[np.int64], bool]: ...
def core_numbers(source: npt.NDArray[np.int64], target: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]: ...
