"""The search for a machine: constructions, then the engine's searches by a surrogate, then moves; the judge decides.

What is returned is the order that the judge liked best of all it saw: two-optimal and every construction are among
them, unless a time limit ended their turn (docs/concepts/reordering-engine.md, "The machine as objective").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.blocks import by_tiles
from reorder.machine.shape import Int64Array, Judge, MachineShape
from reorder.machine.surrogate import Surrogate
from reorder.search.budget import CLOCKS, Budget, count_of
from reorder.search.intervals import Items
from reorder.search.objectives import weighted
from traces.base.errors import unknown_name
from traces.base.progress import Progress
from traces.work.network import Network

ROOMS = (1.0, 0.8, 0.65)  # shares of a cache that rows may fill: streams of connections pass through it as well
TILES = (0.15, 0.25, 0.35, 0.5, 0.65, 0.8)  # of a cache's rows, that the sources of a tile fill
AGAIN = 4  # constructions that are made again for less room
JUDGED = 3  # of many candidates, those that the surrogate likes best
# Ends of the stages as shares of a time limit: constructions, searches by the engine; moves take the rest.
BUILT, SEARCHED = 0.3, 0.65
MOVES_PER_NEURON = 300  # of each of the engine's searches without a time limit
ROUNDS = 60  # of moves without a time limit, each of a 32nd of the connections
WARM, COOLING, WORSE, REACH = 0.3, 0.7, 1.01, 3000  # of a line filled; when the judge finds the order so much worse


@dataclass(frozen=True)
class MachineParameters:
    """rounds: of moves, each judged; None: until the time limit, or 60 without one.

    moves: of each of the engine's searches; None: by the time limit, or 300 per neuron without one. clock: what
    time_limit_s counts, 'wall' or 'cpu' seconds.
    """

    rounds: int | None = None
    moves: int | None = None
    clock: str = "wall"

    def __post_init__(self) -> None:
        count_of("rounds", self.rounds, 0)
        count_of("moves", self.moves, 0)
        if self.clock not in CLOCKS:
            raise unknown_name("clock", self.clock, CLOCKS)


@dataclass
class JudgedOrders:
    """Every order that was judged, and its value; the best one; the curve of best values."""

    network: Network
    shape: MachineShape
    judge: Judge
    budget: Budget
    surrogate: Surrogate
    progress: Progress | None = None
    best: Int64Array | None = None
    value: float = math.inf
    found_by: str = ""
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    judged: dict[bytes, float] = field(default_factory=dict)
    constructions: dict[str, float] = field(default_factory=dict)

    def offer(self, edges: Int64Array, found_by: str) -> float:
        """Judge an order, keep it if it is the best so far, and let the surrogate learn from it."""
        key = edges.tobytes()
        if key not in self.judged:
            value = self.judge(edges)
            self.judged[key] = value
            self.surrogate.learn(self.surrogate.counts(edges), value)
            if value < self.value:
                self.best, self.value, self.found_by = edges, value, found_by
                self.curve.append((len(self.judged), self.budget.spent(), value))
            if self.progress is not None:
                limit = self.budget.limit_s
                share = round(1000 * min(1.0, self.budget.spent() / limit)) if limit else len(self.judged)
                self.progress(share, 1000 if limit else None, f"{self.value:.6g}")
        return self.judged[key]

    def before(self, share: float) -> bool:
        """Whether less than this share of the time limit is spent; always without one."""
        return self.budget.limit_s is None or self.budget.spent() < share * self.budget.limit_s


def order_for_machine(
    network: Network,
    shape: MachineShape,
    judge: Judge,
    parameters: MachineParameters,
    *,
    holds: Callable[[Int64Array], bool],
    given: Sequence[tuple[str, Int64Array]] = (),
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
) -> Ordering:
    """Return the best order that the judge saw. parameters of the result: found_by, `judged` orders, `value`,
    two-optimal's value and the best construction with its own.

    holds: whether the layout can store an order; others are not judged. given: (name, order) to begin with; of the
    constructions, two-optimal alone is then judged. Deterministic without a time limit.
    """
    budget = Budget(time_limit_s, parameters.clock)
    seen = JudgedOrders(network, shape, judge, budget, Surrogate(network, shape), progress)
    items = Items(network)
    task = Task(shape.memory, shape.policy, shape.pinning, seed=seed, prepared=items)
    for name, edges in given:
        if holds(edges):
            seen.offer(edges, name)
    construct(seen, task, holds, only_plain=bool(given))
    if shape.cache is not None:
        less_room(seen, task, holds)
    if holds(_scattered(network)):  # a layout that needs whole rows ends it here: what follows cuts them
        search(seen, task, parameters)
        if shape.cache is not None:
            move(seen, seed, parameters)
    assert seen.best is not None
    named = min(seen.constructions, key=lambda name: seen.constructions[name])
    found: dict[str, Any] = {
        "found_by": seen.found_by,
        "value": seen.value,
        "two_optimal": seen.constructions["two-optimal"],
        "best_construction": named,
        "best_construction_value": seen.constructions[named],
        "judged": len(seen.judged),
        "memory": shape.memory,
    }
    curve = (*seen.curve, (len(seen.judged), budget.spent(), seen.value))
    return Ordering(seen.best, "auto", found, seed, curve, truncated=time_limit_s is not None)


def _scattered(network: Network) -> Int64Array:
    """Return an order of the connections (not topological) that cuts rows wherever it can."""
    return np.argsort(network.sources, kind="stable")


def construct(seen: JudgedOrders, task: Task, holds: Callable[[Int64Array], bool], only_plain: bool) -> None:
    """Judge every construction, two-optimal first; those of `auto` come before the others. only_plain: the first."""
    methods = [(name, ORDERINGS[name]) for name in ORDERINGS]
    methods = [(name, m) for name, m in methods if not (m.item.searches or m.item.extra is not None or m.required)]
    methods.sort(key=lambda one: math.inf if one[1].item.portfolio is None else one[1].item.portfolio)
    for name, entry in methods:
        suits = entry.item.suits is None or entry.item.suits(seen.network)
        if suits and (not seen.constructions or (seen.before(BUILT) and not only_plain)):
            edges = entry.item(seen.network, replace(task, prepared=None), entry.make_parameters({})).edges
            if holds(edges):
                seen.constructions[name] = seen.offer(edges, name)


def less_room(seen: JudgedOrders, task: Task, holds: Callable[[Int64Array], bool]) -> None:
    """Judge the best constructions for a smaller memory, and the tiles that the surrogate likes best."""
    names = sorted(seen.constructions, key=lambda name: seen.constructions[name])[:AGAIN]
    for share in ROOMS[1:]:
        smaller = replace(task, memory=max(3, round(share * task.memory)))
        for name in names:
            if seen.before(BUILT + 0.05):
                entry = ORDERINGS[name]
                edges = entry.item(seen.network, smaller, entry.make_parameters({})).edges
                if holds(edges):
                    seen.offer(edges, f"{name} with {smaller.memory}")
    tried = [(seen.surrogate.predict(seen.surrogate.counts(edges)), name, edges)
             for name, edges in tiles(seen, task) if holds(edges)]  # fmt: skip
    for _, name, edges in sorted(tried, key=lambda one: one[0])[:JUDGED]:
        seen.offer(edges, name)


def tiles(seen: JudgedOrders, task: Task) -> Iterator[tuple[str, Int64Array]]:
    """Yield tiles whose sources fill some of a cache, the targets of a tile one by one or a line of them at a time."""
    cache = seen.shape.cache
    assert cache is not None
    line = max(1, cache.line_bytes // cache.rows[1])
    for share in TILES:
        sources = max(1, round(share * task.memory / line)) * line
        for targets, outer in ((1, "sources"), (line, "targets"), (4 * line, "targets")):
            if seen.before(BUILT + 0.1):
                yield f"tiles of {sources} sources", by_tiles(seen.network, targets, sources, outer)


def search(seen: JudgedOrders, task: Task, parameters: MachineParameters) -> None:
    """Let the engine anneal by runs and rows moved as the surrogate weighs them, for several sizes of a cache."""
    cache = seen.shape.cache
    if cache is not None and cache.rows_share_lines:
        return  # the engine knows neurons, not lines
    entry = ORDERINGS["auto"]
    rooms = (1.0,) if cache is None else ROOMS
    choices = [(room, times) for room in rooms for times in ((0.0, 1.0) if cache is None else (1.0, 5.0))]
    ends = 1.0 if cache is None else SEARCHED
    for number, (room, times) in enumerate(choices):
        if not seen.before(ends):
            return
        run = times * seen.surrogate.run_in_io
        limit = None
        if seen.budget.limit_s is not None:
            limit = max(1e-3, (ends * seen.budget.limit_s - seen.budget.spent()) / (len(choices) - number))
        moves = parameters.moves
        if moves is None and limit is None:
            moves = MOVES_PER_NEURON * seen.network.n_neurons
        made = entry.make_parameters({"moves": moves, "clock": parameters.clock})
        given = replace(
            task, memory=max(3, round(room * task.memory)), time_limit_s=limit, prepared=None,
            objective=weighted(run, 1.0) if run else "io",
        )  # fmt: skip
        seen.offer(entry.item(seen.network, given, made).edges, f"auto with {given.memory}, run = {run:.3g} I/Os")


def move(seen: JudgedOrders, seed: int, parameters: MachineParameters) -> None:
    """Move pieces of the best order by the surrogate's counts, kept up to date; judge and fit after every round."""
    assert seen.best is not None and seen.shape.cache is not None
    surrogate, kernel = seen.surrogate, seen.shape.cache.kernel(seen.network, seen.best, seed)
    moves, warm, done = max(64, seen.network.n_connections // 32), WARM, 0
    rounds = ROUNDS if parameters.rounds is None and seen.budget.limit_s is None else parameters.rounds
    while (rounds is None or done < rounds) and not seen.budget.over:
        kernel.weigh(surrogate.weights[:-1].copy())
        heat = max(warm * surrogate.weights[0], 1e-12 * seen.value)
        if seen.network.n_connections < 2 or not kernel.run(moves, heat, heat, REACH):
            break
        kernel.recount()
        if seen.offer(kernel.order, "moves on it") > WORSE * seen.value:
            kernel.replace(seen.best)
            warm *= COOLING
        done += 1
