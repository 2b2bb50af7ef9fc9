import numpy as np
import numpy.typing as npt

LRU: int
RR: int
MIN: int
LITERAL: int
PIN_BOTH: int
POLICY_CODES: dict[str, int]
PINNING_CODES: dict[str, int]
LOAD: int
STORE_LIVE: int
STORE_OUTPUT: int
MAX_CONNECTIONS: int

def count(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    n_neurons: int,
    is_output: npt.NDArray[np.uint8],
    memory: int,
    policy: int,
    pinning: int,
) -> npt.NDArray[np.int64]: ...
def _count_many(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    is_output: npt.NDArray[np.uint8],
    memories: npt.NDArray[np.int64],
    policy: int,
    pinning: int,
    next_use: npt.NDArray[np.int32] | None,
) -> npt.NDArray[np.int64]: ...
def _count_in_order(
    ends: npt.NDArray[np.int32],
    order: npt.NDArray[np.int64],
    is_output: npt.NDArray[np.uint8],
    memory: int,
    policy: int,
    pinning: int,
) -> tuple[npt.NDArray[np.int64], int, bool]: ...
def neuron_loads(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    n_neurons: int,
    is_output: npt.NDArray[np.uint8],
    memory: int,
    policy: int,
    pinning: int,
) -> npt.NDArray[np.uint8]: ...
def moves(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    n_neurons: int,
    is_output: npt.NDArray[np.uint8],
    memory: int,
    policy: int,
    pinning: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]: ...
def find_next_uses(
    sources: npt.NDArray[np.int32], targets: npt.NDArray[np.int32], is_output: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int32]: ...
def lru_curve(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    n_neurons: int,
    is_output: npt.NDArray[np.uint8],
    pinning: int,
) -> npt.NDArray[np.int64]: ...
