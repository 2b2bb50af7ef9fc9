from typing import Any

import numpy as np
import numpy.typing as npt

class _Residency:
    def __init__(
        self,
        in_start: npt.NDArray[np.int32],
        in_source: npt.NDArray[np.int32],
        in_lane: npt.NDArray[np.int32] | None,
        own: npt.NDArray[np.int32],
        item: npt.NDArray[np.int32],
        depth: npt.NDArray[np.int32],
        out_start: npt.NDArray[np.int64],
        out_target: npt.NDArray[np.int32],
        slots: int,
        seed: int,
        wide: bool = ...,
    ) -> None: ...
    def set_state(self, opens: npt.NDArray[np.int32], drops: npt.NDArray[np.int32]) -> None: ...
    def refresh(self) -> int: ...
    def state(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
    def tune(
        self,
        temperature: float,
        longest: int,
        open_share: float,
        drop_share: float,
        guided: float = ...,
        scans: float = ...,
    ) -> None: ...
    def run(self, moves: int) -> int: ...
    def cost_of(self, state: Any) -> int: ...
    @property
    def cost(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def intervals(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def stages(self) -> npt.NDArray[np.int32]: ...
