"""The search for a machine: constructions, then the engine's searches by a surrogate, then moves; the judge decides.

What is returned is the order that the judge liked best of all it saw: two-optimal and every construction are among
them, unless a time limit ended their turn (docs/concepts/reordering-engine.md, "The machine as objective").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.machine.gather import gathered
from reorder.edges.machine.judged import GRACE_S, JudgedOrders
from reorder.edges.machine.links import linked, warm_tiles
from reorder.edges.machine.shape import Int64Array, Judge, MachineShape, Sampler
from reorder.edges.machine.surrogate import Surrogate
from reorder.edges.methods.blocks import LongRunsParameters, by_long_runs, by_tiles
from reorder.edges.search.budget import Budget, count_of
from reorder.edges.search.objectives import weighted
from reorder.joint.inside_runs import order_run_tuples
from traces.base.progress import Progress
from traces.networks.checks import is_only_order
from traces.networks.network import Network

ROOMS = (1.0, 0.8, 0.65)  # shares of a cache that rows may fill: streams of connections pass through it as well
TILES = (0.15, 0.25, 0.35, 0.5, 0.65, 0.8)  # of the rows of fast memory, that the sources of a tile fill
PAD_TILES = (1.0, 1.15, 1.35, 1.6)  # of a scratchpad: MIN keeps most of some more, and fewer tiles fetch fewer sums
LARGE = 0.8  # share from which
HEADS = (2, 4, 6)  # bursts of targets with which a tile's sources are brought
AGAIN = 6  # constructions that are made again for LESS room: shares of a cache, the likeliest first
LESS = (0.72, 0.8, 0.6)
LATER = 3  # microseconds a connection by which constructions of no portfolio are made later than others
JUDGED = 3  # of many candidates, those that the surrogate likes best
# Ends of stages as shares of a time limit: constructions made (at the latest), and judged unless they may be the best;
# searches by the engine. Moves take the rest.
MADE, BUILT, SEARCHED = 0.5, 0.3, 0.55
REMADE = 0.2  # and constructions and tiles for less room, after that: share of the limit to make and judge them
MOVES_PER_NEURON = 300  # of each of the engine's searches for runs and I/Os on a cache, without a time limit
ENDED = 0.95  # of the time limit, where wires matter: the last of it is for the order of tuples inside runs
TUPLE_METHODS = (("greedy", 2.0), ("local-search", 80.0))  # and microseconds per connection, roughly
SLICE = 256  # moves between two looks at the clock
ROUNDS, ROUND = 60, 1 / 32  # of moves without a time limit; moves of one by connections, at least, and under a limit
PATIENCE = 2  # times as long as the judge takes
HOT, COLD, REACH = 0.05, 0.005, 100  # first and last temperature of moves, in lines filled (measured); places moved
WORSE, COOLING = 1.01, 0.7  # moves go on from the best order, colder, when the judge finds theirs so much worse


@dataclass(frozen=True)
class MachineParameters:
    """rounds: of moves, each judged; None: until the time limit, or 60 without one.

    moves: of each of the engine's searches; None: by the time limit; without one 2000 per neuron, or 300 where a cache
    has several searches.
    """

    rounds: int | None = None
    moves: int | None = None

    def __post_init__(self) -> None:
        count_of("rounds", self.rounds, 0)
        count_of("moves", self.moves, 0)


def order_for_machine(
    network: Network,
    shape: MachineShape,
    judge: Judge,
    parameters: MachineParameters,
    *,
    holds: Callable[[Int64Array], bool],
    sampler: Sampler | None = None,
    given: Sequence[tuple[str, Int64Array]] = (),
    seed: int = 0,
    time_limit_s: float | None = None,
    progress: Progress | None = None,
) -> Ordering:
    """Return the best order that the judge saw. parameters of the result: found_by, `judged` orders, `value`,
    two-optimal's value and the best construction with its own; `judged_by`, 'replay', or 'sample' where the limit was
    too short for the judge; `unjudged`, constructions that it did not see, for want of time (a text, empty for none).

    holds: whether the layout can store an order; others are not judged. sampler: ranks constructions where the judge is
    slow against the limit, and judges them where there is no time for it at all. given: (name, order) to begin with;
    of the constructions, two-optimal alone is then judged. Deterministic without a time limit.
    """
    budget = Budget(time_limit_s)
    seen = JudgedOrders(judge, budget, Surrogate(network, shape), progress, sampler)
    seen.ends = 1.0 if shape.wires is None else ENDED
    task = Task(shape.memory, shape.policy, shape.pinning, seed=seed)
    plain = construct(seen, task, holds, given)
    seen.judge_waiting(BUILT)
    seen.keep_time()
    less_room(seen, task, holds)
    if holds(_scattered(network)):  # a layout that needs whole rows ends it here: what follows cuts them
        search(seen, task, parameters)
        if shape.cache is not None:
            move(seen, seed, parameters)
    seen.judge_waiting(seen.ends)
    finish(seen, seed, holds)
    seen.judge_waiting(1.0)
    assert seen.best is not None
    named = min(seen.constructions, key=lambda name: seen.constructions[name])
    reported: dict[str, Any] = {
        "found_by": seen.found_by,
        "value": seen.value,
        "two_optimal": seen.constructions.get(plain),
        "best_construction": named,
        "best_construction_value": seen.constructions[named],
        "judged": len(seen.judged),
        "memory": shape.memory,
        "judged_by": "sample" if seen.by_sample else "replay",
        "unjudged": ", ".join(seen.unjudged),
    }
    curve = (*seen.curve, (len(seen.judged), budget.spent(), seen.value))
    truncated = time_limit_s is not None and not is_only_order(network, seen.best)
    return Ordering(seen.best, "auto", reported, seed, curve, truncated)


def _scattered(network: Network) -> Int64Array:
    """Return an order of the connections (not topological) that cuts rows wherever it can."""
    return np.argsort(network.sources, kind="stable")


def construct(
    seen: JudgedOrders, task: Task, holds: Callable[[Int64Array], bool], given: Sequence[tuple[str, Int64Array]]
) -> str:
    """Judge two-optimal, what is given, and the construction that is expected to be best; let the others wait. Quick
    ones are made first; with orders given, two-optimal alone. Return its name."""
    methods = [(name, ORDERINGS[name]) for name in ORDERINGS]
    methods = [(name, m) for name, m in methods if not (m.item.searches or m.item.extra is not None or m.required)]
    methods.sort(key=lambda one: math.inf if one[1].item.portfolio is None else one[1].item.portfolio)
    (plain, _), *others = methods
    others.sort(key=lambda one: one[1].item.effort + (LATER if one[1].item.portfolio is None else 0))
    network, budget = seen.surrogate.network, seen.budget
    its = seen.wait(plain, _made(seen, task, plain))
    seen.measure(1 + len(given) if given else len(methods))
    for name, edges in given:
        if holds(edges):
            seen.offer(edges, name)
    for name, entry in () if given else others:
        if entry.item.suits is not None and not entry.item.suits(network):
            continue
        expected_s = 1e-6 * entry.item.effort * network.n_connections
        if budget.limit_s is not None and budget.spent() + expected_s > MADE * budget.limit_s + GRACE_S / 2:
            seen.missed.append(name)
            continue
        edges = _made(seen, task, name)
        if holds(edges):
            seen.wait(name, edges)
            seen.sample_waiting()
    seen.decide()
    for key in (seen.likeliest()[0] if seen.waiting else its, its):
        if key in seen.waiting:
            seen.call(key)
    return plain


def _made(seen: JudgedOrders, task: Task, name: str) -> Int64Array:
    limit = None if seen.budget.limit_s is None else max(seen.budget.left(), GRACE_S / 2)
    entry = ORDERINGS[name]
    given = replace(task, time_limit_s=limit)
    return entry.item(seen.surrogate.network, given, entry.make_parameters({})).edges


def less_room(seen: JudgedOrders, task: Task, holds: Callable[[Int64Array], bool]) -> None:
    """Judge tiles and, for a cache, the best constructions for a smaller memory: as many as time allows, the likeliest
    first; without a limit, all of these and a few tiles."""
    shape, budget = seen.surrogate.shape, seen.budget
    names = seen.expected()[:AGAIN]
    tried: list[tuple[float, str, Int64Array]] = []
    ends = BUILT if budget.limit_s is None else max(BUILT, budget.spent() / budget.limit_s)

    def consider(name: str, edges: Int64Array) -> None:
        if holds(edges):
            tried.append((seen.surrogate.predict(seen.surrogate.counts(edges)), name, edges))

    for share in LESS if shape.cache is not None else ():
        smaller = replace(task, memory=max(3, round(share * task.memory)))
        for name in names:
            if seen.before(ends + REMADE / 2):
                consider(f"{name} with {smaller.memory}", _made(seen, smaller, name))
    constructed = len(tried)
    for name, edges in tiles(seen, task, ends + 0.75 * REMADE):
        consider(name, edges)
    if seen.budget.limit_s is None:
        tried = tried[:constructed] + sorted(tried[constructed:], key=lambda one: one[0])[:JUDGED]
    else:
        tried.sort(key=lambda one: one[0])
    for number, (expected, name, edges) in enumerate(tried):
        likely = number < JUDGED or expected < (1 + seen.surrogate.error) * seen.value
        if (likely and seen.before(ends + 0.75 * REMADE)) or (expected < seen.value and seen.before(ends + REMADE)):
            seen.offer(edges, name)


def tiles(seen: JudgedOrders, task: Task, ends: float) -> Iterator[tuple[str, Int64Array]]:
    """Yield tiles whose sources fill some of fast memory, the targets of a tile one by one or a line of them at a time.

    On a scratchpad only where rows share a burst: there tiles fetch neighbours together.
    """
    network, shape = seen.surrogate.network, seen.surrogate.shape
    line = shape.sharing
    if shape.cache is None:
        for share in (*TILES, *PAD_TILES) if line > 1 else ():
            if not seen.before(ends):
                return
            parameters = LongRunsParameters(max(1, round(share * (task.memory - 3))))
            edges = by_long_runs(network, parameters)
            yield f"tiles of {parameters.sources} sources", edges
            for head in HEADS if share >= LARGE else ():
                warm = warm_tiles(network, edges, head * line)
                yield f"tiles of {parameters.sources} sources, brought together", warm
        return
    for share in TILES:
        sources = max(1, min(round(share * task.memory / line) * line, task.memory - 3))
        for targets in (1, line, 4 * line):
            if seen.before(ends):
                edges = by_tiles(network, targets, sources, "sources" if targets == 1 else "targets")
                yield f"tiles of {sources} sources", edges


def search(seen: JudgedOrders, task: Task, parameters: MachineParameters) -> None:
    """Let the engine anneal by I/Os, and by runs and rows moved as the surrogate weighs them, for several sizes of a
    cache."""
    network, shape = seen.surrogate.network, seen.surrogate.shape
    cache = shape.cache
    if cache is not None and cache.rows_share_lines:
        return  # the engine knows neurons, not lines
    entry = ORDERINGS["auto"]
    choices = [(1.0, 0.0), (1.0, 1.0)]  # I/Os alone as well: the machine may be as the model
    if cache is not None:
        choices = [(1.0, 0.0), *((room, times) for room in ROOMS for times in (1.0, 5.0))]
    ends = seen.ends if cache is None else SEARCHED
    for number, (room, times) in enumerate(choices):
        if not seen.before(ends):
            return
        run = times * seen.surrogate.run_in_io
        limit = None
        if seen.budget.limit_s is not None:
            limit = max(1e-3, (ends * seen.budget.limit_s - seen.budget.spent()) / (len(choices) - number))
        moves = parameters.moves
        if moves is None and limit is None and cache is not None and times:
            moves = MOVES_PER_NEURON * network.n_neurons
        made = entry.make_parameters({"moves": moves})
        given = replace(
            task, seed=task.seed + number, memory=max(3, round(room * task.memory)), time_limit_s=limit,
            objective=weighted(run, 1.0) if run else "io", policy=task.policy if cache is None or run else "min",
        )  # fmt: skip
        edges, name = entry.item(network, given, made).edges, f"auto with {given.memory}, run = {run:.3g} I/Os"
        seen.offer(edges, name)
        if cache is None:
            gather(seen, edges, name)


def gather(seen: JudgedOrders, edges: Int64Array, found_by: str) -> None:
    """Judge the order with fewer runs (or stretches of a source) for the same rows moved."""
    network, shape = seen.surrogate.network, seen.surrogate.shape
    for by in ("targets", "sources"):
        if seen.before(1.0):
            seen.offer(gathered(network, edges, shape, by), f"{found_by}, gathered by {by}")


def move(seen: JudgedOrders, seed: int, parameters: MachineParameters) -> None:
    """Move pieces of the best order by the surrogate's counts, kept up to date; judge and fit after every round."""
    surrogate, budget = seen.surrogate, seen.budget
    cache, n_connections = surrogate.shape.cache, surrogate.network.n_connections
    if n_connections < 2 or not seen.before(seen.ends):
        return
    assert seen.best is not None and cache is not None
    kernel = cache.kernel(surrogate.network, seen.best, seed)
    least, warm, done = max(64, round(ROUND * n_connections)), 1.0, 0
    rounds = ROUNDS if parameters.rounds is None and budget.limit_s is None else parameters.rounds
    began, ends = budget.spent(), seen.ends * (budget.limit_s or math.inf)
    while (rounds is None or done < rounds) and seen.before(seen.ends):
        judge_s = seen.judge_s if budget.limit_s is not None else 0.0
        kernel.weigh(surrogate.weights[:-1].copy())
        share = max(done / rounds if rounds else 0.0, (budget.spent() - began) / (ends - began))
        heat = max(warm * HOT * (COLD / HOT) ** share * surrogate.weights[0], 1e-12 * seen.value)
        kept, moves, begun = 0, 0, budget.spent()
        while seen.before(seen.ends) and (moves < least or budget.spent() < begun + PATIENCE * judge_s):
            kept += kernel.run(SLICE, heat, heat, REACH)
            moves += SLICE
        if not kept:
            return
        kernel.recount()
        if seen.offer(kernel.order, "moves on it") > WORSE * seen.value:
            kernel.replace(seen.best)
            warm *= COOLING
        done += 1


