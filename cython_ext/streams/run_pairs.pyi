import numpy as np
import numpy.typing as npt

def shared_quads(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int64],
    outside: npt.NDArray[np.uint8],
) -> npt.NDArray[np.int64]: ...
