from typing import Any

import numpy as np
import numpy.typing as npt

class _Annealer:
    cost: float
    best: float
    iteration: int
    accepted: int
    def __init__(
        self,
        sources: npt.NDArray[np.int32],
        targets: npt.NDArray[np.int32],
        n_neurons: int,
        is_output: Any,
        *,
        runs_weight: float,
        io_terms: Any,
        window: int,
        sigma: float,
        seed: int,
        incremental: bool,
        patience: float = ...,
    ) -> None: ...
    def run(self, iterations: int, over: Any = None) -> None: ...
    def best_found(self) -> npt.NDArray[np.int32]: ...
    def accesses_played(self) -> int: ...
