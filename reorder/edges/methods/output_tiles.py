"""output-tiles: tiles of outputs, each computed with its receptive field; values that two tiles share may stay."""

from __future__ import annotations

from dataclasses import dataclass

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.bounds.objective import least_objective
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer, count_of
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import places
from reorder.edges.search.rank_orders import offer_along, tilings
from traces.networks.network import Network

SIDES = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True)
class OutputTilesParameters:
    """Tiles along the first and along the second coordinate; None: tried out."""

    rows: int | None = None
    columns: int | None = None

    def __post_init__(self) -> None:
        count_of("rows", self.rows, 1)
        count_of("columns", self.columns, 1)


@ORDERINGS.register(
    "output-tiles",
    summary="tiles of outputs with their receptive fields, by known positions or smooth coordinates",
    parameters=OutputTilesParameters,
)
def output_tiles(network: Network, task: Task, parameters: OutputTilesParameters) -> Ordering:
    """Pull the outputs of one tile after another; two-optimal where the network has no locality."""
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    items = Items.of(network, task)
    positions = places(items)
    if positions is None:
        best.offer(two_optimal_order(network), rows=1, columns=1)
    else:
        rows, columns = ((given,) if given else SIDES for given in (parameters.rows, parameters.columns))
        offer_along(items, best, least_objective(network, task), tilings(positions, rows, columns), "pull")
    return best.ordering("output-tiles", best.parameters, best.budget.over)
