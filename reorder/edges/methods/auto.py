"""The portfolio: every construction that may win, then the search on what is left of the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from reorder.base import ORDERINGS, Method, Ordering, Task
from reorder.edges.bounds.bounds import least_objective
from reorder.edges.methods.residency import DENSE_MOVES, Annealing, ResidencyParameters, search
from reorder.edges.search.budget import Best, Budget, Scorer, check_counts
from reorder.edges.search.edge_moves import applies, offer_refreshed
from reorder.edges.search.initial_states import OutOfTime, slot_choices, start_state
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import give_up_coordinates, known_coordinates, neuron_coordinates
from reorder.edges.search.plans import PlanSearch, plan_search
from reorder.edges.search.small import SMALL, anneal_sequence, prove, suits
from traces.networks.network import Network


@dataclass(frozen=True)
class Shares:
    """What each stage may take of the time limit. Ends of stages count from the start; the search takes the rest.

    construction: of one construction at most; spare: times what it is expected to take, where that is more, for a busy
    machine, but beyond `spared` of the limit only `tight` times it; short_s: seconds that one may take, later, however
    short the limit; slow: of one after plans.
    constructions: end of those that need no locality. plans, changed_plans: end of making plans of what to fuse, and of
    changing them; plans are made until the latter while the best is younger than `patience`, or none yet known.
    sequence: of what is left, for annealing the sequence itself and for a proof, on small networks.
    most_plans: plans at most. starts: plans that the search may start from.
    give_up: single-depth plans this many times further above the bound than the best construction end the making of
    plans (RadiX-Nets have smooth coordinates but no strips). promising: the same for fused plans as starts.
    hopeful, hopeful_s: of the limit, and seconds at least: how long after the last better plan they are made in spite
    of that. Where strips of a depth do not fit, those of several may (1-D stencils, convolutions).
    looking: of the limit, what looking for locality may take before slow constructions.
    nearer: the same against a streamed start under a time limit (measured on grids, stencils and convolutions).
    spilled: single-depth plans with more extra I/Os a neuron than this, each value written and read once more, have
    strips whose fronts do not fit.
    """

    construction: float = 0.05
    short_s: float = 0.06
    slow: float = 0.2
    spare: float = 4.0
    spared: float = 0.15
    tight: float = 1.5
    constructions: float = 0.4
    plans: float = 0.65
    changed_plans: float = 0.75
    patience: float = 0.08
    sequence: float = 0.5
    most_plans: int = 400
    starts: int = 8
    give_up: float = 4.0
    promising: float = 1.25
    hopeful: float = 0.04
    hopeful_s: float = 0.01
    looking: float = 0.8
    nearer: float = 0.9
    spilled: float = 2.0


SHARES = Shares()
COORDINATES_NEURON_US = 8  # what it takes to find coordinates, a neuron (measured on convolutions, grids and stencils)


@dataclass(frozen=True)
class AutoParameters:
    """moves: steps of the search; None: until the time limit, or 2000 per neuron without one.

    starts: independent searches, each with all the moves, a seed and a temperature of its own. workers: processes that
    share them. rounds: of moves on a machine's cache, each simulated; None: until the time limit, or 60.
    """

    moves: int | None = None
    starts: int = 1
    workers: int = 1
    rounds: int | None = field(default=None, metadata={"later": True})

    def __post_init__(self) -> None:
        check_counts(self, moves=0, rounds=0, starts=1, workers=1)


def portfolio() -> list[str]:
    """Return the methods that declare a rank in the portfolio, in its order."""
    known = [(entry.item.portfolio, name) for name, entry in ORDERINGS.loadable().items()]
    return [name for _, name in sorted((rank, name) for rank, name in known if rank is not None)]


def constructions(network: Network) -> Iterator[tuple[str, Method]]:
    """Yield the constructions to try, in the order that they declare. Whether one suits is found out in its turn."""
    for name in portfolio():
        method = ORDERINGS[name].item
        if method.suits is None or method.suits(network):
            yield name, method


class Portfolio:
    """One run of `auto`: the best order so far, which member found it, and whether no order has fewer I/Os."""

    def __init__(self, network: Network, task: Task, parameters: AutoParameters) -> None:
        self.network, self.task, self.parameters = network, task, parameters
        self.best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
        self.bound = least_objective(network, task)
        self.items = Items.of(network, task)
        self.limit = task.time_limit_s or math.inf
        self.found_by = ""
        self.local = self.proved = False

    @property
    def done(self) -> bool:
        """Whether the best order is proved, at the bound, or the time is up."""
        return self.proved or self.best.value <= self.bound or self.best.budget.over

    def left(self, share: float) -> float:
        return share * self.limit - self.best.budget.spent()

    def construct(self) -> None:
        """Try constructions, each on a small share of the limit, two-optimal always; then what to fuse.

        Under a short limit, slow constructions that take less than looking for locality come before plans of what to
        fuse, unless a construction by locality is the best one, and the others after them. Without locality the search
        makes those that matter itself.
        """
        for edges in self.items.orders:
            with self.noting("given"):
                self.best.offer(edges)
        known = list(constructions(self.network))
        self.make_quick([(name, method) for name, method in known if method.local_effort is None])
        looking = COORDINATES_NEURON_US * 1e-6 * self.network.n_neurons
        placed = known_coordinates(self.network) is not None  # then looking takes nothing
        most = max(SHARES.short_s, SHARES.slow * self.limit)
        first = min(looking, most if placed else SHARES.short_s)
        made = 0.0  # seconds of the slowest tried
        if looking > SHARES.looking * self.limit:
            self.make_slow(known, made, first)
            made = first
        before = self.best.value
        looks = self.done or placed or looking <= self.left(1.0)
        if not looks:
            give_up_coordinates(self.items)
        self.local = not self.done and neuron_coordinates(self.items) is not None
        self.make_quick([(name, method) for name, method in known if method.local_effort is not None])
        if self.local:
            self.make_local(known)
        if looks and not self.local:
            return
        if self.best.value == before:
            self.make_slow(known, made, first)
            made = first
        if self.local:
            with self.noting("sweep"):
                fuse(self.items, self.best, self.bound, before - self.bound)
        self.make_slow(known, made, most)

    def make_quick(self, known: list[tuple[str, Method]]) -> None:
        for name, method in known:
            if not method.only_local and not self.skips(method):
                self.offer(name, method)

    def make_slow(self, known: list[tuple[str, Method]], above: float, most: float) -> None:
        """Try constructions that take more than their share of a short limit, but little: between so many seconds."""
        for name, method in known:
            if method.only_local or self.done or not self.slow(method):
                continue
            if above < self.takes(method) <= min(most, self.left(1.0)):
                self.offer(name, method)

    def make_local(self, known: list[tuple[str, Method]]) -> None:
        for name, method in known:
            if method.only_local and (not self.slow(method) or self.takes(method) <= SHARES.short_s):
                self.offer(name, method)

    def skips(self, method: Method) -> bool:
        """Whether a construction has nothing to gain on this network, or too little time."""
        if self.best.edges is None:
            return False
        return self.done or self.slow(method) or self.left(SHARES.constructions) <= 0

    def takes(self, method: Method) -> float:
        """Return the seconds that a construction takes, roughly."""
        effort = (self.local and method.local_effort) or method.effort
        return 1e-6 * effort * self.network.n_connections

    def slow(self, method: Method) -> bool:
        return self.takes(method) > SHARES.construction * self.limit

    def offer(self, name: str, method: Method) -> None:
        """Offer a construction's order, made within its share of the limit, or more where it is expected to take it."""
        self.best.work += 1
        limit = None
        if self.task.time_limit_s is not None:
            takes = self.takes(method)
            spared = min(SHARES.spare * takes, max(SHARES.spared * self.limit, SHARES.tight * takes))
            limit = max(SHARES.construction * self.limit, min(spared, self.left(1.0)))
        self.items.least = self.best.value
        task = replace(self.task, time_limit_s=limit, prepared=self.items)
        with self.noting(name):
            made = method(self.network, task, ORDERINGS[name].make_parameters({}))
            self.best.offer(made.edges)

    @contextmanager
    def noting(self, name: str) -> Iterator[None]:
        """Note who found the best order if the block finds a better one."""
        before = self.best.value
        yield
        if self.best.value < before:
            self.found_by = name

    def search(self) -> None:
        """Spend what is left of the budget on searches, from the best state of any origin."""
        if self.parameters.moves == 0:
            return
        small = suits(self.best, self.network)
        tiny = small and self.network.n_connections <= SMALL.provable
        if tiny:
            self.anneal_sequence(SHARES.sequence)
            if not self.done:
                with self.noting("proof"):
                    self.proved = prove(self.best, self.network, SHARES.sequence * self.left(1.0))
        if self.local and not self.done:
            with self.noting("sweep"):
                start_from_plans(self.items, self.best, self.bound)
        if not self.done:
            with self.noting("residency"):
                self.anneal(1 - SHARES.sequence if small and not tiny else 1.0)
        if small and not tiny:
            self.anneal_sequence(1.0)

    def anneal_sequence(self, share: float) -> None:
        """Anneal the sequence of connections on a share of what is left."""
        if not self.done:
            with self.noting("sequence"):
                anneal_sequence(self.best, self.network, self.parameters.moves, share * self.left(1.0))

    def anneal(self, share: float) -> None:
        """Anneal residency intervals on a share of what is left, from the best order too."""
        given = self.parameters
        assert self.best.edges is not None
        if applies(self.best):
            offer_refreshed(self.best, self.network, self.best.edges)
        if not any(self.best.edges is order for order in self.items.orders):
            self.items.orders.append(self.best.edges)
        parameters = ResidencyParameters(given.moves, starts=given.starts, workers=given.workers)
        search(self.items, self.best, parameters, share * self.best.budget.left())


