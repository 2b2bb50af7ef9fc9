import numpy as np
import numpy.typing as npt

def encode_optimal_dbi(
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    level: npt.NDArray[np.uint8],
    lane: int,
    block_bytes: int,
    one: float,
    zero: float,
    edge: float,
    low_active: bool,
) -> None: ...
