from typing import Any

import numpy as np
import numpy.typing as npt

FOUND: int
EXHAUSTED: int
LIMIT: int
STOPPED: int
NO_MEMORY: int
NEVER: int
PIECE: int

def fit(
    lower: npt.NDArray[np.int64],
    upper: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
    sequence: npt.NDArray[np.int64],
    alignment: int,
    best: bool,
    late: Any,
) -> tuple[int, npt.NDArray[np.int64], bool]: ...
def sections(
    lower: npt.NDArray[np.int64],
    upper: npt.NDArray[np.int64],
    by_lower: npt.NDArray[np.int64],
    by_upper: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]: ...

class Search:
    load: Any
    most: Any
    def __init__(
        self,
        size: npt.NDArray[np.int64],
        first: npt.NDArray[np.int32],
        last: npt.NDArray[np.int32],
        n_sections: int,
        max_pairs: int,
    ) -> None: ...
    def run(
        self,
        capacity: int,
        top: npt.NDArray[np.int64],
        rank: npt.NDArray[np.int32],
        nodes: int,
        by_load: bool = ...,
        stop: Any = None,
    ) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def next_capacity(self) -> int: ...
    def offsets(self) -> npt.NDArray[np.int64]: ...
