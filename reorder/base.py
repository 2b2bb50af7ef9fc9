"""What an edge ordering is, what it is asked for, and the registry of methods that make one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from traces.errors import InputError
from traces.network import Network
from traces.registry import Registry

Progress = Callable[[int, int | None, str], None]  # (work done, total work or None, short text)

POLICIES = ("lru", "rr", "min")
PINNINGS = ("literal", "pin_both")


@dataclass(frozen=True)
class Task:
    """What an ordering method is asked for: the fast memory, the objective, the seed and the budget.

    memory: M, neuron values plus the connection in hand (Gleinig et al. 2023, section II); at least 3.
    objective: name or object of reorder.objectives; 'io' is reads plus writes under `policy`.
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


def check_order(network: Network, edges: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return `edges` as int64[W] after checking that it is a topological permutation of the network's connections.

    Topological: when connection (a, b) is processed, every connection into a has been processed before.
    Raises InputError naming the first position and connection at fault. O(W).
    """
    order = np.asarray(edges)
    if order.ndim != 1 or (order.size and not np.issubdtype(order.dtype, np.integer)):
        raise InputError(f"an edge order is a one-dimensional integer array, not {order.dtype} of shape {order.shape}")
    order = np.ascontiguousarray(order, dtype=np.int64)
    w = network.n_connections
    if len(order) != w:
        raise InputError(f"the order has {len(order)} entries, the network {w} connections")
    bad = np.flatnonzero((order < 0) | (order >= w))
    if bad.size:
        raise InputError(f"order position {bad[0]}: connection {order[bad[0]]} does not exist (0 to {w - 1})")
    position = np.full(w, -1, np.int64)
    position[order] = np.arange(w)
    if (position < 0).any():
        missing = int(np.flatnonzero(position < 0)[0])
        raise InputError(f"the order is no permutation: connection {missing} is missing, another one is repeated")
    last_in = np.full(network.n_neurons, -1, np.int64)
    np.maximum.at(last_in, network.targets, position)
    late = np.flatnonzero(last_in[network.sources] > position)
    if late.size:
        edge = int(late[np.argmin(position[late])])
        source, target = network.sources[edge], network.targets[edge]
        raise InputError(
            f"the order is not topological: position {position[edge]} processes connection {edge} "
            f"({source} -> {target}) before every connection into neuron {source} is done "
            f"(the last is at position {last_in[source]})"
        )
    return order
