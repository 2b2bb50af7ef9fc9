"""States from which a search may start; among them streamed ones: partial sums stay, finished neurons stream past."""

from __future__ import annotations

from dataclasses import dataclass

from reorder.base import Task
from reorder.edges.search.base_orders import demanded_order, two_optimal_order
from reorder.edges.search.budget import Budget
from reorder.edges.search.intervals import IntervalState, Items
from reorder.edges.search.locality import neuron_coordinates
from reorder.edges.search.streaming import Ends, Rival, fitting, plain_weights, shipped_weights, streamed

# Share of the M - 1 value slots that partial sums may fill. MIN throws out exactly the streamed values, so one slot is
# enough for them; LRU and RR also age partial sums, the more of them the sooner.
SHARES = {"min": (), "lru": (0.62, 0.5, 0.74), "rr": (0.41, 0.32, 0.5)}
CLEARLY = 0.95  # of the cost


@dataclass(frozen=True)
class StartCosts:
    """What starts with learned and with plain weights may take, and what an order made of a cut state takes (measured).

    connections, sets: over all sets of weights tried as starts, and most sets. learned_share: of the time limit, for
    learned starts. plain_share, plain_share_local: for the plain one beside them; the latter on local networks.
    plain_cost: of a plain start and natural ones, in times of the learned ones (1e7 connections). overrun_s,
    overrun: seconds, and share of the limit, by which an order may end late.
    sorts: an order of a cut state and its count, in times of sorting the connections by source (4 at 1e6, 5 to 7 at
    1e7, 11 to 20 at 1e8). connection_us, item_us: at least, so that no such sort is begun in vain; a connection takes
    more where less of the network is in caches: at_connections and power (at ten times as many two fifths more).
    """

    connections: int = 2_000_000
    sets: int = 4
    learned_share: float = 0.08
    plain_share: float = 0.04
    plain_share_local: float = 0.12
    plain_cost: float = 1.0
    overrun_s: float = 0.5
    overrun: float = 0.1
    sorts: int = 12
    connection_us: float = 0.1
    item_us: float = 0.4
    at_connections: float = 1e7
    power: float = 0.15


COSTS = StartCosts()
MANY_CONNECTIONS = 1_000_000  # above, one state may be all there is time for


def slot_choices(task: Task) -> list[int]:
    """Return the numbers of slots worth trying for the task's policy and memory, the most promising first."""
    free = task.memory - 1
    choices = [round(share * free) for share in SHARES[task.policy]] or [free - 1, free - 2]
    return list(dict.fromkeys(max(1, min(slots, free - 1)) for slots in choices))


def cheapest(items: Items, slots: int, states: list[IntervalState]) -> IntervalState:
    """Return the state that costs the least, by the residency model."""
    return states[0] if len(states) == 1 else min(states, key=items.search(slots, still=True).cost_of)


def first_unless_clearly(items: Items, slots: int, states: list[IntervalState]) -> IntervalState:
    """Return the state with the most promising weights, unless another is clearly cheaper.

    Annealing gets further from it than from others of the same cost (a 3-D stencil of 9^3 x 4, M = 60: 1.2 %).
    """
    other = cheapest(items, slots, states)
    cost = items.search(slots, still=True).cost_of
    return other if cost(other) < CLEARLY * cost(states[0]) else states[0]


def plain_state(items: Items, slots: int, budget: Budget) -> IntervalState:
    """Return the cheapest (by the residency model) of the state streamed with plain weights and two natural ones.

    On dense uniform layers nothing streamed beats two-optimal, on very sparse networks nothing beats depth-first. A
    streamed state that the budget ends is left out.
    """
    if (slots, "plain") not in items.known:
        states: list[IntervalState] = []
        for natural in (two_optimal_order, demanded_order):
            if not (states and len(items.edges) > MANY_CONNECTIONS and budget.over):
                states.append(items.state_of(natural(items.network), slots))
        state = None if budget.over else streamed(items, slots, plain_weights(), Ends(budget))
        items.known[slots, "plain"] = cheapest(items, slots, states if state is None else [*states, state])
    return items.known[slots, "plain"]


def before_orders(budget: Budget, items: Items) -> Budget:
    """Return the budget of making states: an order of one, counted, may end `overrun_s` + `overrun` past the limit."""
    beyond = COSTS.overrun_s + COSTS.overrun * (budget.limit_s or 0.0)
    n = items.network.n_connections
    each_us = COSTS.connection_us * (n / COSTS.at_connections) ** COSTS.power
    least = 1e-6 * (each_us * n + COSTS.item_us * len(items.items))
    before = budget.less(max(0.0, least - beyond))
    if budget.limit_s is None or before.over:
        return before
    items.in_sources  # noqa: B018 (it is laid out)
    return budget.less(max(0.0, max(least, COSTS.sorts * items.sorting_s) - beyond))


class OutOfTime(Exception):
    """The time limit leaves no time for a state to start from."""


def start_state(items: Items, slots: int, budget: Budget, task: Task) -> IntervalState:
    """Return the cheapest state from which a search may start: learned, plain, natural, or of `items.orders`.

    Those of `items.orders` have to be clearly cheaper: annealing gets further from other starts of the same cost.
    Where the limit comes before a learned start is whole, what was done of it is completed. Raises OutOfTime where even
    that would end later than a tenth and half a second past the limit.
    """
    if (slots, "start") not in items.known:
        began = budget.spent()
        learning = before_orders(budget, items)
        if learning.over:
            raise OutOfTime
        states: list[IntervalState] = []
        rival = Rival()
        for weights in fitting(shipped_weights(), items, task.policy, slots, COSTS.connections, COSTS.sets):
            if states and budget.limit_s is not None and budget.spent() - began > COSTS.learned_share * budget.limit_s:
                break
            state = streamed(items, slots, weights, Ends(learning, rival, cut=not states))
            if state is not None:
                states.append(state)
        if task.sees_future and states:
            states = [first_unless_clearly(items, slots, states)]
        spent = budget.spent() - began
        # plain ones cost less by the model, and their orders more
        enough = items.planned or (task.sees_future and neuron_coordinates(items) is not None)
        if not (states and enough) and COSTS.plain_cost * spent <= budget.left() + COSTS.overrun_s:
            share = COSTS.plain_share if neuron_coordinates(items) is None else COSTS.plain_share_local
            limit = None if budget.limit_s is None else min(budget.left(), share * budget.limit_s)
            states.append(plain_state(items, slots, Budget(limit)))
        items.known[slots, "start"] = cheapest(items, slots, states)
    best = items.known[slots, "start"]
    if items.orders:
        cost = items.search(slots, still=True).cost_of
        other = min((items.state_of(edges, slots) for edges in items.orders), key=cost)
        best = other if cost(other) < (1 if items.planned else CLEARLY) * cost(best) else best
    return best
