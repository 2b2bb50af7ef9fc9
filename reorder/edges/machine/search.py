"""The search for a machine: constructions, then searches by a surrogate, then moves; simulations decide.

What is returned is the best order of all that were simulated: two-optimal and every construction are among
them, unless a time limit ended their turn (docs/concepts/reordering-engine.md, "The machine as objective").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.machine.candidates import LIMITS, CandidatePool
from reorder.edges.machine.links import gathered, linked, source_first_tiles
from reorder.edges.machine.surrogate import CostFunction, Int64Array, MachineShape, Sampler, Surrogate
from reorder.edges.methods.long_runs import LongRunsParameters, by_long_runs
from reorder.edges.methods.tiles import MOST, Tile, climb, tile_choices
from reorder.edges.search.budget import Budget, Interrupts, check_counts
from reorder.edges.search.intervals import Items
from reorder.edges.search.objectives import weighted
from traces.base.progress import Progress
from traces.networks.checks import is_only_order
from traces.networks.network import Network


@dataclass(frozen=True)
class StageEnds:
    """Ends of stages as shares of a time limit; moves take the rest.

    made, made_on_pad: of making constructions, at the latest; on scratchpads the search for I/Os wins mostly.
    simulated: of simulating them, but for those that may be the best. rebuilt: of tiles that bring sources together,
    after that. plain: of what is then left for a scratchpad, for the search by I/Os alone; from its order, runs count
    in the rest. searched: of searches for a cache. layouts: the last share of the limit, for the best orders in other
    layouts.
    """

    made: float = 0.5
    made_on_pad: float = 0.35
    simulated: float = 0.2
    rebuilt: float = 0.2
    plain: float = 0.85
    searched: float = 0.55
    layouts: float = 0.1


@dataclass(frozen=True)
class MoveSettings:
    """Moves of pieces of an order by the surrogate's counts.

    slice: moves between two looks at the clock. rounds: without a time limit. per_connection: moves of a round, at
    least, and under a limit. patience: a round's time, in simulations. hot, cold: first and last temperature, in lines
    filled (measured). reach: positions moved. worse, cooling: go on from the best order, so much colder, once the
    simulation finds the moved one so much worse.
    """

    slice: int = 256
    rounds: int = 60
    per_connection: float = 1 / 32
    patience: int = 2
    hot: float = 0.05
    cold: float = 0.005
    reach: int = 100
    worse: float = 1.01
    cooling: float = 0.7


ENDS, MOVES = StageEnds(), MoveSettings()
CACHE_SHARES = (1.0, 0.8, 0.65)  # of a cache that rows may fill: streams of connections pass through it as well
# Of a scratchpad's rows that the sources of a tile fill: MIN keeps most of some more; fewer tiles fetch fewer sums.
TILE_SHARES = (0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 1.0, 1.15, 1.35, 1.6)
LARGE_TILE = 0.8  # share from which sources are brought together
HEAD_BURSTS = (2, 4, 6)  # bursts of targets with which a tile's sources are brought
LATER_US = 3  # microseconds a connection by which constructions of no portfolio are made later than others
LIKELIEST = 3  # of many candidates, those that the surrogate likes best
MOVES_PER_CONNECTION = 10  # of each search for runs and I/Os, without a time limit
MOVES_ON_PAD, MOVES_ON_CACHE = (2000, 1_000_000), (300, 200_000)  # at least so many a neuron, up to so many in all


@dataclass(frozen=True)
class MachineParameters:
    """rounds: of moves, each evaluated; None: until the time limit, or 60 without one.

    moves: of each of the engine's searches; None: by the time limit; without one 10 per connection,
    and more where that is little.
    """

    rounds: int | None = None
    moves: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, rounds=0, moves=0)


def order_for_machine(
    network: Network,
    shape: MachineShape,
    cost_of: CostFunction,
    parameters: MachineParameters,
    *,
    holds: Callable[[Int64Array], bool],
    sampler: Sampler | None = None,
    given: Sequence[tuple[str, Int64Array]] = (),
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
    layouts: Mapping[str, tuple[CostFunction, Callable[[Int64Array], bool]]] | None = None,
) -> Ordering:
    """Return the best order that the simulation saw. parameters of the result: found_by, `evaluated` orders, `value`,
    two-optimal's value and the best construction with its own; `evaluated_by`, 'replay', or 'sample' where the limit
    was too short for the simulation; `not_evaluated`, constructions that it did not see, for want of time (a text,
    empty for none).

    holds: whether the layout can store an order; others are not evaluated. sampler: ranks constructions where the
    simulation is slow against the limit, and evaluates them where there is no time for it at all. given: (name, order)
    to begin with; of the constructions, two-optimal alone is then evaluated. layouts: name -> (cost_of, holds) of other
    layouts, in which the best few orders are evaluated at last; with them the result has `layout` and `layout_value`,
    of the best pair of an order and a layout, and is that order; `value` stays that of the simulation. Deterministic
    without a time limit.
    """
    budget = Budget(time_limit_s)
    pool = CandidatePool(cost_of, budget, Surrogate(network, shape), progress, sampler)
    whole = 1.0 - (ENDS.layouts if layouts else 0.0)
    pool.ends = whole
    task = Task(shape.memory, shape.policy, shape.pinning, seed=seed)
    plain = ""
    in_layouts: dict[str, Any] = {}
    try:
        plain = construct(pool, task, holds, given)
        pool.evaluate_waiting(ENDS.simulated)
        climb_tiles(pool, task, holds)
        pool.keep_time()
        tiles(pool, task, holds)
        scattered = np.argsort(network.sources, kind="stable")  # not topological, but cuts rows wherever it can
        if holds(scattered):  # a layout that needs whole rows ends it here: what follows cuts them
            search(pool, task, parameters)
            if shape.cache is not None:
                move(pool, seed, parameters)
        pool.evaluate_waiting(pool.ends)
        link(pool, holds)
        pool.evaluate_waiting(whole)
        in_layouts = evaluated_in_layouts(pool, layouts or {})
    except KeyboardInterrupt:
        Interrupts.stop()
        if pool.best is None:
            raise
    assert pool.best is not None
    only = is_only_order(network, pool.best)
    named = min(pool.constructions, key=lambda name: pool.constructions[name], default=pool.found_by)
    reported: dict[str, Any] = {
        "found_by": pool.found_by,
        "value": pool.value,
        "two_optimal": pool.constructions.get(plain),
        "best_construction": named,
        "best_construction_value": pool.constructions.get(named, pool.value),
        "evaluated": len(pool.evaluated),
        "memory": shape.memory,
        "evaluated_by": "sample" if pool.by_sample else "replay",
        "not_evaluated": "" if only else ", ".join(pool.not_evaluated),
        **in_layouts,
        **({"interrupted": True} if Interrupts.stopped else {}),
    }
    curve = (*pool.curve, (len(pool.evaluated), budget.spent(), pool.value))
    truncated = (Interrupts.stopped or time_limit_s is not None) and not only
    return Ordering(pool.best, "auto", reported, seed, curve, truncated)


def evaluated_in_layouts(
    pool: CandidatePool, layouts: Mapping[str, tuple[CostFunction, Callable[[Int64Array], bool]]]
) -> dict[str, Any]:
    """Evaluate the best few orders, and that of the fewest I/Os, in other layouts as far as time allows, but for those
    that a construction beats; take the best pair, if it beats the best order where that lies, and return it as
    parameters of the result: none without layouts; layout None: the simulation chose."""
    found: dict[str, Any] = {"layout": None, "layout_value": pool.value} if layouts else {}
    orders = [*pool.leaders[:1], *([pool.plain] if pool.plain else []), *pool.leaders[1:]]
    least = min(pool.constructions.values(), default=math.inf)
    for value, edges in [one for one in orders if one[0] <= least] if not pool.by_sample else []:
        for name, (cost_of, holds) in layouts.items():
            if pool.before(1.0) and holds(edges) and (there := cost_of(edges)) < found["layout_value"]:
                found = {"layout": name, "layout_value": there}
                pool.best, pool.value = edges, value
    return found


def construct(
    pool: CandidatePool, task: Task, holds: Callable[[Int64Array], bool], given: Sequence[tuple[str, Int64Array]]
) -> str:
    """Evaluate two-optimal, what is given, and the construction that is expected to be best; let the others wait. Quick
    ones are made first; with orders given, two-optimal alone. Return its name."""
    methods = [(name, ORDERINGS[name]) for name in ORDERINGS]
    methods = [(name, m) for name, m in methods if not (m.item.searches or m.item.extra is not None or m.required)]
    methods.sort(key=lambda one: math.inf if one[1].item.portfolio is None else one[1].item.portfolio)
    (plain, _), *others = methods
    others.sort(key=lambda one: one[1].item.effort + (LATER_US if one[1].item.portfolio is None else 0))
    network, budget = pool.surrogate.network, pool.budget
    ends = (ENDS.made_on_pad if pool.surrogate.shape.cache is None else ENDS.made) * (budget.limit_s or math.inf)
    its = pool.wait(plain, _made(pool, task, plain))
    pool.measure(1 + len(given) if given else len(methods))
    for name, edges in given:
        if holds(edges):
            pool.offer(edges, name)
    for tile in () if given else tile_choices(task.memory, task.policy, pool.surrogate.shape.sharing):
        if budget.spent() > ends:
            pool.missed.append(_named(tile))
        elif holds(edges := tile.order(network)):
            key = pool.wait(_named(tile), edges)
            if pool.sampler is None and pool.before(ENDS.simulated) and key in pool.waiting:
                pool.call(key)  # what a kernel writer would do: never left out for want of promise
            pool.sample_waiting()
    for name, entry in () if given else others:
        if entry.item.suits is not None and not entry.item.suits(network):
            continue
        expected_s = 1e-6 * entry.item.effort * network.n_connections
        if budget.spent() + expected_s > ends + LIMITS.grace_s / 2:
            pool.missed.append(name)
            continue
        edges = _made(pool, task, name)
        if holds(edges):
            pool.wait(name, edges)
            pool.sample_waiting()
    pool.decide()
    for key in (pool.likeliest()[0] if pool.waiting else its, its):
        if key in pool.waiting:
            pool.call(key)
    return plain


def _named(tile: Tile) -> str:
    return f"tiles of {tile.targets} x {tile.sources}"


def climb_tiles(pool: CandidatePool, task: Task, holds: Callable[[Int64Array], bool]) -> None:
    """Evaluate tiles near the best one, as long as one is better, where tiles may still win."""
    network, seen, tried = pool.surrogate.network, pool.constructions, set[Tile]()
    known = [
        tile for tile in tile_choices(task.memory, task.policy, pool.surrogate.shape.sharing) if _named(tile) in seen
    ]
    best = min(known, key=lambda tile: seen[_named(tile)], default=None)
    if best is None or not pool.may_win(seen[_named(best)]):
        return

    def value_of(tile: Tile) -> float:
        edges = tile.order(network)
        late = len(known) + len(tried) >= MOST or not pool.before(ENDS.simulated + ENDS.rebuilt)
        if late or tile in tried or not holds(edges):
            return math.inf
        tried.add(tile)
        key = pool.wait(_named(tile), edges)
        if key in pool.waiting:
            pool.call(key)
        return pool.evaluated[key]

    climb(best, seen[_named(best)], int(np.bincount(network.depth).max()), value_of)


def _made(pool: CandidatePool, task: Task, name: str) -> Int64Array:
    limit = None if pool.budget.limit_s is None else max(pool.budget.left(), LIMITS.grace_s / 2)
    entry = ORDERINGS[name]
    given = replace(task, time_limit_s=limit)
    return entry.item(pool.surrogate.network, given, entry.make_parameters({})).edges


def tiles(pool: CandidatePool, task: Task, holds: Callable[[Int64Array], bool]) -> None:
    """On a scratchpad whose rows share bursts, evaluate tiles whose sources fill some of it, the targets of a tile one
    by one: they fetch neighbours together. As many as time allows, the likeliest first; without a limit, a few."""
    network, budget, line = pool.surrogate.network, pool.budget, pool.surrogate.shape.sharing
    if pool.surrogate.shape.cache is not None or line == 1:
        return
    tried: list[tuple[float, str, Int64Array]] = []
    ends = ENDS.simulated if budget.limit_s is None else max(ENDS.simulated, budget.spent() / budget.limit_s)

    def consider(name: str, edges: Int64Array) -> None:
        if holds(edges):
            tried.append((pool.surrogate.predict(pool.surrogate.counts(edges)), name, edges))

    for share in TILE_SHARES:
        if not pool.before(ends + 0.75 * ENDS.rebuilt):
            break
        parameters = LongRunsParameters(max(1, round(share * (task.memory - 3))))
        edges = by_long_runs(network, parameters)
        consider(f"tiles of {parameters.sources} sources", edges)
        for head in HEAD_BURSTS if share >= LARGE_TILE else ():
            together = source_first_tiles(network, edges, head * line)
            consider(f"tiles of {parameters.sources} sources, brought together", together)
    tried.sort(key=lambda one: one[0])
    for number, (expected, name, edges) in enumerate(tried if budget.limit_s is not None else tried[:LIKELIEST]):
        likely = number < LIKELIEST or expected < (1 + pool.surrogate.error) * pool.value
        if (likely and pool.before(ends + 0.75 * ENDS.rebuilt)) or (
            expected < pool.value and pool.before(ends + ENDS.rebuilt)
        ):
            pool.offer(edges, name)


def search(pool: CandidatePool, task: Task, parameters: MachineParameters) -> None:
    """Let the engine anneal by I/Os, and by runs and rows moved as the surrogate weighs them, for several sizes of a
    cache."""
    network, shape = pool.surrogate.network, pool.surrogate.shape
    cache = shape.cache
    if cache is not None and cache.rows_share_lines:
        return  # the engine knows neurons, not lines
    entry = ORDERINGS["auto"]
    choices = [(1.0, 0.0), (1.0, 1.0)]  # I/Os alone as well: the machine may be as the model
    if cache is not None:
        choices = [(1.0, 0.0), *((room, times) for room in CACHE_SHARES for times in (1.0, 5.0))]
    ends = pool.ends if cache is None else ENDS.searched
    items = Items(network)  # shared: each search begins with what those before it found
    for number, (room, times) in enumerate(choices):
        if not pool.before(ends):
            return
        run = times * pool.surrogate.run_in_io
        limit = None
        if pool.budget.limit_s is not None:
            share = ENDS.plain if cache is None and number == 0 else 1 / (len(choices) - number)
            limit = max(1e-3, share * (ends * pool.budget.limit_s - pool.budget.spent()))
        moves = parameters.moves
        if moves is None and limit is None and (cache is not None or run):  # the plain search has a length of its own
            of_neurons, most = MOVES_ON_PAD if cache is None else MOVES_ON_CACHE
            moves = max(MOVES_PER_CONNECTION * network.n_connections, min(of_neurons * network.n_neurons, most))
        made = entry.make_parameters({"moves": moves})
        given = replace(
            task, seed=task.seed + number, memory=max(3, round(room * task.memory)), time_limit_s=limit,
            objective=weighted(run, 1.0) if run else "io", policy=task.policy if cache is None or run else "min",
            prepared=items,
        )  # fmt: skip
        edges, name = entry.item(network, given, made).edges, f"auto with {given.memory}, run = {run:.3g} I/Os"
        value = pool.offer(edges, name)
        items.facts.pop("plans", None)  # of another objective
        items.orders = [edges]
        if not number:
            pool.plain = value, edges
        if cache is None:
            gather(pool, edges, name)


def gather(pool: CandidatePool, edges: Int64Array, found_by: str) -> None:
    """Evaluate the order with fewer runs (or stretches of a source) for the same rows moved."""
    network, shape = pool.surrogate.network, pool.surrogate.shape
    for by in ("targets", "sources"):
        if pool.before(1.0):
            pool.offer(gathered(network, edges, shape, by), f"{found_by}, gathered by {by}")


def move(pool: CandidatePool, seed: int, parameters: MachineParameters) -> None:
    """Move pieces of the best order by the surrogate's counts, kept up to date; evaluate and fit after every round."""
    surrogate, budget = pool.surrogate, pool.budget
    cache, n_connections = surrogate.shape.cache, surrogate.network.n_connections
    if n_connections < 2 or not pool.before(pool.ends):
        return
    assert pool.best is not None and cache is not None
    kernel = cache.kernel(surrogate.network, pool.best, seed)
    least, factor, done = max(64, round(MOVES.per_connection * n_connections)), 1.0, 0
    rounds = MOVES.rounds if parameters.rounds is None and budget.limit_s is None else parameters.rounds
    began, ends = budget.spent(), pool.ends * (budget.limit_s or math.inf)
    while (rounds is None or done < rounds) and pool.before(pool.ends):
        evaluation_s = pool.evaluation_s if budget.limit_s is not None else 0.0
        kernel.weigh(surrogate.weights[:-1].copy())
        share = max(done / rounds if rounds else 0.0, (budget.spent() - began) / (ends - began))
        heat = max(factor * MOVES.hot * (MOVES.cold / MOVES.hot) ** share * surrogate.weights[0], 1e-12 * pool.value)
        kept, moves, begun = 0, 0, budget.spent()
        while pool.before(pool.ends) and (moves < least or budget.spent() < begun + MOVES.patience * evaluation_s):
            kept += kernel.run(MOVES.slice, heat, heat, MOVES.reach)
            moves += MOVES.slice
        if not kept:
            return
        kernel.recount()
        if pool.offer(kernel.order, "moves on it") > MOVES.worse * pool.value:
            kernel.replace(pool.best)
            factor *= MOVES.cooling
        done += 1


def link(pool: CandidatePool, holds: Callable[[Int64Array], bool]) -> None:
    """Evaluate the best order with connections permuted inside its stretches, so that these meet at shared neurons."""
    edges, found_by = pool.best, pool.found_by
    assert edges is not None
    for by in ("targets", "sources"):
        if pool.before(1.0):
            candidate = linked(pool.surrogate.network, edges, by)
            if holds(candidate):
                pool.offer(candidate, f"{found_by}, linked by {by}")
