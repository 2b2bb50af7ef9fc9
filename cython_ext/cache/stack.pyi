import numpy as np
import numpy.typing as npt

def stack_distances(previous: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
