import numpy as np
import numpy.typing as npt

def aligned_empty(n: int) -> npt.NDArray[np.uint8]: ...
def encode_xor_dbi(
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    history: npt.NDArray[np.uint8],
    element_bytes: int,
    block_bytes: int,
    position: int,
    dbi: bool,
) -> None: ...
def encode_xor_dbi_blocks(
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    elements: npt.NDArray[np.int64],
    which: npt.NDArray[np.int64],
    kind: npt.NDArray[np.uint8],
    block_bytes: int,
    dbi: bool,
) -> None: ...
def invert_flagged(
    data: npt.NDArray[np.uint8], flags: npt.NDArray[np.uint8] | None, out: npt.NDArray[np.uint8]
) -> None: ...
def encode_dbi_ac(
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    last: npt.NDArray[np.uint8],
    lane: int,
) -> int: ...
def encode_transition(
    data: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8], level: npt.NDArray[np.uint8], lane: int
) -> int: ...
def decode_transition(
    data: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8], level: npt.NDArray[np.uint8], lane: int
) -> int: ...
def decode_base_xor(
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    history: npt.NDArray[np.uint8],
    element_bytes: int,
    block_bytes: int,
    position: int,
) -> None: ...
def code_zdr(
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    history: npt.NDArray[np.uint8],
    element_bytes: int,
    block_bytes: int,
    position: int,
    decode: bool,
) -> None: ...
def code_universal(
    data: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8], element_bytes: int, block_bytes: int, decode: bool
) -> None: ...
def encode_optimal_dbi(
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    level: npt.NDArray[np.uint8],
    lane: int,
    block_bytes: int,
    one: float,
    zero: float,
    edge: float,
    low_active: bool,
) -> None: ...