def fuse(items: Items, best: Best, bound: float, others: float) -> None:
    """Look for what to fuse on a network with locality.

    The plan of single depths comes first; where it is far above the constructions' `others`, no others are made.
    """
    plans = plan_search(items, best.task.memory)
    if plans is None or best.value <= bound:
        return
    limit_s = best.task.time_limit_s or math.inf
    most = min(SHARES.give_up * others, SHARES.spilled * len(items.network.in_degree))

    least, since = math.inf, 0.0

    def enough(tried: int) -> bool:
        nonlocal least, since
        spent = best.budget.spent()
        if least_plan(plans) < least:
            least, since = least_plan(plans), spent
        improves = not plans.has_single_depths or since + SHARES.patience * limit_s > spent
        over = spent >= (SHARES.changed_plans if improves else SHARES.plans) * limit_s or best.value <= bound
        hopeful = math.isfinite(limit_s) and since + max(SHARES.hopeful * limit_s, SHARES.hopeful_s) > spent
        return over or (plans.has_single_depths and least - bound > most and not hopeful)

    plans.fused(best, enough)


def least_plan(plans: PlanSearch) -> float:
    """Return the least value of a plan; infinite where none was made."""
    return min(plans.values.values(), default=math.inf)


def start_from_plans(items: Items, best: Best, bound: float) -> None:
    """Let the search start from the best plans if they are clearly nearer to the bound than the state from which it
    starts without them; change the best if nothing beats it."""
    plans = plan_search(items, best.task.memory)
    if plans is None or least_plan(plans) - bound > SHARES.promising * (best.value - bound):
        return
    timed = best.task.time_limit_s is not None  # else both have all their moves
    if timed and least_plan(plans) - bound > SHARES.nearer * (start_value(items, best) - bound):
        return
    ends = SHARES.changed_plans * (best.task.time_limit_s or math.inf)
    if least_plan(plans) <= best.value:
        most = SHARES.most_plans
        plans.walk(best, lambda tried: tried >= most or best.budget.spent() >= ends or best.value <= bound)
    items.orders += plans.orders(SHARES.starts)
    items.planned = least_plan(plans) <= best.value


def start_value(items: Items, best: Best) -> float:
    """Offer the order from which the search would start without plans, and return its value; infinite without time."""
    slots = min(slot_choices(best.task)[0], len(items.items))
    try:
        state = start_state(items, slots, best.budget, best.task)
    except OutOfTime:
        return math.inf
    return Annealing(items, state, best.task.seed, DENSE_MOVES).offer(best)


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
    """Return the best order found under the task's objective; never worse than two-optimal.

    parameters of the result: found_by, the member that found it; optimal, 'proved' where no order has fewer I/Os.
    """
    run = Portfolio(network, task, parameters)
    run.construct()
    run.search()
    proved = run.proved or run.best.value <= run.bound
    truncated = task.time_limit_s is not None and not proved and (parameters.moves is None or run.best.budget.over)
    return run.best.ordering("auto", {"found_by": run.found_by} | ({"optimal": "proved"} if proved else {}), truncated)
