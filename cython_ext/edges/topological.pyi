from typing import Any

import numpy as np
import numpy.typing as npt

def goes_down(ends: npt.NDArray[np.int32], depth: npt.NDArray[np.int64]) -> tuple[bool, bool]: ...
def by_target(ends: npt.NDArray[np.int32], place: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]: ...
def early_outputs(
    ends: npt.NDArray[np.int32], base: npt.NDArray[np.int64], moved: npt.NDArray[np.uint8]
) -> npt.NDArray[np.int64]: ...
def random_topological(
    targets: npt.NDArray[np.int64],
    in_degree: npt.NDArray[np.int64],
    out_start: npt.NDArray[np.int64],
    out_edges: npt.NDArray[np.int64],
    rng: Any,
) -> npt.NDArray[np.int64]: ...
def depth_first(
    sources: npt.NDArray[np.int64],
    roots: npt.NDArray[np.int64],
    in_start: npt.NDArray[np.int64],
    in_edges: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]: ...
def registers(
    sources: npt.NDArray[np.int64],
    by_depth: npt.NDArray[np.int64],
    in_start: npt.NDArray[np.int64],
    in_edges: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]: ...
def least_live(
    ends: npt.NDArray[np.int32],
    in_degree: npt.NDArray[np.int64],
    out_start: npt.NDArray[np.int64],
    out_edges: npt.NDArray[np.int64],
) -> npt.NDArray[np.int32]: ...
def components(
    ends: npt.NDArray[np.int32], depth: npt.NDArray[np.int64], base: npt.NDArray[np.int64], split: float, narrow: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
