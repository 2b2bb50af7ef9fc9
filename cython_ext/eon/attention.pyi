import numpy as np
import numpy.typing as npt

class Attention:
    def __init__(
        self,
        edge: npt.NDArray[np.float32],
        query: npt.NDArray[np.float32],
        key: npt.NDArray[np.float32],
        value: npt.NDArray[np.float32],
        node: npt.NDArray[np.float32],
        offer: npt.NDArray[np.float32],
        offer_bias: npt.NDArray[np.float32],
        sentinel: npt.NDArray[np.float32],
        weight: npt.NDArray[np.float32],
        bias: npt.NDArray[np.float32],
    ) -> None: ...
    def forward(
        self, frontier: npt.NDArray[np.int32], size: npt.NDArray[np.int64], cache: npt.NDArray[np.int32], nothing: float
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]: ...
    def learn(
        self,
        frontier: npt.NDArray[np.int32],
        size: npt.NDArray[np.int64],
        cache: npt.NDArray[np.int32],
        d_logits: npt.NDArray[np.float32],
        d_summary: npt.NDArray[np.float32],
    ) -> list[npt.NDArray[np.float32]]: ...
