"""Greedy orders of the literature: EGO (Kamatar 2023, Algorithm 3) and GO (Wei et al. 2016; Algorithm 2 there)."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from cython_ext.edges.greedy import Ego, go_ranks
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import by_target, grouped, sorted_by
from reorder.edges.search.budget import Budget, check_counts
from traces.networks.network import Int64Array, Network

CHECK_S = 0.02  # between two looks at the clock
# What a connection takes before EGO's first step and after its last (measured at 1e7); a tolerated overrun in seconds.
BEFORE_US, AFTER_US, OVERRUN_S = 0.3, 0.1, 0.5
PORTFOLIO_DEGREE = 8  # connections a neuron, above which EGO takes longer than orders that have fewer I/Os


@dataclass(frozen=True)
class WindowParameters:
    """window: how many of the last processed ones count; None is the memory size M."""

    window: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, window=1)


@ORDERINGS.register(
    "ego",
    summary="greedily the connection nearest to the last few (Kamatar 2023)",
    parameters=WindowParameters,
    portfolio=2.9,
    suits=lambda network: network.n_connections <= PORTFOLIO_DEGREE * network.n_neurons,
    effort=0.6,
)
def ego(network: Network, task: Task, parameters: WindowParameters) -> Ordering:
    """Run Algorithm 3 of Kamatar 2023 as docs/concepts/orderings.md reads it; the published listing leaves steps out.

    Each connection has a priority (k1, k2), at first (-in-degree of its source, 0). On processing (u, v), siblings
    (u, *) and (*, v) get k2 + 1 and successors (v, *) get k1 + 1 and k2 + 1; when the window is full, the connection
    leaving it takes its k2 contributions back. The largest (k1, k2) is next, ties to the smallest index. k1 is 0 for
    connections that may be processed and negative for all others, and k2 is a sum of two counts of the window per
    neuron, so nothing is queued per connection.

    O(W (average in- and out-degree + log N)) time, a logarithm for hubs; O(W) memory. When time is up, the rest follows
    by depth; all of it where the limit is shorter than what has to be done before the first step.
    """
    w = network.n_connections
    window = min(task.memory if parameters.window is None else parameters.window, w)
    limit = math.inf if task.time_limit_s is None else task.time_limit_s
    # what follows the last step ends within the limit too, or soon after it
    deadline = time.monotonic() + limit - max(0.0, AFTER_US * 1e-6 * w - OVERRUN_S)
    if (BEFORE_US + AFTER_US) * 1e-6 * w > limit:
        return Ordering(finished_by_depth(network, np.empty(0, np.int64)), "ego", {"window": window}, truncated=True)
    out, into = grouped(network, network.sources), grouped(network, network.targets)
    state = Ego(network.sources, network.targets, *out, *into, window)
    done, chunk = 0, 16
    while done < w and (before := time.monotonic()) < deadline:
        done = state.run(chunk)
        took = time.monotonic() - before  # on a hub, one step may look at all connections of its target
        chunk = max(1, min(4 * chunk, 16384, int(chunk * CHECK_S / max(took, 1e-6))))
        if task.progress is not None:
            task.progress(done, w, "")
    edges = state.result()
    if done < w:
        edges = finished_by_depth(network, edges[:done])
    return Ordering(edges, "ego", {"window": window}, truncated=done < w)


def finished_by_depth(network: Network, begun: Int64Array) -> Int64Array:
    """Return `begun` followed by the connections it lacks, target by target in order of depth. O(W + N log N)."""
    left = np.ones(network.n_connections, bool)
    left[begun] = False
    rest = by_target(network, network.depth)
    return np.concatenate((begun, rest[left[rest]]))


@ORDERINGS.register(
    "go",
    summary="neurons with common sources near each other, layer after layer (Wei et al. 2016)",
    parameters=WindowParameters,
    effort=1.2,
)
def go(network: Network, task: Task, parameters: WindowParameters) -> Ordering:
    """Sort by depth of target, GO's rank of target, GO's rank of source. When time is up, the rest as numbered.

    GO places next the neuron with the most connections to, and common sources with, the last `window` neurons placed.
    It knows no direction of time, so connections follow it only within a depth.
    """
    n, s, t = network.n_neurons, network.sources, network.targets
    window = min(task.memory if parameters.window is None else parameters.window, n)
    budget = Budget(task.time_limit_s)

    def go_on(placed: int) -> bool:
        if task.progress is not None:
            task.progress(placed, n, "")
        return not budget.over

    placed = go_ranks(s, t, *grouped(network, s), *grouped(network, t), window, go_on)
    rank = np.full(n, -1, np.int64)
    rank[placed] = np.arange(len(placed))
    rank[rank < 0] = np.arange(len(placed), n)
    edges = sorted_by(network.depth[t], rank[t], rank[s])
    return Ordering(edges, "go", {"window": window}, truncated=len(placed) < n)
