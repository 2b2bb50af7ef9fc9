"""slash-burn: hubs first, what falls off without them last, again and again (Lim, Kang and Faloutsos 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.bounds.objective import least_objective
from reorder.edges.search.budget import Budget, at_least
from reorder.edges.search.rank_orders import check_way, order_along
from traces.base.errors import InputError
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SlashBurnParameters:
    """hubs: share of all neurons that a round takes out. way: pull, push or follow; None: the best of them."""

    hubs: float = 0.005
    way: str | None = None

    def __post_init__(self) -> None:
        check_way(self.way)
        at_least("hubs", self.hubs, 0)
        if not 0 < self.hubs <= 1:
            raise InputError(f"hubs must be a share above 0 and at most 1, not {self.hubs}")


def slash_burn_rank(network: Network, hubs: float, budget: Budget) -> Int64Array:
    """Return int64[N]: SlashBurn's number of each neuron, directions ignored.

    A round takes the ceil(hubs N) neurons of the highest degrees out of the largest component; they get the lowest free
    numbers, the neurons of all other components the highest, small components last. O(W) per round, at most 1 / hubs
    rounds; where the budget ends, what is left comes by degree.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    s, t = network.sources, network.targets
    alive = np.arange(network.n_neurons)
    k = int(np.ceil(hubs * network.n_neurons))
    front: list[Int64Array] = []
    back: list[Int64Array] = []
    local = np.empty(network.n_neurons, np.int64)
    while len(alive) > k and not (front and budget.over):
        degree = np.bincount(s, minlength=network.n_neurons) + np.bincount(t, minlength=network.n_neurons)
        by_degree = alive[np.argsort(-degree[alive], kind="stable")]
        front.append(by_degree[:k])
        alive = np.sort(by_degree[k:])
        local[:] = -1
        local[alive] = np.arange(len(alive))
        left = (local[s] >= 0) & (local[t] >= 0)
        s, t = s[left], t[left]
        graph = coo_array((np.ones(len(s), np.int8), (local[s], local[t])), (len(alive), len(alive)))
        _, part = connected_components(graph, directed=False)
        size = np.bincount(part)
        largest = int(size.argmax())
        spokes = part != largest
        order = np.lexsort((alive[spokes], part[spokes], -size[part[spokes]]))
        back.append(alive[spokes][order])
        alive = alive[~spokes]
        left = part[local[s]] == largest
        s, t = s[left], t[left]
    degree = np.bincount(s, minlength=network.n_neurons) + np.bincount(t, minlength=network.n_neurons)
    order = np.concatenate((*front, alive[np.argsort(-degree[alive], kind="stable")], *back[::-1]))
    rank = np.empty(network.n_neurons, np.int64)
    rank[order] = np.arange(network.n_neurons)
    return rank


@ORDERINGS.register(
    "slash-burn",
    summary="along SlashBurn's numbers: hubs first, what falls off without them last",
    parameters=SlashBurnParameters,
    effort=1,
)
def slash_burn(network: Network, task: Task, parameters: SlashBurnParameters) -> Ordering:
    """Sweep over the network from its hubs to its spokes."""
    least, hubs = least_objective(network, task), parameters.hubs

    def ranks(budget: Budget) -> list[tuple[dict[str, Any], Int64Array]]:
        return [({"hubs": hubs}, slash_burn_rank(network, hubs, budget))]

    return order_along("slash-burn", network, task, least, ranks, parameters.way)
