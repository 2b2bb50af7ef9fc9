import numpy as np
import numpy.typing as npt

RUN_WORDS: int
PAD_WORDS: int

def run_starts(targets: npt.NDArray[np.int32], single_steps: bool = ...) -> npt.NDArray[np.int64]: ...
def shared_quads(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int64],
    outside: npt.NDArray[np.uint8],
) -> npt.NDArray[np.int64]: ...
def float_stream(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    starts: npt.NDArray[np.int64],
    offset: npt.NDArray[np.uint32],
    start_values: npt.NDArray[np.float32],
    activation: npt.NDArray[np.uint8],
    in_degree: npt.NDArray[np.int64],
    outside: npt.NDArray[np.uint8],
    input_offset: npt.NDArray[np.uint32],
    kind: int,
    line_units: int,
    shared: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
def int8_stream(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    weights: npt.NDArray[np.int8],
    starts: npt.NDArray[np.int64],
    offset: npt.NDArray[np.uint32],
    sum_offset: npt.NDArray[np.uint32],
    start_values: npt.NDArray[np.int32],
    multipliers: npt.NDArray[np.float32],
    zeros: npt.NDArray[np.int32],
    activation: npt.NDArray[np.uint8],
    wide: npt.NDArray[np.uint8],
    in_degree: npt.NDArray[np.int64],
    outside: npt.NDArray[np.uint8],
    input_offset: npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
def assign_rows(
    sources: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    last_use: npt.NDArray[np.int64],
    keep: npt.NDArray[np.uint8],
    resident: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], int]: ...
