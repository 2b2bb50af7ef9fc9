from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.trace.walk import ForwardWalk

class TransferWalk(ForwardWalk):
    def __init__(
        self,
        plan: Any,
        image: npt.NDArray[np.uint8],
        streams: Any,
        moves: Any,
        scalars: Any,
        arrays: Any,
        element_array: Any,
        event_array: Any,
        scalar_array: int,
        descriptor_array: int,
        row_accesses: list[int],
        engine: Any,
        pointers: int,
    ) -> None: ...
    @property
    def counts(self) -> tuple[int, int, int, int, int]: ...
    @property
    def cycles(self) -> float: ...
    @property
    def multiply_adds(self) -> int: ...
    @property
    def instructions(self) -> int: ...
    @property
    def accesses(self) -> int: ...
    def fill_transfers(
        self,
        address: npt.NDArray[np.uint64],
        size: Any,
        op: npt.NDArray[np.uint8],
        stream: npt.NDArray[np.uint8],
        payload_offset: npt.NDArray[np.int64],
        payload: npt.NDArray[np.uint8],
        work: npt.NDArray[np.float64],
    ) -> int: ...

def first_loads(
    step: npt.NDArray[np.int32],
    neuron: npt.NDArray[np.int32],
    kind: npt.NDArray[np.uint8],
    source: npt.NDArray[np.int32],
    target: npt.NDArray[np.int32],
    n_neurons: int,
    load: int,
    live: int,
) -> tuple[npt.NDArray[np.uint8], str]: ...
def slots_of(
    step: npt.NDArray[np.int32],
    neuron: npt.NDArray[np.int32],
    kind: npt.NDArray[np.uint8],
    source: npt.NDArray[np.int32],
    target: npt.NDArray[np.int32],
    n_neurons: int,
    load: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], int]: ...
