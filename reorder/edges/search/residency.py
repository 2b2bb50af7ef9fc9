"""Residency-interval annealing: the search behind the best orders (docs/concepts/reordering-engine.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from cython_ext.residency.residency import Residency
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, at_least, count_of
from reorder.edges.search.initial_states import SHARES, OutOfTime, start_state
from reorder.edges.search.intervals import Int64Array, IntervalState, Items
from reorder.edges.search.lru_touch import applies, offer_refreshed
from traces.base.errors import InputError

MOVES_PER_ITEM = 2000  # the default budget
CHECKPOINTS = 24  # exact counts of the decoded order along one annealing run
# Looking for the number of slots: share of the budget per try, its temperature, the factor between tries, most tries.
PROBE, PROBE_TEMPERATURE, STEP, MOST_PROBES = 0.05, 0.1, 0.85, 4
FEWER = 0.9  # the factor under MIN
# Far fewer slots under MIN: half, then still fewer, or more. Tried where the first start's order does without so much
# of what its state costs, and where time is short (us a connection): longer searches got further from many slots. On
# that share of the time at most, where a start takes at most that share.
IDLE, HALF, STILL_FEWER, MORE, SHORT_US, FAR_TIME, FAR_START = 0.01, 0.5, (0.35, 0.25), 0.7, 20, 0.3, 0.1
DELAYS = (0, 1, 2, 4, 8, 16, 32)  # tried first, in stages
CHECKPOINT_SHARE = 0.04  # of the time at most, for those counts


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
        return min(self.hottest, self.heat * max(0.06, 0.2 * (max(1.0, moves_per_item) / 2700) ** 0.18))


LOOK, CHUNKS = 1024, 50  # swaps before a first look at the clock, looks of a search
LOOKED_AT = 1 << 22  # targets of one source that the first swaps may look at: a fan of many has dear swaps
REACH = 8  # the longest swap in slots: an item stays for about as many drops as there are slots
DENSE_MOVES = MoveShares(0.6, 0.2, 0.2, 0.2, 1.0, hottest=0.45, end=0.07)
SPARSE_MOVES = MoveShares(0.0, 0.1, 0.2, 0.95, 4.0, hottest=1.8, end=0.07)
FEW_MOVES = MoveShares(0.0, 0.1, 0.2, 1.0, 4.0, hottest=0.5, end=0.07)


SCANNED = 1000  # items, from which scans have been found to pay


@dataclass(frozen=True)
class ResidencyParameters:
    """moves: how many swaps are proposed; None: until the time limit, or 2000 per neuron without one.

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
        count_of("starts", self.starts, 1)
        count_of("workers", self.workers, 1)
        count_of("moves", self.moves, 0)
        count_of("slots", self.slots, 1)
        at_least("temperature", self.temperature, 0)
        at_least("polish", self.polish, 0)
        if self.polish is not None and self.polish > 1:
            raise InputError(f"polish is a share of the budget, at most 1, not {self.polish!r}")


