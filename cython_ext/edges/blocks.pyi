import numpy as np
import numpy.typing as npt

def swap_blocks(
    start: npt.NDArray[np.int32],
    source: npt.NDArray[np.int32],
    order: npt.NDArray[np.int32],
    size: int,
    n_sources: int,
    swaps: int,
    hot: float,
    cold: float,
    seed: int,
) -> int: ...
