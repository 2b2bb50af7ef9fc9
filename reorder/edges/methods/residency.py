"""What surrounds the annealing of residency intervals: starts on several cores, the slots of an objective, edge moves.

Starts differ in seed and temperature; the first is the one that would run alone, so more of them never find less.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.budget import Best, Budget, Scorer, part
from reorder.edges.search.edge_moves import SWAPS_PER_MOVE, polish, share_of
from reorder.edges.search.initial_states import SHARES
from reorder.edges.search.intervals import Items
from reorder.edges.search.residency import MOVES_PER_ITEM, ResidencyParameters, anneal
from traces.base.worker import report
from traces.base.workers import Workers
from traces.networks.network import Network

HEATS = (1.0, 1.4, 0.7)  # of the first, second, third start, and again
# Slots for objectives beyond the I/Os of one memory: from many to few by this factor, on this share of the budget each,
# until two in a row are no better.
FEWER, TRIAL, PATIENCE = 0.7, 0.04, 2


@ORDERINGS.register(
    "residency",
    summary="annealing over one residency interval per neuron; the strongest search",
    parameters=ResidencyParameters,
    searches=True,
    steps="moves",
)
def residency(network: Network, task: Task, parameters: ResidencyParameters) -> Ordering:
    """Anneal residency intervals from the best rolling construction. Deterministic unless a time limit ends it."""
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    search(Items.of(network, task), best, parameters, budget.left())
    truncated = task.time_limit_s is not None and (parameters.moves is None or budget.over)
    reported = {**best.parameters, "moves": best.work}
    return best.ordering(
        "residency", reported | ({"starts": parameters.starts} if parameters.starts > 1 else {}), truncated
    )


def search(items: Items, best: Best, parameters: ResidencyParameters, seconds: float) -> None:
    """Anneal for at most `seconds`, from every start, and offer what is found to `best`."""
    if parameters.starts == 1:
        anneal_and_polish(items, best, parameters, seconds)
        return
    task, began = best.task, best.budget.spent()
    spawned = np.random.SeedSequence(task.seed).spawn(parameters.starts - 1)
    seeds = [task.seed, *(int(child.generate_state(1)[0]) for child in spawned)]
    workers = min(parameters.workers, parameters.starts)
    share = seconds / math.ceil(parameters.starts / workers)  # as many have to follow each other on one core
    starts = [
        Start(replace(task, seed=seed, progress=None), parameters, HEATS[k % len(HEATS)], share)
        for k, seed in enumerate(seeds)
    ]
    if workers == 1:
        orderings = [_run(items, start, task.progress) for start in starts]
    else:
        orderings = _run_in_processes(items, starts, workers, best)
    winner = min(orderings, key=lambda ordering: ordering.curve[-1][2])
    work = sum(ordering.curve[-1][0] for ordering in orderings)
    best.adopt(winner, work, began, **winner.parameters)


def anneal_and_polish(
    items: Items, best: Best, parameters: ResidencyParameters, seconds: float, heat: float = 1.0
) -> None:
    """Move neurons by the model on most of the budget, then connections by the objective itself on the rest."""
    share = parameters.polish
    if share is None:
        share = share_of(best.task.policy, seconds, items.network.n_connections, items.planned)
    began, moves = best.budget.spent(), parameters.moves
    if moves is None and seconds == math.inf:
        moves = MOVES_PER_ITEM * len(items.items)
    swaps = None if moves is None else moves - round(moves * share)
    progress = best.task.progress
    with best.reporting(progress and part(progress, 0, 1 - share)):
        anneal_for_objective(items, best, replace(parameters, moves=swaps), seconds * (1 - share), heat)
    edge_moves = None if moves is None else round(moves * share / SWAPS_PER_MOVE)
    with best.reporting(progress and part(progress, 1 - share, 1)):
        polish(best, items.network, edge_moves, seconds - (best.budget.spent() - began))


def anneal_for_objective(
    items: Items, best: Best, parameters: ResidencyParameters, seconds: float, heat: float = 1.0
) -> None:
    """Anneal with the number of slots that suits the objective.

    A state's cost is I/Os at its number of slots, whatever the objective. But fewer slots leave fast memory for batches
    of sources, that is for longer runs, or make an order for a smaller memory. So short searches with fewer and fewer
    slots are compared by the objective, and the rest of the budget goes to the best number.
    """
    objective, task = best.score.objective, best.task
    if objective.plain or parameters.slots:
        anneal(items, best, parameters, seconds, heat)
        return
    began, done = best.budget.spent(), best.work
    moves = parameters.moves
    largest = max((term.within(task)[3] for term in objective.io), default=task.memory)
    by_io = replace(task, objective=replace(objective, runs=0), progress=None)

    def left() -> float:
        return seconds - (best.budget.spent() - began) if seconds < math.inf else math.inf

    def trial(slots: int) -> float:
        trial_best = Best(Scorer(items.network, by_io), best.budget, by_io)
        short = None if moves is None else round(moves * TRIAL)
        settings = replace(parameters, slots=slots, moves=short)
        anneal(items, trial_best, settings, seconds * TRIAL, heat)
        assert trial_best.edges is not None
        best.work += trial_best.work
        return best.offer(trial_best.edges, slots=slots)

    slots = min(largest - 2, len(items.items))
    if not task.sees_future:
        slots = max(1, min(slots, round(SHARES[task.policy][0] * (largest - 1))))
    values = {slots: trial(slots)}
    worse = 0
    while worse < PATIENCE and slots > 1 and left() > 0:
        slots = round(slots * FEWER)
        value = trial(slots)
        worse = 0 if value < min(values.values()) else worse + 1
        values[slots] = value
    chosen = min(values, key=lambda slots: (values[slots], -slots))
    rest = None if moves is None else max(0, moves - (best.work - done))
    if left() > 0 and rest != 0:
        anneal(items, best, replace(parameters, slots=chosen, moves=rest), left(), heat)


@dataclass(frozen=True)
class Start:
    """One of several searches: a task with its seed, its heat against the usual temperature, its share of the time."""

    task: Task
    parameters: ResidencyParameters
    heat: float
    seconds: float


def _run(items: Items, start: Start, progress: Any = None) -> Ordering:
    budget = Budget(None if start.seconds == math.inf else start.seconds)
    task = replace(start.task, progress=progress)
    best = Best(Scorer(items.network, task), budget, task)
    anneal_and_polish(items, best, start.parameters, budget.left(), start.heat)
    return best.ordering("residency", best.parameters, budget.over)


def _work(state: Any, start: Start, ends: float) -> Ordering:
    """Run a start; a process that was slow to come up makes its share of the wall-clock time shorter."""
    network, known, orders, planned = state
    items = Items(network)
    items.known, items.orders, items.planned = known, orders, planned
    start = replace(start, seconds=min(start.seconds, max(1e-3, ends - time.monotonic())))
    return _run(items, start, report)


def _run_in_processes(items: Items, starts: Sequence[Start], workers: int, best: Best) -> list[Ordering]:
    """Return what every start found, in their order; report the mean of their progress."""
    ends = time.monotonic() + starts[0].seconds * math.ceil(len(starts) / workers)
    state, progress = (items.network, items.known, items.orders, items.planned), best.task.progress
    done = [0.0] * len(starts)

    def hear(k: int, part: int, total: int | None, text: str) -> None:
        done[k] = part / total if total else 0.0
        if progress is not None:
            progress(round(1000 * sum(done) / len(starts)), 1000, text)

    calls = ((k, (state, start, ends)) for k, start in enumerate(starts))
    with Workers(workers, "processes") as team:
        found = dict(team.map(_work, calls, len(starts), hear=hear))
    return [found[k] for k in range(len(starts))]
