import numpy as np
import numpy.typing as npt

def refreshed(
    sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32], n_neurons: int, memory: int, horizon: int
) -> npt.NDArray[np.int32]: ...
