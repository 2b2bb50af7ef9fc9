"""The portfolio: every construction that may win, then the search on what is left of the budget."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace

from reorder.base import ORDERINGS, Method, Ordering, Task
from reorder.edges.residency import search
from reorder.limits.bounds import lower_bound
from reorder.search.budget import Best, Budget, Scorer, at_least
from reorder.search.intervals import Items
from reorder.search.objectives import make_objective
from reorder.search.residency import ResidencyParameters
from traces.work.network import Network

QUICK = 1 << 24  # operations (reorder.limits.bounds) that a bound worth stopping at may take: some milliseconds
_OF_THE_SEARCH = {field.name for field in fields(ResidencyParameters)}


@dataclass(frozen=True)
class AutoParameters:
    """moves: steps of the search; None: until the time limit, or 2000 per neuron without one.

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


def portfolio() -> list[str]:
    """Return the methods that declare a place in the portfolio, in its order."""
    known = [(entry.item.portfolio, name) for name, entry in ORDERINGS.sound().items()]
    return [name for _, name in sorted((place, name) for place, name in known if place is not None)]


def constructions(network: Network, parameters: AutoParameters) -> list[tuple[str, Method]]:
    """Return the constructions to try, in the order that they declare; those of an extra only if a parameter of the
    extra's name asks for them."""
    known = [(name, ORDERINGS[name].item) for name in portfolio()]
    return [
        (name, method)
        for name, method in known
        if (method.extra is None or getattr(parameters, method.extra, False))
        and (method.suits is None or method.suits(network))
    ]


@ORDERINGS.register(
    "auto",
    summary="a portfolio within its budget: constructions, then annealing",
    parameters=AutoParameters,
    searches=True,
    tries=portfolio,
    chooses=True,
    steps="moves",
)
def auto(network: Network, task: Task, parameters: AutoParameters) -> Ordering:
    """Return the best order found under the task's objective; never worse than two-optimal."""
    budget = Budget(task.time_limit_s, parameters.clock)
    best = Best(Scorer(network, task), budget, task)
    bound = least_objective(network, task)
    items = Items(network)
    found_by = ""
    for name, method in constructions(network, parameters):
        # two-optimal is always there; the others may take a tenth of the budget, the search has better use for it
        left = (task.time_limit_s or math.inf) / 10 - budget.spent()
        if best.edges is not None and (best.value <= bound or left <= 0):
            break
        before = best.value
        best.work += 1
        entry = ORDERINGS[name]
        limit = None if task.time_limit_s is None else max(left, 1e-9)
        edges = method(network, replace(task, time_limit_s=limit, prepared=items), entry.make_parameters({})).edges
        best.offer(edges)
        if method.start:
            items.orders.append(edges)
        found_by = name if best.value < before else found_by
    searched = best.value > bound and not budget.over
    if searched:
        before = best.value
        shared = {name: value for name, value in asdict(parameters).items() if name in _OF_THE_SEARCH}
        search(items, best, ResidencyParameters(**shared), budget.left())
        found_by = "residency" if best.value < before else found_by
    truncated = task.time_limit_s is not None and searched and (parameters.moves is None or budget.over)
    return best.ordering("auto", {"found_by": found_by}, truncated)
