"""rcm: along the reverse Cuthill-McKee numbering of the whole network, which keeps neighbours' numbers close."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.bounds.objective import least_objective
from reorder.edges.search.rank_orders import check_way, order_along
from traces.networks.network import Network


@dataclass(frozen=True)
class RcmParameters:
    """way: pull, push or follow (docs/concepts/orderings.md); None: the best of them."""

    way: str | None = None

    def __post_init__(self) -> None:
        check_way(self.way)


def rcm_rank(network: Network) -> npt.NDArray[np.int64]:
    """Return int64[N]: each neuron's reverse Cuthill-McKee number (Cuthill and McKee 1969; George 1971). O(W log d)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    s, t, n = network.sources, network.targets, network.n_neurons
    ends = (np.concatenate((s, t)), np.concatenate((t, s)))
    both_ways = coo_array((np.ones(2 * len(s), np.int8), ends), (n, n)).tocsr()
    rank = np.empty(n, np.int64)
    rank[reverse_cuthill_mckee(both_ways, symmetric_mode=True)] = np.arange(n)
    return rank


@ORDERINGS.register(
    "rcm",
    summary="along reverse Cuthill-McKee numbers of the whole network, directions ignored",
    parameters=RcmParameters,
    effort=4,
)
def rcm(network: Network, task: Task, parameters: RcmParameters) -> Ordering:
    """Sweep over the network as a breadth-first search from its edge meets it."""
    least = least_objective(network, task)
    return order_along("rcm", network, task, least, lambda _: [({}, rcm_rank(network))], parameters.way)
