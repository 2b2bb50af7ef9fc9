import numpy as np
import numpy.typing as npt

def pair_runs(
    sources: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64],
    n_neurons: int,
    least: int,
) -> npt.NDArray[np.int64]: ...
