from typing import Any

import numpy as np
import numpy.typing as npt

WEIGHTS: tuple[int, ...]

class _Streaming:
    def __init__(
        self,
        in_start: npt.NDArray[np.int32],
        in_source: npt.NDArray[np.int32],
        out_start: npt.NDArray[np.int64],
        out_target: npt.NDArray[np.int32],
        own: npt.NDArray[np.int32],
        item: npt.NDArray[np.int32],
        depth: npt.NDArray[np.int32],
        slots: int,
        early: int,
        stream: npt.NDArray[np.float64],
        mult: npt.NDArray[np.float64],
        open: npt.NDArray[np.float64],
        window: int,
        widest: int,
        credit: int,
        record: bool = ...,
    ) -> None: ...
    def run(self, sources: int, over: Any = None) -> bool: ...
    @property
    def finished(self) -> int: ...
    @property
    def loads(self) -> int: ...
    @property
    def events(self) -> npt.NDArray[np.int32]: ...
    @property
    def so_far(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
    def state(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
