from typing import Any

import numpy as np
import numpy.typing as npt

class EngineClock:
    def __init__(self, engine: Any, kinds: npt.NDArray[np.uint8], source: int, values: int) -> None: ...
    def feed(
        self, op: npt.NDArray[np.uint8], stream: npt.NDArray[np.uint8], size: npt.NDArray[Any]
    ) -> npt.NDArray[np.float64]: ...
    @property
    def cycles(self) -> float: ...
    @property
    def accesses(self) -> int: ...
    @property
    def instructions(self) -> int: ...

def cycles_of(
    engine: Any, elements: int, sources: int, targets: int, stores: int, values: int, pieces: int
) -> float: ...
