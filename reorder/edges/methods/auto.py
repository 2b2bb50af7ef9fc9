"""The portfolio: every construction that may win, then the search on what is left of the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace

from reorder.base import ORDERINGS, Method, Ordering, Task
from reorder.edges.bounds.objective import least_objective
from reorder.edges.methods.residency import search
from reorder.edges.search.budget import Best, Budget, Scorer, count_of
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import places
from reorder.edges.search.lru_touch import applies, offer_refreshed
from reorder.edges.search.plans import plan_search
from reorder.edges.search.rank_orders import offer_along, tilings
from reorder.edges.search.residency import ResidencyParameters
from traces.networks.network import Network

_OF_THE_SEARCH = {field.name for field in fields(ResidencyParameters)}
# Of the time limit, for constructions; until sweeps end that found locality; for all where there is locality, under
# MIN and under policies that do not see the future, where the search gains more.
CONSTRUCTED, SWEPT, LOCAL, LOCAL_AGED = 0.1, 0.35, 0.75, 0.6
# Plans of what to fuse on a local network: the time limit's share until which they are made, and until which they are
# changed; most of them; how many the search may start from.
FUSED_UNTIL, CHANGED_UNTIL, PLANS, STARTS = 0.5, 0.7, 400, 8
# Plans are given up that leave so many times more above the bound than the best construction, once there is one of
# single depths, and once there are those of fused ones: on RadiX-Nets, which have smooth coordinates but no strips.
ALONE, PROMISING = 3.0, 1.25
# Plans of single depths that leave more a neuron than this, every value written and read once more, have strips whose
# fronts do not fit: others are made only if nothing else is better.
SPILLED = 2.0
STRIPS = (2, 3, 4)  # of outputs, tried besides under policies that do not see the future
# Constructions of this effort are left out where plans leave less than such a share of what all quick ones leave (under
# MIN, under other policies), or where the last one of this effort left so many times more than the best.
SLOW, FAR_BELOW, FAR_BELOW_AGED, BEHIND = 1.0, 0.6, 0.45, 1.08


@dataclass(frozen=True)
class AutoParameters:
    """moves: steps of the search; None: until the time limit, or 2000 per neuron without one.

    starts: independent searches, each with all the moves, a seed and a temperature of its own. workers: processes that
    share them. partition: also start from blocks by hypergraph partitioning (extra 'partition').
    """

    moves: int | None = None
    starts: int = 1
    workers: int = 1
    partition: bool = False

    def __post_init__(self) -> None:
        count_of("moves", self.moves, 0)
        count_of("starts", self.starts, 1)
        count_of("workers", self.workers, 1)


def fuse(items: Items, best: Best, bound: float) -> bool:
    """Look for what to fuse on a network with locality; return whether plans suit it.

    The plan of single depths comes first; where it is far above the constructions, no others are made.
    """
    plans = plan_search(items, best.task.memory)
    if plans is None:
        return False
    ends, others = FUSED_UNTIL * (best.task.time_limit_s or math.inf), best.value - bound

    def left() -> float:
        return min(plans.values.values()) - bound

    most = min(ALONE * others, SPILLED * len(items.network.in_degree))
    plans.fused(best, lambda _: best.budget.spent() >= ends or best.value <= bound or (plans.judged and left() > most))
    if not best.task.sees_future and best.value > bound:
        offer_strips(items, best, bound, ends)
    return plans.judged and left() <= ALONE * others


def offer_strips(items: Items, best: Best, bound: float, ends: float) -> None:
    """Offer strips of outputs with their receptive fields, until second `ends`.

    LRU and RR keep what was made last, and pulling uses it then.
    """
    positions, before = places(items), best.value
    assert positions is not None
    for columns in STRIPS:
        for way in ("pull", "follow"):
            if best.budget.spent() < ends:
                offer_along(items, best, bound, tilings(positions, (1,), (columns,)), way)
    if best.value < before and best.edges is not None:
        items.orders.append(best.edges)


def start_from_plans(items: Items, best: Best, bound: float) -> None:
    """Let the search start from the best plans unless they are far above others; change the best if nothing beats it.

    What does not pay as a plan may as a start: the search has fewer slots than the memory has.
    """
    plans = plan_search(items, best.task.memory)
    if plans is None or min(plans.values.values(), default=math.inf) - bound > PROMISING * (best.value - bound):
        return
    ends = CHANGED_UNTIL * (best.task.time_limit_s or math.inf)
    if min(plans.values.values()) <= best.value:
        plans.walk(best, lambda tried: tried >= PLANS or best.budget.spent() >= ends or best.value <= bound)
    items.orders += plans.orders(STARTS)
    items.planned = True


def portfolio() -> list[str]:
    """Return the methods that declare a place in the portfolio, in its order."""
    known = [(entry.item.portfolio, name) for name, entry in ORDERINGS.sound().items()]
    return [name for _, name in sorted((place, name) for place, name in known if place is not None)]


def constructions(network: Network, parameters: AutoParameters) -> Iterator[tuple[str, Method]]:
    """Yield the constructions to try, in the order that they declare; those of an extra only if a parameter of the
    extra's name asks for them. Whether one suits the network is found out when its turn comes."""
    for name in portfolio():
        method = ORDERINGS[name].item
        asked_for = method.extra is None or getattr(parameters, method.extra, False)
        if asked_for and (method.suits is None or method.suits(network)):
            yield name, method


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
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    bound = least_objective(network, task)
    items = Items(network)
    of_local = LOCAL if task.sees_future else LOCAL_AGED
    # where items have few connections the search has better use for the time than blocks, and sweeps may beat plans
    few = items.in_blocks and task.sees_future and parameters.moves != 0
    far_below = FAR_BELOW if task.sees_future else FAR_BELOW_AGED
    found_by, looked, local, suited, quick, slow = "", False, False, False, math.inf, 0.0

    def hopeless() -> bool:
        """Whether one more construction that takes long is not worth it, as plans leave far less than others."""
        left = best.value - bound
        return left < far_below * (quick - bound) or left * BEHIND < slow - bound

    for name, method in constructions(network, parameters):
        # two-optimal is always there; the others may take a share of the budget, the search has better use for the rest
        share = of_local if local else SWEPT if method.start else CONSTRUCTED
        left = share * (task.time_limit_s or math.inf) - budget.spent()
        if best.edges is not None and (best.value <= bound or budget.over):
            break
        if best.edges is not None and left <= 0:
            if looked:
                break
            continue  # whether there is locality is worth more
        if method.start and not looked:
            looked, local = True, places(items) is not None
            before = best.value
            suited = local and fuse(items, best, bound)
            found_by = "sweep" if best.value < before else found_by
            left = (of_local if local else share) * (task.time_limit_s or math.inf) - budget.spent()
            if best.value <= bound or (local and left <= 0 and best.value < before):  # else one sweep, however late
                break
        if method.only_local and not local:
            continue
        if ((few and method.start) or local) and not method.local:
            continue
        planned = method.start and suited and not few  # plans try all that sweeps do
        if local and (planned or (method.effort >= SLOW and hopeless())):
            continue
        before = best.value
        best.work += 1
        entry = ORDERINGS[name]
        limit = None if task.time_limit_s is None else max(left, 1e-9)
        asked = replace(task, time_limit_s=limit, prepared=items)
        edges = method(network, asked, entry.make_parameters({})).edges
        value = best.offer(edges)
        if method.start:
            items.orders.append(edges)
        elif method.effort < SLOW:
            quick = min(quick, value)
        else:
            slow = value
        found_by = name if best.value < before else found_by
    searched = best.value > bound and not budget.over
    if searched and parameters.moves != 0:
        before = best.value
        start_from_plans(items, best, bound)
        found_by = "sweep" if best.value < before else found_by
    if best.value > bound and not budget.over:
        before = best.value
        shared = {name: value for name, value in asdict(parameters).items() if name in _OF_THE_SEARCH}
        if applies(best) and best.edges is not None:
            offer_refreshed(best, network, best.edges)
        search(items, best, ResidencyParameters(**shared), budget.left())
        found_by = "residency" if best.value < before else found_by
    truncated = task.time_limit_s is not None and searched and (parameters.moves is None or budget.over)
    return best.ordering("auto", {"found_by": found_by}, truncated)
