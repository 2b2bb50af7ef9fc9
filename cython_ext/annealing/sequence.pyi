import numpy as np
import numpy.typing as npt

class Sequence:
    least: int

    def __init__(
        self,
        sources: npt.NDArray[np.int32],
        targets: npt.NDArray[np.int32],
        n_neurons: int,
        outputs: npt.NDArray[np.uint8],
        memory: int,
        policy: int,
        pinning: int,
        seed: int,
    ) -> None: ...
    def start(self, edges: npt.NDArray[np.int64]) -> int: ...
    def run(self, moves: int, temperature: float) -> int: ...
    def best_found(self) -> npt.NDArray[np.int64]: ...
