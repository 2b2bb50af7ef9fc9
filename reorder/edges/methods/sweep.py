"""Sweeps: orders that cross layers along the network's own smooth coordinates, for networks with locality.

Along a rank of the neurons, outputs are computed one after another with all that they need (pull), inputs are used up
one after another with all that this finishes (push), or targets are computed as their last input comes by (follow). All
need room for the front of the sweep only, not for a layer: what layer fusion in compilers does with tiles and line
buffers, here without knowing the shape of the layers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.bounds.objective import least_objective
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import places
from reorder.edges.search.plans import plan_search
from reorder.edges.search.rank_orders import offer_along
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]

PLACES_US = 0.3  # a connection: what it takes to look for locality (measured at 1e7)
SLANTS = (0.0, 1 / 16, 1 / 8)  # of the second coordinate against the first, both from 0 to 1 by rank


def ranks(items: Items) -> Iterator[tuple[float, Int64Array]]:
    """Yield (slant, int64[N]): ranks of neurons along straight sweeps over the network; none without locality."""
    positions = places(items)
    if positions is None:
        return
    n = len(positions)
    place = np.empty((n, 2))
    for k in range(2):
        place[np.argsort(positions[:, k], kind="stable"), k] = np.arange(n) / max(1, n - 1)
    for slant in SLANTS:
        rank = np.empty(n, np.int64)
        rank[np.argsort(place[:, 0] + slant * place[:, 1], kind="stable")] = np.arange(n)
        yield slant, rank


@ORDERINGS.register(
    "sweep",
    summary="crosses layers along smooth coordinates of the whole network; for convolutions and other local networks",
    portfolio=1.7,
    start=True,
    only_local=True,
)
def sweep(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the best of some sweeps under the objective; two-optimal without locality, or time to look for it."""
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    looks = task.prepared is not None or budget.left() > PLACES_US * 1e-6 * network.n_connections
    if looks:
        items = Items.of(network, task)
        least = least_objective(network, task)
        offer_along(items, best, least, (({"slant": slant}, rank) for slant, rank in ranks(items)))
        plans = plan_search(items, task.memory) if task.prepared is None else None  # a portfolio looks for plans itself
        if plans is not None:
            plans.fused(best, lambda tried: budget.over or best.value <= least)
    if best.edges is None:
        best.offer(two_optimal_order(network), slant=0.0, way="none")
    return best.ordering("sweep", best.parameters, budget.over or not looks)
