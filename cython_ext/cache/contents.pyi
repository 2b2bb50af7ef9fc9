from typing import Any

import numpy as np
import numpy.typing as npt

class _LineData:
    def __init__(
        self,
        image: npt.NDArray[np.uint8],
        base: int,
        line_shift: int,
        all_through: bool,
        no_allocate: bool,
        block_bytes: int,
    ) -> None: ...
    def move(
        self,
        address: npt.NDArray[np.uint64],
        size: npt.NDArray[Any],
        op: npt.NDArray[np.uint8],
        stream: npt.NDArray[np.uint8],
        offset: npt.NDArray[np.int64],
        payload: npt.NDArray[np.uint8],
        to_address: npt.NDArray[np.uint64],
        to_size: npt.NDArray[np.uint16],
        to_write: npt.NDArray[np.uint8],
        caused_by: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8]]: ...
    def flush(
        self, lines: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8]]: ...
