from typing import Any

import numpy as np
import numpy.typing as npt

F32: int
BF16: int
INT8: int
NARROW: int
NARROW_OFFSETS: int
LINE_UNITS: int
UNIT_BYTES: int
LEVELS: tuple[str, ...]

def level_number(name: str = ...) -> int: ...
def _write_bytes(
    table: int,
    offsets: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    batch: npt.NDArray[np.float32],
    first: int,
    lanes: int,
    scales: npt.NDArray[np.float64],
    zeros: npt.NDArray[np.float64],
    level: int,
) -> None: ...
def _read_sums(
    arena: int,
    offsets: npt.NDArray[np.int64],
    scales: npt.NDArray[np.float64],
    out: npt.NDArray[np.float32],
    level: int,
) -> None: ...

class _Passes:
    def __init__(
        self,
        tables: Any,
        end: int,
        columns: int,
        kind: int,
        level: int,
        fed: Any,
        fed_to: Any,
        copied_from: Any,
        copied_to: Any,
        output_rows: Any,
        pitch: int,
        table_bytes: int,
        scales: Any,
    ) -> None: ...
    def pack(self, table: int, batch: npt.NDArray[np.float32], first: int, lanes: int) -> None: ...
    def execute(self, arena: int, table: int) -> None: ...
    def run(
        self, arena: int, table: int, batch: npt.NDArray[np.float32], out: Any, first: int, lanes: int, step: int
    ) -> None: ...
