"""raster: skewed raster orders over all layers, where the reader knows each neuron's place in a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.bounds.objective import least_objective
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import known_places
from reorder.edges.search.plans import PlanSearch
from reorder.edges.search.rank_orders import check_way, offer_along, rank_by
from reorder.edges.search.strips import Strips
from traces.networks.network import Network


@dataclass(frozen=True)
class RasterParameters:
    """way: pull, push or follow; None: all of them. plans: whether to fuse some layers only, in strips (as `sweep`)."""

    way: str | None = None
    plans: bool = True

    def __post_init__(self) -> None:
        check_way(self.way)


def has_pictures(network: Network) -> bool:
    """Whether places in a picture are known."""
    return known_places(network) is not None


def rasters(network: Network) -> Iterator[tuple[dict[str, Any], npt.NDArray[np.int64]]]:
    """Yield ranks by rows of pixels and by columns, later layers after earlier ones at the same place."""
    positions = known_places(network)
    assert positions is not None
    y, x = positions.T
    for name, outer, inner in (("rows", y, x), ("columns", x, y)):
        yield {"along": name}, rank_by(outer, inner, network.depth)


@ORDERINGS.register(
    "raster",
    summary="pixel by pixel over all layers at once, each as soon as its inputs are there; needs known positions",
    parameters=RasterParameters,
    suits=has_pictures,
)
def raster(network: Network, task: Task, parameters: RasterParameters) -> Ordering:
    """Sweep over the pictures of all layers with one front that leans as the windows of the layers ask.

    Two-optimal (way: none) where no reader gave the network positions.
    """
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    items, places = Items.of(network, task), known_places(network)
    if places is None:
        best.offer(two_optimal_order(network), way="none")
        return best.ordering("raster", best.parameters, False)
    least = least_objective(network, task)
    offer_along(items, best, least, rasters(network), parameters.way)
    if parameters.plans and parameters.way is None:
        ends = task.time_limit_s or math.inf
        plans = PlanSearch(Strips(items, places, task.memory))
        plans.fused(best, lambda tried: best.budget.spent() >= ends or best.value <= least)
    return best.ordering("raster", best.parameters, best.budget.over)
