import numpy as np
import numpy.typing as npt

GREEDY: int
SEARCH: int

def order_strides(
    out_words: npt.NDArray[np.uint64],
    in_words: npt.NDArray[np.uint64],
    keep: npt.NDArray[np.uint64],
    slot_class: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int64],
    first: int,
    last: int,
    order: npt.NDArray[np.int64],
    method: int,
    refine: bool,
    kicks_per_tuple: float,
    seed: int,
    dbi: bool,
    symmetric: bool,
    before: int = ...,
) -> None: ...
def stride_bounds(
    out_words: npt.NDArray[np.uint64],
    in_words: npt.NDArray[np.uint64],
    keep: npt.NDArray[np.uint64],
    slot_class: npt.NDArray[np.uint8],
    bounds: npt.NDArray[np.int64],
    first: int,
    last: int,
    order: npt.NDArray[np.int64],
    rounds: int,
    dbi: bool,
    symmetric: bool,
    bound: npt.NDArray[np.float64],
) -> None: ...
