"""States from which a search may start; among them rolling ones: partial sums stay, finished neurons stream past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cython_ext.edges.stationary import rolling
from reorder.base import Task
from reorder.edges.search.base_orders import demanded_order, two_optimal_order
from reorder.edges.search.budget import Budget, at_least, count_of
from reorder.edges.search.intervals import IntervalState, Items
from reorder.edges.search.locality import places
from reorder.edges.search.streaming import Ends, Rival, fitting, shipped_weights, streamed

# Share of the M - 1 value slots that partial sums may fill. MIN throws out exactly the streamed values, so one slot is
# enough for them; LRU and RR also age partial sums, the more of them the sooner.
SHARES = {"min": (), "lru": (0.62, 0.5, 0.74), "rr": (0.41, 0.32, 0.5)}
WINDOW = 4096  # ready items looked at per opening
CLEARLY = 0.95  # of the cost


@dataclass(frozen=True)
class StartCosts:
    """What learned and rolling starts may take, and what an order made of a cut state takes (measured).

    connections, sets: over all sets of weights tried as starts, and most sets. learned_share: of the time limit, for
    learned starts. rolling_share, rolling_share_local: for rolling ones beside them; the latter on local networks.
    rolling_cost: of a rolling start and its first trial, in times of the learned ones (1e7 connections). overrun_s,
    overrun: seconds, and share of the limit, by which an order may end late.
    sorts: an order of a cut state and its count, in times of sorting the connections by source (4 at 1e6, 5 to 7 at
    1e7, 11 to 20 at 1e8). connection_us, item_us: at least, so that no such sort is begun in vain; a connection takes
    more where less of the network is in caches: at_connections and power (at ten times as many two fifths more).
    """

    connections: int = 2_000_000
    sets: int = 4
    learned_share: float = 0.08
    rolling_share: float = 0.04
    rolling_share_local: float = 0.12
    rolling_cost: float = 1.0
    overrun_s: float = 0.5
    overrun: float = 0.1
    sorts: int = 12
    connection_us: float = 0.1
    item_us: float = 0.4
    at_connections: float = 1e7
    power: float = 0.15


COSTS = StartCosts()
MANY_CONNECTIONS = 1_000_000  # above, only the first few settings are tried


@dataclass(frozen=True)
class StationaryParameters:
    """Settings of the rolling construction; None: tried out, the best under the objective is kept.

    slots: partial sums (and kept values) resident at once. keep: most finished values kept for targets to come.
    age: weight of the stages since opening against the connections left, when choosing which neuron to finish.
    degree: weight of the in-degree against shared sources, when choosing which neuron to open.
    """

    slots: int | None = None
    keep: int | None = None
    age: float | None = None
    degree: float | None = None

    def __post_init__(self) -> None:
        count_of("slots", self.slots, 1)
        count_of("keep", self.keep, 0)
        at_least("age", self.age, 0)
        at_least("degree", self.degree, 0)


def slot_choices(task: Task) -> list[int]:
    """Return the numbers of slots worth trying for the task's policy and memory, the most promising first."""
    free = task.memory - 1
    choices = [round(share * free) for share in SHARES[task.policy]] or [free - 1, free - 2]
    return list(dict.fromkeys(max(1, min(slots, free - 1)) for slots in choices))


def settings(slots: int, large: bool, given: StationaryParameters) -> Iterator[tuple[int, float, float]]:
    """Yield (keep, age, degree) to try, the most promising first."""

    def some(value: Any, choices: tuple[Any, ...]) -> tuple[Any, ...]:
        return choices if value is None else (value,)

    for keep in dict.fromkeys(some(given.keep, (0, slots // 10))):
        for age in some(given.age, (0.5,) if large else (0.5, 2.0)):
            for degree in some(given.degree, (0.5,) if large else (0.5, 0.25)):
                yield keep, age, degree


def construct(
    items: Items, slots: int, keep: int, age: float, degree: float, over: Callable[[], bool] | None = None
) -> IntervalState | None:
    """Return the state of one rolling construction; None where `over` ended it."""
    start, target = items.by_source
    opens, drops = rolling(
        items.start, items.source, start, target, items.own, items.item, slots, keep, age, degree, WINDOW, over
    )
    return IntervalState(opens, drops, slots) if len(drops) == len(items.items) else None


def cheapest(items: Items, slots: int, states: list[IntervalState]) -> IntervalState:
    """Return the state that costs the least, by the residency model."""
    return states[0] if len(states) == 1 else min(states, key=items.search(slots, still=True).cost_of)


def best_state(items: Items, slots: int, budget: Budget, given: StationaryParameters) -> tuple[IntervalState, int]:
    """Return the cheapest rolling state (by the residency model) among the settings, and how many were tried.

    The states of two natural orders are tried as well: on dense uniform layers nothing rolling beats two-optimal, on
    very sparse networks nothing beats depth-first.
    """
    tried = 0
    if (slots, given) not in items.known:
        states: list[IntervalState] = []
        large = len(items.edges) > MANY_CONNECTIONS
        for natural in (two_optimal_order, demanded_order):
            if not (states and large and budget.over):
                states.append(items.state_of(natural(items.network), slots))
        for setting in settings(slots, large, given):
            if tried and budget.over:
                break
            state = construct(items, slots, *setting, None if budget.limit_s is None else lambda: budget.over)
            tried += 1
            if state is None:
                break
            states.append(state)
        items.known[slots, given] = cheapest(items, slots, states)
    return items.known[slots, given], tried


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


def start_state(items: Items, slots: int, budget: Budget, policy: str) -> IntervalState:
    """Return the cheapest state from which a search may start: learned, rolling, natural, or of `items.orders`.

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
        for weights in fitting(shipped_weights(), items, policy, slots, COSTS.connections, COSTS.sets):
            if states and budget.limit_s is not None and budget.spent() - began > COSTS.learned_share * budget.limit_s:
                break
            state = streamed(items, slots, weights, Ends(learning, rival, cut=not states))
            if state is not None:
                states.append(state)
        spent = budget.spent() - began
        if not (states and items.planned) and COSTS.rolling_cost * spent <= budget.left() + COSTS.overrun_s:
            share = COSTS.rolling_share if places(items) is None else COSTS.rolling_share_local
            limit = None if budget.limit_s is None else min(budget.left(), share * budget.limit_s)
            states.append(best_state(items, slots, Budget(limit), StationaryParameters())[0])
        items.known[slots, "start"] = cheapest(items, slots, states)
    best = items.known[slots, "start"]
    if items.orders:
        cost = items.search(slots, still=True).cost_of
        other = min((items.state_of(edges, slots) for edges in items.orders), key=cost)
        best = other if cost(other) < (1 if items.planned else CLEARLY) * cost(best) else best
    return best
