"""The portfolio: every construction that may win, then the search on what is left of the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reorder.base import METHODS, Ordering, Task
from reorder.edges import natural
from reorder.edges.blocks import BlocksParameters, TilesParameters, blocks, frontier, tiles
from reorder.edges.hypergraph import PartitionParameters, partition
from reorder.edges.residency import search
from reorder.edges.stationary import StationaryParameters, roll, slot_choices
from reorder.limits.bounds import lower_bound
from reorder.search.budget import Best, Budget, Scorer, at_least
from reorder.search.intervals import Items
from reorder.search.objectives import make_objective
from reorder.search.residency import ResidencyParameters
from traces.work.network import Network

QUICK = 1 << 24  # operations (reorder.limits.bounds) that a bound worth stopping at may take: some milliseconds


@dataclass(frozen=True)
class AutoParameters:
    """moves: work units of the search; None: until the time limit, or 2000 per neuron without one.

    starts: independent searches, each with all the moves, a seed and a temperature of its own. workers: processes that
    share them. partition: also start from blocks by hypergraph partitioning (extra 'partition').
    clock: what time_limit_s counts, 'wall' or 'cpu' seconds.
    """

    moves: int | None = None
    starts: int = 1
    workers: int = 1
    partition: bool = False
    clock: str = "wall"

    def __post_init__(self) -> None:
        at_least("moves", self.moves, 0)
        at_least("starts", self.starts, 1)
        at_least("workers", self.workers, 1)


def least_objective(network: Network, task: Task) -> float:
    """Return a bound on the objective of every order: one run per computed neuron, and the I/O bound of each memory."""
    objective = make_objective(task.objective)
    io = sum(
        weight * lower_bound(network, memory, QUICK).total
        for weight, _, _, memory in (term.within(task) for term in objective.io)
    )
    return objective.runs * int((network.in_degree > 0).sum()) + io


def own_order(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the network's own order where it is topological, else two-optimal."""
    position = np.arange(network.n_connections)
    last_in = np.full(network.n_neurons, -1, np.int64)
    np.maximum.at(last_in, network.targets, position)
    own = bool((last_in[network.sources] < position).all())
    return Ordering(position, "own") if own else natural.two_optimal(network, task, None)


def constructions(network: Network, items: Items, best: Best, partitions: bool) -> list[tuple[str, Callable[[], None]]]:
    """Return (name, offer it) of the orders to try: the cheap and safe ones first, then the likely winners.

    Where neurons share sources in groups, blocks make a better start of the search than anything that rolls.
    """
    task = best.task

    def by(method: Any, parameters: Any = None, start: bool = False) -> Callable[[], None]:
        def offer() -> None:
            edges = method(network, task, parameters).edges
            best.offer(edges)
            if start:
                items.orders.append(edges)

        return offer

    return [
        ("two-optimal", by(natural.two_optimal)),
        *([("partition", by(partition, PartitionParameters(slot_choices(task)[0]), start=True))] if partitions else []),
        ("own", by(own_order)),
        ("depth-first", by(natural.depth_first)),
        ("frontier", by(frontier)),
        ("output-stationary", lambda: roll(items, best, StationaryParameters())),
        ("blocks", by(blocks, BlocksParameters(), start=True)),
        ("tiles", by(tiles, TilesParameters())),
    ]


@METHODS.register(
    "auto", summary="a portfolio within its budget: constructions, then annealing", parameters=AutoParameters
)
def auto(network: Network, task: Task, parameters: AutoParameters) -> Ordering:
    """Return the best order found under the task's objective; never worse than two-optimal."""
    budget = Budget(task.time_limit_s, parameters.clock)
    best = Best(Scorer(network, task), budget, task)
    bound = least_objective(network, task)
    items = Items(network)
    found_by = ""
    for name, offer in constructions(network, items, best, parameters.partition):
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
        given = {name: value for name, value in asdict(parameters).items() if name != "partition"}
        search(items, best, ResidencyParameters(**given), budget.left())
        found_by = "residency" if best.value < before else found_by
    truncated = task.time_limit_s is not None and searched and (parameters.moves is None or budget.over)
    return best.ordering("auto", {"found_by": found_by}, truncated)