def finish(seen: JudgedOrders, seed: int, holds: Callable[[Int64Array], bool]) -> None:
    """Permute the best order inside its stretches, as far as time allows: so that they meet at shared neurons, and so
    that connections inside runs put few ones on the wires."""
    network, wires = seen.surrogate.network, seen.surrogate.shape.wires
    assert seen.best is not None
    runs, found_by = seen.best, seen.found_by
    link(seen, runs, found_by, holds)
    for method, each_us in TUPLE_METHODS if wires is not None else ():
        assert wires is not None
        if seen.before(1.0, -1e-6 * each_us * network.n_connections):
            edges = order_run_tuples(
                network, runs, stride="row", method=method, value_format=wires.value_format, encoder=wires.encoder,
                block_bytes=wires.block_bytes, seed=seed,
            )  # fmt: skip
            seen.offer(edges, f"{found_by}, runs by {method}")
            link(seen, edges, f"{found_by}, runs by {method}", holds)


def link(seen: JudgedOrders, edges: Int64Array, found_by: str, holds: Callable[[Int64Array], bool]) -> None:
    """Judge an order whose stretches meet at shared neurons."""
    for by in ("targets", "sources"):
        if seen.before(1.0):
            candidate = linked(seen.surrogate.network, edges, by)
            if holds(candidate):
                seen.offer(candidate, f"{found_by}, linked by {by}")
