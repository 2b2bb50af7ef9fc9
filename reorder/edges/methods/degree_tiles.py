"""degree-tiles: tiles of sources x targets, both sorted by degree, so that hubs share tiles."""

from __future__ import annotations

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.methods.blocks import TilesParameters, best_tiles
from reorder.edges.search.rank_orders import rank_by
from traces.networks.network import Network


@ORDERINGS.register(
    "degree-tiles",
    summary="tiles of sources x targets whose rows and columns come by degree; shapes tried out",
    parameters=TilesParameters,
    effort=0.5,
)
def degree_tiles(network: Network, task: Task, parameters: TilesParameters) -> Ordering:
    """Walk layer by layer over tiles as `tiles` does, neurons of a layer by falling degree."""
    rank = rank_by(-(network.in_degree + network.out_degree), np.arange(network.n_neurons))
    return best_tiles(network, task, "degree-tiles", parameters, rank)
