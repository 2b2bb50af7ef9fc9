"""EGO, Edge Graph Ordering (Kamatar 2023, Algorithm 3): greedily the connection nearest to the last few.

The published listing leaves steps out; this is the reading of docs/concepts/orderings.md. Each connection has a
priority (k1, k2), at first (-in-degree of its source, 0). On processing (u, v), siblings (u, *) and (*, v) get k2 + 1
and successors (v, *) get k1 + 1 and k2 + 1; when the window is full, the connection leaving it takes its k2
contributions back. The largest (k1, k2) is next, ties going to the smallest connection index.

k1 is 0 for connections that may be processed and negative for all others, and k2 is a sum of two counts of the window
per neuron, so nothing has to be queued per connection: memory is linear in W.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cython_ext.edges.greedy import Ego
from cython_ext.edges.intervals import grouped
from reorder.base import ORDERINGS, Ordering, Task
from traces.base.errors import InputError
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]

LOOK_S = 0.02  # between two looks at the clock
# What a connection takes before the first step, and after the last (measured at 1e7); seconds past it that are fine.
BEFORE_US, AFTER_US, BEYOND_S = 0.3, 0.1, 0.5


@dataclass(frozen=True)
class WindowParameters:
    """window: how many of the last processed ones count; None is the memory size M."""

    window: int | None = None

    def __post_init__(self) -> None:
        if self.window is not None and (
            isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1
        ):
            raise InputError(f"window must be an integer of at least 1, not {self.window!r}")


@ORDERINGS.register(
    "ego",
    summary="greedily the connection nearest to the last few (Kamatar 2023)",
    parameters=WindowParameters,
    effort=2,
)
def ego(network: Network, task: Task, parameters: WindowParameters) -> Ordering:
    """Run Algorithm 3. O(W (average in- and out-degree + log N)) time, a logarithm for hubs; when time is up, the rest
    follows by depth. Where the limit is shorter than what has to be done before the first step, all of it does."""
    w = network.n_connections
    window = min(task.memory if parameters.window is None else parameters.window, w)
    limit = math.inf if task.time_limit_s is None else task.time_limit_s
    # what follows the last step ends within the limit too, or soon after it
    deadline = time.monotonic() + limit - max(0.0, AFTER_US * 1e-6 * w - BEYOND_S)
    if (BEFORE_US + AFTER_US) * 1e-6 * w > limit:
        return Ordering(finished_by_depth(network, np.empty(0, np.int64)), "ego", {"window": window}, truncated=True)
    (out_start, out_edges), (in_start, in_edges) = (_by(network, ends) for ends in (network.sources, network.targets))
    state = Ego(network.sources, network.targets, out_start, out_edges, in_start, in_edges, window)
    done, chunk = 0, 16
    while done < w and (before := time.monotonic()) < deadline:
        done = state.run(chunk)
        took = time.monotonic() - before  # on a hub, one step may look at all connections of its target
        chunk = max(1, min(4 * chunk, 16384, int(chunk * LOOK_S / max(took, 1e-6))))
        if task.progress is not None:
            task.progress(done, w, "")
    edges = state.result()
    if done < w:
        edges = finished_by_depth(network, edges[:done])
    return Ordering(edges, "ego", {"window": window}, truncated=done < w)


def _by(network: Network, ends: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return (start int64[n + 1], edges int64[W]): the connections grouped by one of their ends."""
    n = network.n_neurons
    start = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=n))))
    return start, grouped(ends.astype(np.int32), n).astype(np.int64)


def finished_by_depth(network: Network, begun: Int64Array) -> Int64Array:
    """Return `begun` followed by the connections it lacks, target by target in order of depth. O(W + N log N)."""
    n = network.n_neurons
    place = np.empty(n, np.int32)
    place[np.argsort(network.depth, kind="stable")] = np.arange(n, dtype=np.int32)
    by_source = grouped(network.sources.astype(np.int32), n)
    rest = grouped(place[network.targets], n, by_source).astype(np.int64)
    if len(begun):
        left = np.ones(network.n_connections, bool)
        left[begun] = False
        rest = rest[left[rest]]
    return np.concatenate((begun, rest))
