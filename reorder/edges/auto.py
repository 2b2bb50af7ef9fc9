"""The portfolio: every construction that may win, then the search on what is left of the budget."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace

from reorder.base import ORDERINGS, Method, Ordering, Task
from reorder.edges.residency import search
from reorder.limits.objective import least_objective
from reorder.search.budget import Best, Budget, Scorer, count_of
from reorder.search.intervals import Items
from reorder.search.residency import ResidencyParameters
from reorder.search.strips import plan_search
from traces.work.network import Network

_OF_THE_SEARCH = {field.name for field in fields(ResidencyParameters)}
CONSTRUCTED, CONSTRUCTED_LOCAL = 0.1, 0.25  # of the time limit, for constructions; on networks with locality
# Plans of what to fuse on a local network: most, their share of the time limit, how many the search may start from.
PLANS, PLANS_SHARE, STARTS = 400, 0.5, 8
# Plans are given up that leave so many times more above the bound than the best construction after so many were tried:
# on RadiX-Nets, which have smooth coordinates but no strips, 1.46 times and more, on convolutions at most 1.05.
PROMISING, JUDGED = 1.25, 40


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
        count_of("moves", self.moves, 0)
        count_of("starts", self.starts, 1)
        count_of("workers", self.workers, 1)


def fuse(items: Items, best: Best, bound: float) -> None:
    """Look for what to fuse on a network with locality, and leave the best plans for the search to start from."""
    plans = plan_search(items)
    if plans is None:
        return
    ends = PLANS_SHARE * (best.task.time_limit_s or math.inf)
    enough = bound + PROMISING * (best.value - bound)

    def hopeless() -> bool:
        return min(plans.values.values(), default=math.inf) > enough

    def limit(tried: int) -> bool:
        over = tried >= PLANS or best.budget.spent() >= ends or best.value <= bound
        return over or (tried >= JUDGED and hopeless())

    plans.walk(best, limit)
    if not hopeless():
        items.orders += plans.orders(STARTS)
        items.planned = True


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
        # two-optimal is always there; the others may take a share of the budget, the search has better use for the rest
        local = items.facts.get("places") is not None
        if local and not method.local:
            continue
        share = CONSTRUCTED_LOCAL if local else CONSTRUCTED
        left = share * (task.time_limit_s or math.inf) - budget.spent()
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
    if searched and parameters.moves != 0:
        before = best.value
        fuse(items, best, bound)
        found_by = "sweep" if best.value < before else found_by
    if best.value > bound and not budget.over:
        before = best.value
        shared = {name: value for name, value in asdict(parameters).items() if name in _OF_THE_SEARCH}
        search(items, best, ResidencyParameters(**shared), budget.left())
        found_by = "residency" if best.value < before else found_by
    truncated = task.time_limit_s is not None and searched and (parameters.moves is None or budget.over)
    return best.ordering("auto", {"found_by": found_by}, truncated)
