from typing import Any

import numpy as np
import numpy.typing as npt

def first_bad_access(
    address: npt.NDArray[np.uint64], size: npt.NDArray[Any], op: npt.NDArray[np.uint8], limit: int
) -> int: ...
def compiled_policy(policy: Any) -> Any: ...

class CacheKernel:
    loads: int
    stores: int
    load_lookups: int
    store_lookups: int
    load_misses: int
    store_misses: int
    evictions: int
    writebacks: int
    fills: int
    through_writes: int
    def __init__(
        self,
        sets: int,
        ways: int,
        line_shift: int,
        policy: Any,
        needs_future: bool,
        through: bool,
        allocate: bool,
        seed: int,
    ) -> None: ...
    def set_future(self, next_use: npt.NDArray[np.int64]) -> None: ...
    def note_misses(self, missed: npt.NDArray[np.uint8]) -> None: ...
    def access(
        self, op: npt.NDArray[np.uint8], address: npt.NDArray[np.uint64], size: npt.NDArray[Any], emit: bool
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16], npt.NDArray[np.uint8], npt.NDArray[np.int64]] | None: ...
    def resident(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]: ...
    def occupancy(self) -> tuple[int, int]: ...
    def clean(self) -> None: ...
