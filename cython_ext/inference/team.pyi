from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.inference.runs import Passes

class Team:
    def __init__(self, passes: Passes, threads: int, lanes: int) -> None: ...
    def serve(self, number: int) -> None: ...
    def run(
        self,
        arenas: npt.NDArray[np.int64],
        tables: npt.NDArray[np.int64],
        batch: npt.NDArray[np.float32] | None,
        out: Any,
    ) -> None: ...
    def close(self) -> None: ...
