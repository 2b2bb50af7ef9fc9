import numpy as np
import numpy.typing as npt

def distances(
    in_start: npt.NDArray[np.int32],
    in_source: npt.NDArray[np.int32],
    out_start: npt.NDArray[np.int64],
    out_target: npt.NDArray[np.int32],
    of_item: npt.NDArray[np.int32],
    of_source: npt.NDArray[np.int32],
    n_neurons: int,
    firsts: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], int]: ...
def neighbour_sums(
    in_start: npt.NDArray[np.int32],
    in_source: npt.NDArray[np.int32],
    of_item: npt.NDArray[np.int32],
    of_source: npt.NDArray[np.int32],
    x: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...
def used_up(
    targets: npt.NDArray[np.int64],
    in_degree: npt.NDArray[np.int64],
    roots: npt.NDArray[np.int64],
    out_start: npt.NDArray[np.int64],
    out_edges: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]: ...
def latest_of_sources(
    in_start: npt.NDArray[np.int32],
    in_source: npt.NDArray[np.int32],
    item: npt.NDArray[np.int32],
    rank: npt.NDArray[np.int64],
    low: int = ...,
    high: int = ...,
) -> npt.NDArray[np.int64]: ...
def streamed(
    order: npt.NDArray[np.int32],
    out_start: npt.NDArray[np.int64],
    out_target: npt.NDArray[np.int32],
    out_place: npt.NDArray[np.int32],
    low: int,
    high: int,
    first: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.int32]: ...
def tridiagonal(
    diagonal: npt.NDArray[np.float64], off_diagonal: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
