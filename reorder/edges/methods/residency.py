"""Residency annealing, from one start or several (docs/concepts/reordering-engine.md), and its plain start alone:
output-stationary orders, in which partial sums stay and finished neurons stream through one slot.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cython_ext.residency.residency import _Residency
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget, Interrupts, Scorer, at_least, check_counts, part, so_far
from reorder.edges.search.edge_moves import (
    LONG_SHARE,
    LONG_US,
    PLANNED_SHARE,
    SHARE,
    SWAPS_PER_MOVE,
    applies,
    offer_refreshed,
    polish,
)
from reorder.edges.search.initial_states import (
    SHARES,
    OutOfTime,
    before_orders,
    plain_state,
    slot_choices,
    start_state,
)
from reorder.edges.search.intervals import IntervalState, Items
from traces.base.errors import InputError, shown
from traces.base.worker import report
from traces.base.workers import Workers
from traces.networks.network import Int64Array, Network

MOVES_PER_ITEM = 2000  # the default budget
# In dense layers, where a move looks at this share of all connections for each value that fits: looks of the default
# budget, some seconds (80 x 80, M = 4: 33 s without it, and nothing found after tiles).
DENSE, DENSE_LOOKS = 0.125, 1 << 25
CHECKPOINTS = 24  # exact counts of the decoded order along one annealing run
CHECKPOINT_SHARE = 0.04  # of the time at most, for those counts
DELAYS = (0, 1, 2, 4, 8, 16, 32)  # tried first, in stages
FIRST_CHECK, CHUNKS = 16, 50  # swaps before a first check of the clock, checks of a search
SWAP_TARGETS = 1 << 22  # targets of one source that the swaps before the first check of the clock visit at most
REACH = 8  # the longest swap in slots: an item stays for about as many drops as there are slots
SCANNED = 1000  # items, from which scans have been found to pay
CLEARLY, MOSTLY = 0.98, 0.5  # of the annealed order's value, and of the budget for edge moves (measured under RR)
HEATS = (1.0, 1.4, 0.7)  # of the first, second, third start, and again


@dataclass(frozen=True)
class SlotProbe:
    """How the number of slots is looked for.

    share, temperature: the budget's share of one trial, and its temperature. most: trials at most. step, step_min: the
    factor between trials, under LRU and under MIN. moved: the share of M - 1 tried besides the first one under RR:
    edge moves, which take the rest there, get less far from fewer slots, even if these start lower (nine networks).

    Under MIN far fewer slots are tried where time is short, as longer searches got further from many slots: where the
    limit is at most `short_us` a connection, the first start takes at most `start_share` of it, and its order does
    without more than `idle` of what its state costs. First `half`, then `fewer` one by one, else `more`, until
    `time_share` of the limit.

    trial_step, trial_share, patience: for objectives beyond the I/Os of one memory: from many slots to few by this
    factor, on this share of the budget each, until so many in a row are no better.
    """

    share: float = 0.05
    temperature: float = 0.1
    most: int = 4
    step: float = 0.85
    step_min: float = 0.9
    moved: float = 0.47
    short_us: float = 20
    start_share: float = 0.1
    idle: float = 0.01
    half: float = 0.5
    fewer: tuple[float, ...] = (0.35, 0.25)
    more: float = 0.7
    time_share: float = 0.3
    trial_step: float = 0.7
    trial_share: float = 0.04
    patience: int = 2


PROBE = SlotProbe()


@dataclass(frozen=True)
class MoveShares:
    """What annealing proposes, measured on random layered networks.

    scans: share of moves that look at 128 partners at once. Of the others, opens, drops: shares of open swaps and drop
    swaps, the rest swaps whole intervals; guided: share with a partner where the network suggests one. heat: start
    temperature against the usual one, but not above `hottest`; end: the last temperature; both in I/Os.
    """

    scans: float
    opens: float
    drops: float
    guided: float
    heat: float
    hottest: float
    end: float

    def start(self, moves_per_item: float) -> float:
        """Return the temperature from which a budget still cools down well: colder the shorter it is (measured)."""
        return min(self.hottest, self.heat * max(0.06, 0.2 * math.pow(max(1.0, moves_per_item) / 2700, 0.18)))


DENSE_MOVES = MoveShares(0.6, 0.2, 0.2, 0.2, 1.0, hottest=0.45, end=0.07)
SPARSE_MOVES = MoveShares(0.0, 0.1, 0.2, 0.95, 4.0, hottest=1.8, end=0.07)
FEW_MOVES = MoveShares(0.0, 0.1, 0.2, 1.0, 4.0, hottest=0.5, end=0.07)


@dataclass(frozen=True)
class ResidencyParameters:
    """moves: how many swaps are proposed; None: until the time limit, or 2000 per neuron without one (fewer in
    dense layers).

    slots: neurons resident at once; None: tried out. temperature: at the start, in I/Os; None: by the budget.
    starts: independent searches, each with all the moves, a seed and a temperature of its own; the best is returned.
    workers: processes that share them (edges/residency.py). Unless time ends them, their number changes nothing.
    polish: share of the budget for edge moves at the end (edge_moves.py), 0 for none; None: by the policy.
    """

    moves: int | None = None
    slots: int | None = None
    temperature: float | None = None
    starts: int = 1
    workers: int = 1
    polish: float | None = None

    def __post_init__(self) -> None:
        check_counts(self, starts=1, workers=1, moves=0, slots=1)
        at_least("temperature", self.temperature, 0)
        at_least("polish", self.polish, 0)
        if self.polish is not None and self.polish > 1:
            raise InputError(f"polish is a share of the budget, at most 1, not {shown(self.polish)}")


class Annealing:
    """One annealing run over one kernel state, cooling as its share of the budget is used up."""

    def __init__(self, items: Items, state: IntervalState, seed: int, moves: MoveShares) -> None:
        self.items, self.slots = items, state.slots
        self.search: _Residency = items.search(state.slots, seed)
        self.search.set_state(state.opens, state.drops)
        self.moves = moves
        self.done = 0
        self.delay: int | None = None  # of decoding, once looked for
        self.order: Int64Array | None = None  # the best one of the last offer
        self.horizon: int | None = None  # with which it is refreshed
        self.took = 0.0  # seconds of the last offer
        self.offered = math.inf  # the value it had

    def offer(self, best: Best) -> float:
        """Offer the order of the present state and return its value. Under LRU and RR, look for the best delay too.

        Under LRU the best order after plans is refreshed as well.
        """
        began = best.budget.spent()
        self.search.refresh()
        delays = [0]
        if not best.task.sees_future:
            step = max(1, (self.delay or 0) // 8)
            delays = [*DELAYS] if self.delay is None else [self.delay, self.delay + step, max(0, self.delay - step)]
        values: dict[int, float] = {}
        orders: dict[int, Int64Array] = {}
        for d in dict.fromkeys(delays):
            if not values or best.has_time:
                orders[d] = self.items.decode(self.search, d)
                values[d] = best.offer(orders[d], slots=self.slots)
        self.delay = min(values, key=lambda d: (values[d], d))
        self.offered = values[self.delay]
        self.order = orders[self.delay]
        if self.items.planned and applies(best):  # on others it takes more time than it gains (measured)
            kept, self.horizon = offer_refreshed(best, self.items.network, self.order, self.horizon)
            self.offered = min(self.offered, kept)
        self.took = best.budget.spent() - began
        return self.offered

    def run(self, moves: int | None, seconds: float, best: Best, temperature: float | None = None) -> float:
        """Anneal for `moves` moves or `seconds`, whichever ends first, offering orders to `best` on the way.

        Returns the value of the last one.
        """
        n, kinds = len(self.items.items), self.moves
        started, done = best.budget.spent(), 0
        chunk = max(64, min(6000, n * 2))
        check = max(1, min(FIRST_CHECK, SWAP_TARGETS // int(np.diff(self.items.by_source[0]).max(initial=1))))
        least = min(64, check)
        next_checkpoint = 1 / CHECKPOINTS
        reach = max(2, min(REACH * self.slots, n // 2))
        start = temperature if temperature is not None else kinds.start((moves or 300 * n) / n)
        while True:
            spent = best.budget.spent() - started
            timed = 0.0 if seconds == math.inf else spent / seconds if seconds > 0 else 1.0
            share = max(done / moves if moves else 0.0, timed)
            last = self.took or best.offer_s  # seconds that the offer at the end takes
            if share >= 1 or best.budget.left() <= last or (moves is not None and done >= moves):
                break
            if done and temperature is None:  # what the whole budget comes to, at the speed so far
                start = kinds.start(done / max(share, 1e-6) / n)
            now = max(start, kinds.end)
            cooled = now * (kinds.end / now) ** share
            self.search.tune(cooled, reach, kinds.opens, kinds.drops, kinds.guided, scans=kinds.scans)
            step = chunk if moves is None else min(chunk, moves - done)
            if seconds < math.inf:  # swaps take long where a source has very many targets
                step = min(step, max(least, int(done / max(spent, 1e-6) * seconds / CHUNKS)) if done else check)
            try:
                self.search.run(step)
            except KeyboardInterrupt:
                Interrupts.stop()
                self.offer(best)
                raise
            done += step
            best.work += step
            if share >= next_checkpoint:
                self.offer(best)
                next_checkpoint = share + max(1 / CHECKPOINTS, self.took / CHECKPOINT_SHARE / max(seconds, 1e-9))
            if best.task.progress:
                best.task.progress(round(1000 * share), 1000, so_far(best.value, best.task.objective))
        self.done += done
        return self.offer(best) if done or self.offered == math.inf else self.offered


def default_moves(items: Items, memory: int) -> int:
    """Return the moves of a search without a limit. A move of a neuron looks at the targets of all its sources."""
    n = len(items.items)
    looks = float((np.diff(items.by_source[0]).astype(np.float64) ** 2).sum()) / n
    most = MOVES_PER_ITEM * n
    return most if looks < DENSE * items.network.n_connections else min(most, int(DENSE_LOOKS * memory / looks) + n)


def anneal(
    items: Items, best: Best, parameters: ResidencyParameters, seconds: float, heat: float = 1.0
) -> Annealing | None:
    """Find the number of slots on a small part of the budget, then anneal with it; offer all that is found.

    Returns the annealing with that number; None where there was no time for one.
    """
    if best.edges is not None and not best.has_time:
        return None
    moves = parameters.moves
    if moves is None and seconds == math.inf:
        moves = default_moves(items, best.task.memory)
    ends = best.budget.spent() + seconds
    search = SlotSearch(items, best, moves, seconds, heat)
    try:
        chosen = search.start(min(parameters.slots, len(items.items))) if parameters.slots else search.choose(ends)
    except OutOfTime:
        if best.edges is None:
            best.offer(two_optimal_order(items.network))
        return None
    left = ends - best.budget.spent() - chosen.took if seconds < math.inf else math.inf
    if left > 0:
        rest = None if moves is None else max(0, moves - sum(run.done for run in search.runs.values()))
        chosen.run(rest, left, best, parameters.temperature)
        if chosen.order is not None and applies(best):
            offer_refreshed(best, items.network, chosen.order, chosen.horizon)
        if (best.task.sees_future or best.task.keeps_touched) and best.has_time:
            best.offer(items.carried(chosen.search), slots=chosen.slots)
    elif best.edges is None:  # a limit that the constructions alone used up
        chosen.offer(best)
    return chosen


class SlotSearch:
    """Looks for the number of slots. MIN: from M - 2, where the model is exact, to fewer, which leave MIN room to keep
    sources. LRU: from a share of M - 1 downhill, up or down. Each as long as it pays. RR: the better one of two.

    runs: the annealing of each number of slots that was started.
    """

    def __init__(self, items: Items, best: Best, moves: int | None, seconds: float, heat: float) -> None:
        self.items, self.best, self.moves, self.seconds = items, best, moves, seconds
        self.future = best.task.sees_future
        self.few = items.few and self.future  # LRU and RR, where the model is not exact, like it hot
        kinds = FEW_MOVES if self.few else SPARSE_MOVES if items.sparse else DENSE_MOVES
        if len(items.items) < SCANNED:
            kinds = replace(kinds, scans=0.0)
        self.kinds = replace(kinds, heat=heat * kinds.heat, hottest=heat * kinds.hottest)
        self.runs: dict[int, Annealing] = {}
        self.values: dict[int, float] = {}  # of trials
        self.started: dict[int, float] = {}  # of starts

    def start(self, slots: int) -> Annealing:
        if slots not in self.runs:
            self.runs[slots] = self.annealing(slots)
        return self.runs[slots]

    def annealing(self, slots: int) -> Annealing:
        """Return a new annealing, from the cheapest start."""
        task = self.best.task
        state = start_state(self.items, slots, self.best.budget, task)
        return Annealing(self.items, state, task.seed, self.kinds)

    def slots_of(self, share: float) -> int:
        memory = self.best.task.memory
        return max(1, min(round(share * (memory - 1)), memory - 2, len(self.items.items)))

    def choose(self, ends: float) -> Annealing:
        """Return the annealing with the most promising number of slots. ends: no trial begins after this second."""
        best, n = self.best, len(self.items.items)
        if self.future and n <= best.task.memory - 2:
            return self.start(n)
        if self.few:  # cold trials of fewer slots took half of a second and chose worse than none (measured)
            return self.start(self.slots_of(self.far_share()))
        began = best.budget.spent()
        share = self.far_share() if self.future else SHARES[best.task.policy][0]
        self.probe(share)
        if not (self.future or best.task.keeps_touched):
            if best.budget.spent() < ends:
                self.probe(PROBE.moved)
            return self.runs[min(self.values, key=self.values.__getitem__)]
        step, tries = PROBE.step_min, PROBE.most
        if self.future:  # more are impossible; a start that takes as long as its trial is not worth a second one
            tries = 0 if best.budget.spent() - began > 2 * PROBE.share * self.seconds else tries
        elif best.budget.spent() >= ends:
            tries = 0
        else:
            step = min(PROBE.step, 1 - 1 / max(2, self.slots_of(share)))  # one slot fewer at least
            step = step if self.probe(share * step) < self.probe(share) else 1 / step
        for _ in range(tries):  # a step made already costs nothing again
            if best.budget.spent() >= ends:
                break
            # of two numbers of slots under MIN, the one with the better start was the better one after its trial in all
            # cases tried (4 x 500, 8 x 300, RadiX-Nets, hubs): where time is short, only such are tried
            if self.future and self.seconds < math.inf:
                other = self.annealing(self.slots_of(share))
                if self.start(self.slots_of(share * step)).offer(best) >= other.offer(best):
                    break
            if self.probe(share * step) >= self.probe(share):
                break
            share *= step
        return self.runs[min(self.values, key=lambda slots: (self.values[slots], -slots if self.future else slots))]

    def start_value(self, share: float) -> float:
        slots = self.slots_of(share)
        if slots not in self.started:
            self.started[slots] = self.start(slots).offer(self.best)
        return self.started[slots]

    def far_share(self) -> float:
        """Return the share of slots with the best start, by exact counts, among few that lie far apart.

        Where neurons share all their sources, as in RadiX-Nets, few partial sums are enough, and MIN has better use for
        the other slots: it keeps values across layers. The model does not see that, but the counts of the starts do.
        """
        items, best, seconds = self.items, self.best, self.seconds
        began = best.budget.spent()
        if seconds > PROBE.short_us * 1e-6 * len(items.edges) or not best.score.objective.plain:
            return 1.0
        value = self.start_value(1.0)
        if best.budget.spent() - began > PROBE.start_share * seconds:
            return 1.0
        least = items.network.n_connections + len(items.network.in_degree) + int(items.network.is_output.sum())
        cost = self.runs[self.slots_of(1.0)].search.cost - int((items.item < 0).sum())
        if value - least >= (1 - PROBE.idle) * cost or self.start_value(PROBE.half) >= value:
            return 1.0
        shares = [PROBE.half]
        for share in PROBE.fewer:
            if best.budget.spent() - began > PROBE.time_share * seconds:
                break
            shares.append(share)
            if self.start_value(share) >= self.start_value(shares[-2]):
                break
        if len(shares) == 2 and best.budget.spent() - began <= PROBE.time_share * seconds:
            shares.append(PROBE.more)
        return min(shares, key=self.start_value)

    def probe(self, share: float) -> float:
        """Return the value after a short trial with this share of slots."""
        slots = self.slots_of(share)
        if slots not in self.values:
            run = self.start(slots)
            moves = None if self.moves is None else round(self.moves * PROBE.share)
            self.values[slots] = run.run(moves, self.seconds * PROBE.share, self.best, PROBE.temperature)
            if not (self.future or self.best.budget.over):  # delays near the best one
                self.values[slots] = run.offer(self.best)
        return self.values[slots]


def cold_moves(items: Items, state: IntervalState, best: Best, moves: int, parameters: dict[str, object]) -> None:
    """Let a state go on for so many swaps, nearly all that are kept costing no more, and offer its order.

    parameters: what it is offered with; the order is decoded with their `delay`.
    """
    kinds = SPARSE_MOVES if items.sparse else DENSE_MOVES
    search = items.search(state.slots, best.task.seed)
    search.set_state(state.opens, state.drops)
    reach = max(2, min(REACH * state.slots, len(items.items) // 2))
    search.tune(kinds.end, reach, kinds.opens, kinds.drops, kinds.guided)
    done = 0
    while done < moves and not best.budget.over:  # a swap takes long where a source has very many targets
        search.run(min(FIRST_CHECK, moves - done))
        done += min(FIRST_CHECK, moves - done)
    search.refresh()
    best.work += done
    delay = parameters.get("delay", 0)
    assert isinstance(delay, int)
    best.offer(items.decode(search, delay), **parameters)


@ORDERINGS.register(
    "residency",
    summary="annealing over one residency interval per neuron; the strongest search",
    parameters=ResidencyParameters,
    searches=True,
    steps="moves",
)
def residency(network: Network, task: Task, parameters: ResidencyParameters) -> Ordering:
    """Anneal residency intervals from the cheapest streamed state. Deterministic unless a time limit ends it."""
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
        share = PLANNED_SHARE if items.planned else SHARE[best.task.policy]
        if items.sparse and not items.planned and LONG_US * 1e-6 * items.network.n_connections <= seconds < math.inf:
            share = min(share, LONG_SHARE)
    began, moves = best.budget.spent(), parameters.moves
    if moves is None and seconds == math.inf:
        moves = default_moves(items, best.task.memory)
    swaps = None if moves is None else moves - round(moves * share)
    progress = best.task.progress
    with best.reporting(progress and part(progress, 0, 1 - share)):
        annealed = anneal_for_objective(items, best, replace(parameters, moves=swaps), seconds * (1 - share), heat)
    edge_moves = None if moves is None else round(moves * share / SWAPS_PER_MOVE)
    with best.reporting(progress and part(progress, 1 - share, 1)):
        start = None
        if annealed and share > MOSTLY and not items.planned and CLEARLY * annealed.offered <= best.value:
            start = annealed.order  # edge moves get further from it
        polish(best, items.network, edge_moves, seconds - (best.budget.spent() - began), start)


def anneal_for_objective(
    items: Items, best: Best, parameters: ResidencyParameters, seconds: float, heat: float = 1.0
) -> Annealing | None:
    """Anneal with the number of slots that suits the objective.

    A state's cost is I/Os at its number of slots, whatever the objective. But fewer slots leave fast memory for batches
    of sources, that is for longer runs, or make an order for a smaller memory. So short searches with fewer and fewer
    slots are compared by the objective, and the rest of the budget goes to the best number.
    """
    objective, task = best.score.objective, best.task
    if objective.plain or parameters.slots:
        return anneal(items, best, parameters, seconds, heat)
    began, done = best.budget.spent(), best.work
    moves = parameters.moves
    largest = max((term.within(task)[3] for term in objective.io), default=task.memory)
    by_io = replace(task, objective=replace(objective, runs=0), progress=None)

    def left() -> float:
        return seconds - (best.budget.spent() - began) if seconds < math.inf else math.inf

    def trial(slots: int) -> float:
        trial_best = Best(Scorer(items.network, by_io), best.budget, by_io)
        short = None if moves is None else round(moves * PROBE.trial_share)
        settings = replace(parameters, slots=slots, moves=short)
        anneal(items, trial_best, settings, seconds * PROBE.trial_share, heat)
        assert trial_best.edges is not None
        best.work += trial_best.work
        return best.offer(trial_best.edges, slots=slots)

    slots = min(largest - 2, len(items.items))
    if not task.sees_future:
        slots = max(1, min(slots, round(SHARES[task.policy][0] * (largest - 1))))
    values = {slots: trial(slots)}
    worse = 0
    while worse < PROBE.patience and slots > 1 and left() > 0:
        slots = round(slots * PROBE.trial_step)
        value = trial(slots)
        worse = 0 if value < min(values.values()) else worse + 1
        values[slots] = value
    chosen = min(values, key=lambda slots: (values[slots], -slots))
    rest = None if moves is None else max(0, moves - (best.work - done))
    if left() > 0 and rest != 0:
        anneal(items, best, replace(parameters, slots=chosen, moves=rest), left(), heat)
    return None


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


@dataclass(frozen=True)
class StationaryParameters:
    """slots: partial sums (and kept values) resident at once; None: tried out by policy."""

    slots: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, slots=1)


@ORDERINGS.register(
    "output-stationary",
    summary="partial sums stay resident, finished neurons stream past them",
    parameters=StationaryParameters,
    portfolio=3,
    effort=0.8,
)
def output_stationary(network: Network, task: Task, parameters: StationaryParameters) -> Ordering:
    """Stream the finished neuron whose targets have the least left, open those that share most of their sources.

    The greedy of `learned` with plain weights; two-optimal where the time is too short for it.
    """
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    items = Items.of(network, task)
    making = before_orders(budget, items)
    if making.over:
        best.offer(two_optimal_order(network))
    else:
        for slots in [parameters.slots] if parameters.slots else slot_choices(task):
            if best.edges is not None and budget.over:
                break
            slots = max(1, min(slots, task.memory - 2))
            state = plain_state(items, slots, making)
            search = items.search(slots, still=True)
            search.set_state(state.opens, state.drops)
            best.work += 1
            best.offer(items.decode(search), slots=slots)
    return best.ordering("output-stationary", best.parameters, budget.over or not best.work)
