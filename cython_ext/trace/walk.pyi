from typing import Any

import numpy as np
import numpy.typing as npt

def neuron_bits(values: npt.NDArray[np.float32], format: int) -> npt.NDArray[np.uint8]: ...
def neuron_values(image: npt.NDArray[np.uint8], format: int) -> npt.NDArray[np.float32]: ...

class ForwardWalk:
    def __init__(self, plan: Any, image: npt.NDArray[np.uint8], streams: Any) -> None: ...
    @property
    def done(self) -> bool: ...
    def fill(
        self,
        address: npt.NDArray[np.uint64],
        size: Any,
        op: npt.NDArray[np.uint8],
        stream: npt.NDArray[np.uint8],
        payload_offset: npt.NDArray[np.int64],
        payload: npt.NDArray[np.uint8],
    ) -> int: ...
