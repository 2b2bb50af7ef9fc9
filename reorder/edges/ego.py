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

from cython_ext.edges.greedy import Ego
from reorder.base import ORDERINGS, Ordering, Task
from reorder.search.keys import grouped
from traces.base.errors import InputError
from traces.work.network import Network

LOOK_S = 0.02  # between two looks at the clock


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
    follows by id."""
    n, w = network.n_neurons, network.n_connections
    window = min(task.memory if parameters.window is None else parameters.window, w)
    own = np.arange(w)
    out_start, out_edges = grouped(network.sources, own, n)
    in_start, in_edges = grouped(network.targets, own, n)
    state = Ego(network.sources, network.targets, out_start, out_edges, in_start, in_edges, window)
    deadline = math.inf if task.time_limit_s is None else time.monotonic() + task.time_limit_s
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


def finished_by_depth(network: Network, begun: np.ndarray) -> np.ndarray:
    """Return `begun` followed by the connections it lacks, target by target in order of depth."""
    left = np.ones(network.n_connections, bool)
    left[begun] = False
    rest = np.flatnonzero(left)
    s, t = network.sources[rest], network.targets[rest]
    return np.concatenate((begun, rest[np.lexsort((s, t, network.depth[t]))]))