class Annealing:
    """One annealing run over one kernel state, cooling as its share of the budget is used up."""

    def __init__(self, items: Items, state: IntervalState, seed: int, moves: MoveShares) -> None:
        self.items, self.slots = items, state.slots
        self.search: Residency = items.search(state.slots, seed, blocks=items.in_blocks)
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
        look = max(1, min(LOOK, LOOKED_AT // int(np.diff(self.items.by_source[0]).max(initial=1))))
        least = min(64, look)
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
                step = min(step, max(least, int(done / max(spent, 1e-6) * seconds / CHUNKS)) if done else look)
            self.search.run(step)
            done += step
            best.work += step
            if share >= next_checkpoint:
                self.offer(best)
                next_checkpoint = share + max(1 / CHECKPOINTS, self.took / CHECKPOINT_SHARE / max(seconds, 1e-9))
            if best.task.progress:
                best.task.progress(round(1000 * share), 1000, f"{best.value:.0f}")
        self.done += done
        return self.offer(best) if done or self.offered == math.inf else self.offered


def anneal(items: Items, best: Best, parameters: ResidencyParameters, seconds: float, heat: float = 1.0) -> None:
    """Find the number of slots on a small part of the budget, then anneal with it; offer all that is found."""
    try:
        _anneal(items, best, parameters, seconds, heat)
    except OutOfTime:
        if best.edges is None:
            best.offer(two_optimal_order(items.network))


def _anneal(items: Items, best: Best, parameters: ResidencyParameters, seconds: float, heat: float) -> None:
    """Do what `anneal` says.

    MIN: from M - 2, where the model is exact, to fewer, which leave MIN room to keep sources. LRU and RR: from a share
    of M - 1 downhill, up or down. Each as long as it pays.
    """
    if best.edges is not None and not best.has_time:
        return
    task, seed = best.task, best.task.seed
    n = len(items.items)
    moves = parameters.moves
    if moves is None and seconds == math.inf:
        moves = MOVES_PER_ITEM * n
    ends = best.budget.spent() + seconds
    few = items.few and task.sees_future  # LRU and RR, where the model is not exact, like it hot
    kinds = FEW_MOVES if few else SPARSE_MOVES if items.sparse else DENSE_MOVES
    if n < SCANNED:
        kinds = replace(kinds, scans=0.0)
    kinds = replace(kinds, heat=heat * kinds.heat, hottest=heat * kinds.hottest)
    runs: dict[int, Annealing] = {}
    values: dict[int, float] = {}
    started: dict[int, float] = {}

    def start(slots: int) -> None:
        state = start_state(items, slots, best.budget, task.policy)
        runs[slots] = Annealing(items, state, seed, kinds)

    def slots_of(share: float) -> int:
        return max(1, min(round(share * (task.memory - 1)), task.memory - 2, n))

    def fewer_start_better(share: float) -> bool:
        """Return whether the start with the next number of slots is the better one, by exact counts."""
        of_this = Annealing(items, start_state(items, slots_of(share), best.budget, task.policy), seed, kinds)
        fewer = slots_of(share * step)
        if fewer not in runs:
            start(fewer)
        return runs[fewer].offer(best) < of_this.offer(best)

    def start_value(share: float) -> float:
        slots = slots_of(share)
        if slots not in started:
            if slots not in runs:
                start(slots)
            started[slots] = runs[slots].offer(best)
        return started[slots]

    def far_share() -> float:
        """Return the share of slots with the best start, by exact counts, among few that lie far apart.

        Where neurons share all their sources, as in RadiX-Nets, few partial sums are enough, and MIN has better use for
        the other slots: it keeps values across layers. The model does not see that, but the counts of the starts do.
        """
        began = best.budget.spent()
        if seconds > SHORT_US * 1e-6 * len(items.edges) or not best.score.objective.plain:
            return 1.0
        value = start_value(1.0)
        if best.budget.spent() - began > FAR_START * seconds:
            return 1.0
        least = items.network.n_connections + len(items.network.in_degree) + int(items.network.is_output.sum())
        cost = runs[slots_of(1.0)].search.cost - int((items.item < 0).sum())
        if value - least >= (1 - IDLE) * cost or start_value(HALF) >= value:
            return 1.0
        shares = [HALF]
        for share in STILL_FEWER:
            if best.budget.spent() - began > FAR_TIME * seconds:
                break
            shares.append(share)
            if start_value(share) >= start_value(shares[-2]):
                break
        if len(shares) == 2 and best.budget.spent() - began <= FAR_TIME * seconds:
            shares.append(MORE)
        return min(shares, key=start_value)

    def probe(share: float) -> float:
        slots = slots_of(share)
        if slots not in values:
            if slots not in runs:
                start(slots)
            tried = None if moves is None else round(moves * PROBE)
            values[slots] = runs[slots].run(tried, seconds * PROBE, best, PROBE_TEMPERATURE)
            if not (task.sees_future or best.budget.over):  # delays near the best one
                values[slots] = runs[slots].offer(best)
        return values[slots]

    share = SHARES[task.policy][0] if SHARES[task.policy] else 1.0
    began = best.budget.spent()
    if parameters.slots:
        chosen = min(parameters.slots, n)
        start(chosen)
    elif task.sees_future and n <= task.memory - 2:
        chosen = n
        start(chosen)
    elif few:  # cold trials of fewer slots took half of a second and chose worse than none (measured)
        chosen = slots_of(far_share())
        if chosen not in runs:
            start(chosen)
    else:
        if task.sees_future:
            share = far_share()
        probe(share)
        step = FEWER
        if task.sees_future:  # more are impossible; a start that takes as long as its trial is not worth a second one
            tries = 0 if best.budget.spent() - began > 2 * PROBE * seconds else MOST_PROBES
        elif best.budget.spent() >= ends:
            tries = 0
        else:
            tries = MOST_PROBES
            step = STEP if probe(share * STEP) < probe(share) else 1 / STEP
        for _ in range(tries):  # a step made already costs nothing again
            if best.budget.spent() >= ends:
                break
            # of two numbers of slots under MIN, the one with the better start was the better one after its trial in all
            # cases tried (4 x 500, 8 x 300, RadiX-Nets, hubs): where time is short, only such are tried
            if task.sees_future and seconds < math.inf and not fewer_start_better(share):
                break
            if probe(share * step) >= probe(share):
                break
            share *= step
        chosen = min(values, key=lambda slots: (values[slots], -slots if task.sees_future else slots))
    left = ends - best.budget.spent() - runs[chosen].took if seconds < math.inf else math.inf
    if left > 0:
        used = sum(run.done for run in runs.values())
        runs[chosen].run(None if moves is None else max(0, moves - used), left, best, parameters.temperature)
        decoded = runs[chosen].order
        if decoded is not None and applies(best):
            offer_refreshed(best, items.network, decoded, runs[chosen].horizon)
    elif best.edges is None:  # a limit that the constructions alone used up
        runs[chosen].offer(best)


def cold_moves(items: Items, state: IntervalState, best: Best, moves: int, parameters: dict[str, object]) -> None:
    """Let a state go on for so many swaps, nearly all that are kept costing no more, and offer its order.

    parameters: what it is offered with; the order is decoded with their `delay`.
    """
    kinds = SPARSE_MOVES if items.sparse else DENSE_MOVES
    search = items.search(state.slots, best.task.seed, blocks=items.in_blocks)
    search.set_state(state.opens, state.drops)
    reach = max(2, min(REACH * state.slots, len(items.items) // 2))
    search.tune(kinds.end, reach, kinds.opens, kinds.drops, kinds.guided)
    done = 0
    while done < moves and not best.budget.over:  # a swap takes long where a source has very many targets
        search.run(min(LOOK, moves - done))
        done += min(LOOK, moves - done)
    search.refresh()
    best.work += done
    delay = parameters.get("delay", 0)
    assert isinstance(delay, int)
    best.offer(items.decode(search, delay), **parameters)
