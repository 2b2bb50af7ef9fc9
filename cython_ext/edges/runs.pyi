import numpy as np
import numpy.typing as npt

def near_runs(
    sources: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    n_neurons: int,
    capacity: int,
) -> npt.NDArray[np.int64]: ...
