import numpy as np
import numpy.typing as npt

def invert_far_shares(
    data: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    source: npt.NDArray[np.int32],
    given: npt.NDArray[np.uint8],
    share_bits: int,
    entry_start: npt.NDArray[np.int32],
    entries: npt.NDArray[np.int32],
    level: npt.NDArray[np.uint8],
) -> None: ...
def cheapest_shares(
    data: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    source: npt.NDArray[np.int32],
    given: npt.NDArray[np.uint8],
    share_bits: int,
    level: npt.NDArray[np.uint8],
    one: int,
    zero: int,
    edge: int,
    pair: npt.NDArray[np.int32],
    step: npt.NDArray[np.int32],
    scope: npt.NDArray[np.int32],
    term: npt.NDArray[np.int32],
    row: npt.NDArray[np.int32],
    weight: npt.NDArray[np.int64],
    table: npt.NDArray[np.int64],
    choice: npt.NDArray[np.uint8],
) -> None: ...
