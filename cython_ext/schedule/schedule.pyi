from typing import Any

import numpy as np
import numpy.typing as npt

RUNNING: int
SOLVED: int
EXHAUSTED: int
FULL: int
NO_MEMORY: int
NEVER: int
NO_STATE: int

class Graph:
    def __init__(
        self,
        before: Any,
        writes: Any,
        reads: Any,
        sizes: npt.NDArray[np.int64],
        work: npt.NDArray[np.int64],
        kept: npt.NDArray[np.uint8],
    ) -> None: ...
    def reversed(self) -> Graph: ...
    def with_sizes(self, sizes: npt.NDArray[np.int64]) -> Graph: ...
    def kahn(self, stack: bool) -> npt.NDArray[np.int32]: ...
    def greedy(self) -> npt.NDArray[np.int32]: ...

class Costs:
    def __init__(self, graph: Graph, capacity: int = ..., block_bytes: int = ...) -> None: ...
    def footprint(self, order: npt.NDArray[np.int32]) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def peak(self, order: npt.NDArray[np.int32]) -> int: ...
    def arena(self, order: npt.NDArray[np.int32], rule: int) -> tuple[int, npt.NDArray[np.int64]]: ...
    def traffic(self, order: npt.NDArray[np.int32], seconds: Any = None) -> tuple[int, int]: ...
    def transfers(
        self, order: npt.NDArray[np.int32], seconds: Any = None, most: int = ...
    ) -> npt.NDArray[np.int64]: ...
    def improve(
        self,
        best: npt.NDArray[np.int32],
        current: npt.NDArray[np.int32],
        kind: int,
        peak_cap: int,
        goal: int,
        evaluations: int,
        done_before: int,
        total: int,
        heat: float,
        random: npt.NDArray[np.uint64],
        seconds: Any = None,
    ) -> int: ...
    def random_orders(
        self, count: int, random: npt.NDArray[np.uint64], last: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]: ...

class Search:
    def __init__(
        self,
        graph: Graph,
        floor: int,
        upper: int,
        max_states: int,
        safe_moves: bool = ...,
        chain_length: int = ...,
        tie_rule: int = ...,
        max_children: int = ...,
    ) -> None: ...
    def best_first(self, max_expanded: int) -> int: ...
    def levels(self, max_expanded: int, max_level_states: int) -> int: ...
    @property
    def n_states(self) -> int: ...
    @property
    def n_expanded(self) -> int: ...
    @property
    def n_generated(self) -> int: ...
    @property
    def level(self) -> int: ...
    @property
    def lower_bound(self) -> int: ...
    @property
    def pruned_peak(self) -> int: ...
    @property
    def goal_peak(self) -> int | None: ...
    def order(self) -> npt.NDArray[np.int32] | None: ...
