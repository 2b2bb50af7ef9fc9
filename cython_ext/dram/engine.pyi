from typing import Any

import numpy as np
import numpy.typing as npt

SETTINGS: dict[str, tuple[int, int]]
CODES: dict[str, dict[str, int]]
MOST_BANKS: int
FIELD_NAMES: tuple[str, ...]
TRACE_DTYPE: np.dtype[np.void]
WORD_BITS: dict[str, int]
LEVELS: dict[str, int]
DONE: int
NEEDS_INPUT: int
OUTPUT_FULL: int
SLICE: int
STUCK: int

def first_bad_request(
    address: npt.NDArray[np.uint64],
    is_write: npt.NDArray[np.uint8],
    arrival: npt.NDArray[np.int64],
    burst_bytes: int,
    capacity: int,
    after: int,
    latest: int,
) -> int: ...

class Tables:
    def __init__(
        self,
        settings: dict[str, Any],
        gap: npt.NDArray[np.int64],
        wire_cycles: npt.NDArray[np.int64],
        fields: npt.NDArray[np.int32],
        levels: list[Any],
    ) -> None: ...

class Memory:
    def __init__(
        self,
        tables: Tables,
        n_channels: int = ...,
        n_ports: int = ...,
        width: int = ...,
        out_size: int = ...,
        trace: bool = ...,
        sent: bool = ...,
    ) -> None: ...
    @property
    def n_channels(self) -> int: ...
    def set_port(self, port: int, *, limit: Any = None, relative: bool = ...) -> None: ...
    def feed(
        self,
        port: int,
        request: npt.NDArray[np.int64],
        address: npt.NDArray[np.uint64],
        is_write: npt.NDArray[np.uint8],
        arrival: npt.NDArray[np.int64],
    ) -> None: ...
    def close(self, port: int) -> None: ...
    def park(self, port: int) -> None: ...
    def run(self, slices: int = ...) -> int: ...
    def hungry_ports(self) -> list[int]: ...
    def take_done(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def take_sent(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.int64]]: ...
    def waiting_output(self) -> int: ...
    def take_traces(self) -> list[npt.NDArray[Any]]: ...
    def now(self) -> int: ...
    def state(self, channel: int) -> dict[str, Any]: ...
    def counts(self) -> dict[str, Any]: ...
    def bank_counts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def rank_counts(self, until: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def completed(self) -> npt.NDArray[np.int64]: ...
    def command_wires(self) -> npt.NDArray[np.int64]: ...
