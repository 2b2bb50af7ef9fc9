from typing import Any

import numpy as np
import numpy.typing as npt

def new_counters(streams: int, lanes: int) -> npt.NDArray[np.uint8]: ...
def count_wires(
    data: npt.NDArray[np.uint8],
    flags: Any,
    ends: npt.NDArray[np.int64],
    streams: npt.NDArray[np.int64],
    idles: Any,
    idle_level: int,
    level: npt.NDArray[np.uint8],
    flag_level: npt.NDArray[np.uint8],
    lane: int,
    counters: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int64],
) -> int: ...
def empty_counters(counters: npt.NDArray[np.uint8], counts: npt.NDArray[np.int64]) -> None: ...
def segments_by_kind(
    stream: npt.NDArray[np.uint8], is_write: npt.NDArray[np.uint8], which_set: Any, n_streams: int, block_bytes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
