"""Can a network be built by Compact Growth with memory M, that is, run with W + N reads and S writes (Theorem 2)?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reorder.base import Ordering, Task
from reorder.edges.bounds.bounds import cores, lower_bound
from reorder.edges.search.base_orders import demanded_order, own_is_topological, sorted_by, two_optimal_order
from reorder.edges.search.objectives import io
from traces.networks.network import Network


@dataclass(frozen=True)
class CompactGrowth:
    """answer: 'yes' (then `ordering` does it), 'no' (then `reason` proves it) or 'unknown'."""

    answer: str
    ordering: Ordering | None
    reason: str


def compact_growth(network: Network, memory: int, *, candidates: tuple[Ordering, ...] = ()) -> CompactGrowth:
    """Return whether M suffices for no value to be read or written twice.

    Yes: one of `candidates` (say, of a search), of the network's own order if it is topological, and of the natural
    orders has W + N + S I/Os under MIN, which is exact for an order. No: residence times of staying values are a path
    decomposition of bags of at most M - 1, so no part of the network may have all degrees above M - 2, nor may a bound
    of edges.bounds.bounds exceed W + N + S. Deciding every network is NP-hard, so 'unknown' remains. O(W) and the
    bounds.
    """
    task = Task(memory)
    core = int(cores(network).max())
    if core > memory - 2:
        return CompactGrowth("no", None, f"a part of the network has all degrees at least {core} > M - 2")
    bound = lower_bound(network, memory)
    if bound.extra:
        return CompactGrowth("no", None, f"at least {bound.extra} extra I/Os ({bound.argument})")
    tried = list(candidates)
    if own_is_topological(network):
        tried.append(Ordering(np.arange(network.n_connections), "own"))
    s, t = network.sources, network.targets
    tried += [
        Ordering(two_optimal_order(network), "two-optimal"),
        Ordering(demanded_order(network), "depth-first"),
        Ordering(sorted_by(network.depth[s], s, t), "by-source"),
    ]
    for ordering in tried:
        if io("min").evaluate(network, ordering, task) == bound.total:
            return CompactGrowth("yes", ordering, f"the order {ordering.method!r} has W + N + S I/Os")
    return CompactGrowth("unknown", None, "no order tried does it, and no proof is known that none does")
