"""What an edge ordering is, what it is asked for, and the registry of methods that make one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from traces.base.registry import Registry
from traces.work.checks import check_order
from traces.work.network import Network

__all__ = ["METHODS", "PINNINGS", "POLICIES", "Method", "Ordering", "Progress", "Task", "check_order"]

Progress = Callable[[int, int | None, str], None]  # (work done, total work or None, short text)

POLICIES = ("lru", "rr", "min")
PINNINGS = ("literal", "pin_both")


@dataclass(frozen=True)
class Task:
    """What an ordering method is asked for: the fast memory, the objective, the seed and the budget.

    memory: M, neuron values plus the connection in hand (Gleinig et al. 2023, section II); at least 3.
    objective: name or object of reorder.search.objectives; 'io' is reads plus writes under `policy`.
    time_limit_s: wall-clock limit; None means work units alone decide (then the result is deterministic).
    """

    memory: int
    policy: str = "min"
    pinning: str = "literal"
    objective: Any = "io"
    seed: int = 0
    time_limit_s: float | None = None
    progress: Progress | None = None


@dataclass(frozen=True, eq=False)
class Ordering:
    """An order of work. ``edges[k]`` is the index (in the network's own order) of the k-th processed connection.

    curve: best-so-far points (work units, seconds, objective) of a search, empty for a construction.
    truncated: a wall-clock limit ended the search, so another run may give another result.
    """

    edges: npt.NDArray[np.int64]
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    curve: tuple[tuple[int, float, float], ...] = ()
    truncated: bool = False


class Method(Protocol):
    """An ordering method: a function of a network, a task and its own frozen parameters."""

    def __call__(self, network: Network, task: Task, parameters: Any) -> Ordering: ...


METHODS: Registry[Method] = Registry("ordering", "edgewatt.orderings")
