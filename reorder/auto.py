"""The portfolio: every construction that may win, then the search on what is left of the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder import natural
from reorder.base import METHODS, Ordering, Task
from reorder.blocks import BlocksParameters, TilesParameters, blocks, by_frontier, tiles
from reorder.budget import Best, Budget, Scorer, at_least
from reorder.intervals import Items
from reorder.residency import ResidencyParameters, anneal
from reorder.stationary import StationaryParameters, roll
from traces.network import Network


@dataclass(frozen=True)
class AutoParameters:
    """moves: work units of the search; None: until the time limit, or 2000 per neuron without one.

    clock: what time_limit_s counts, 'wall' or 'cpu' seconds.
    """

    moves: int | None = None
    clock: str = "wall"

    def __post_init__(self) -> None:
        at_least("moves", self.moves, 0)


def lower_bound(network: Network) -> int:
    """Return W + N + S (Theorem 1, Gleinig et al. 2023): no order does fewer I/Os."""
    touched = network.touched
    return network.n_connections + int(touched.sum()) + int((touched & network.is_output).sum())


def own_order(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the network's own order where it is topological, else two-optimal."""
    position = np.arange(network.n_connections)
    last_in = np.full(network.n_neurons, -1, np.int64)
    np.maximum.at(last_in, network.targets, position)
    own = bool((last_in[network.sources] < position).all())
    return Ordering(position, "own") if own else natural.two_optimal(network, task, None)


def constructions(network: Network, items: Items, best: Best) -> list[tuple[str, Callable[[], None]]]:
    """Return (name, offer it) of the orders to try: the cheap and safe ones first, then the likely winners."""
    task = best.task

    def by(method: Any, parameters: Any = None) -> Callable[[], None]:
        return lambda: _offer(best, method(network, task, parameters).edges)

    return [
        ("two-optimal", by(natural.two_optimal)),
        ("own", by(own_order)),
        ("depth-first", by(natural.depth_first)),
        ("frontier", lambda: _offer(best, by_frontier(items))),
        ("output-stationary", lambda: roll(items, best, StationaryParameters())),
        ("blocks", by(blocks, BlocksParameters())),
        ("tiles", by(tiles, TilesParameters())),
    ]


def _offer(best: Best, edges: npt.NDArray[np.int64]) -> None:
    best.offer(edges)


@METHODS.register(
    "auto", summary="a portfolio within its budget: constructions, then annealing", parameters=AutoParameters
)
def auto(network: Network, task: Task, parameters: AutoParameters) -> Ordering:
    """Return the best order found under the task's objective; never worse than two-optimal."""
    budget = Budget(task.time_limit_s, parameters.clock)
    best = Best(Scorer(network, task), budget, task)
    # A policy's I/Os have a bound worth stopping at; other objectives are searched to the end of the budget.
    bound = lower_bound(network) if task.objective == "io" else -math.inf
    items = Items(network)
    found_by = ""
    for name, offer in constructions(network, items, best):
        # two-optimal is always there; the others may take a tenth of the budget, the search has better use for it
        if best.edges is not None and (best.value <= bound or budget.spent() > (task.time_limit_s or math.inf) / 10):
            break
        before = best.value
        best.work += 1
        offer()
        found_by = name if best.value < before else found_by
    searched = best.value > bound and not budget.over
    if searched:
        before = best.value
        search = ResidencyParameters(moves=parameters.moves, clock=parameters.clock)
        anneal(items, best, search, budget.left())
        found_by = "residency" if best.value < before else found_by
    truncated = task.time_limit_s is not None and searched and (parameters.moves is None or budget.over)
    return best.ordering("auto", {"found_by": found_by}, truncated)
