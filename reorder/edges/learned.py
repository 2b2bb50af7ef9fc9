"""Learned orders. `learned`: a greedy over residency intervals whose scores are linear with trained weights, one pass.
`eon`: the edge ordering network of Kamatar 2023, trained for one network.

Weights are trained by `edgewatt learn order` (reorder.learning); those that come with this program were trained on
generated networks. A few sets are tried and the best by exact count is kept; a short cold annealing ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reorder.base import ORDERINGS, Ordering, Task
from reorder.search.budget import Best, Budget, Scorer, at_least
from reorder.search.intervals import Items
from reorder.search.keys import two_optimal_order
from reorder.search.residency import cold_moves
from reorder.search.rolling import slot_choices
from reorder.search.streaming import Weights, fitting, read_weights, shipped_weights, streamed
from traces.base.errors import InputError, MissingExtraError
from traces.work.network import Network

DELAYS = (0, 2, 8, 24)  # stages by which opens are put off under LRU and RR: a source lingers after it was loaded
AFTER_US, MOVE_US, CONNECTION_US = (
    45_000,
    0.3,
    0.016,
)  # swaps at the end: in all, each, and for each connection into one


@dataclass(frozen=True)
class LearnedParameters:
    """weights: a file of `edgewatt learn order`; None: those that come with this program.

    slots: neurons resident at once; None: by policy. moves: swaps of residency intervals that cost no more, after the
    pass; None: as many as take some 25 ms, 0: none.
    """

    weights: str | None = None
    slots: int | None = None
    moves: int | None = None

    def __post_init__(self) -> None:
        if self.weights is not None and (not isinstance(self.weights, str) or not self.weights):
            raise InputError(f"weights must name a file of `edgewatt learn order`, not {self.weights!r}")
        at_least("slots", self.slots, 1)
        at_least("moves", self.moves, 0)


@ORDERINGS.register(
    "learned",
    summary="one pass: partial sums stay, the source that helps them most streams next; trained weights",
    parameters=LearnedParameters,
    portfolio=3.5,
)
def learned(network: Network, task: Task, parameters: LearnedParameters) -> Ordering:
    """Run the greedy with one set of weights after another; two-optimal where time is up before the first is done."""
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    items = Items.of(network, task)
    sets = shipped_weights() if parameters.weights is None else read_weights(parameters.weights)
    choices = [parameters.slots] if parameters.slots else slot_choices(task)[: 1 if task.policy == "min" else 3]
    ways = [
        (max(1, min(slots, task.memory - 2)), one)
        for one in fitting(sets, items, task.policy, choices[0])
        for slots in choices
    ]
    for slots, weights in ways:
        if best.edges is not None and budget.over:
            break
        best.work += 1
        stream_into(items, best, slots, weights)
    if best.edges is None:
        best.offer(two_optimal_order(network), slots=0, set="")
    elif parameters.moves != 0 and task.prepared is None and not budget.over:
        moves = parameters.moves
        if moves is None:
            moves = round(AFTER_US / (MOVE_US + CONNECTION_US * len(items.edges) / len(items.items)))
        weights = next(one for _, one in ways if one.name == best.found["set"])
        state = streamed(items, best.found["slots"], weights)
        if state is not None:
            cold_moves(items, state, best, moves, best.found)
    return best.ordering("learned", best.found, budget.over)


def stream_into(items: Items, best: Best, slots: int, weights: Weights) -> None:
    """Run the greedy once and offer what it finds, under LRU and RR with several delays."""
    state = streamed(items, slots, weights, best.budget)
    if state is None:
        return
    search = items.search(state.slots)
    search.set_state(state.opens, state.drops)
    for delay in (0,) if best.task.policy == "min" else DELAYS:
        best.offer(items.decode(search, delay), slots=state.slots, set=weights.name, delay=delay)


@dataclass(frozen=True)
class EonParameters:
    """checkpoint: a file of `edgewatt learn eon` for this network. samples: orders drawn from the policy besides.

    greedy_only: take the likeliest connection at each step and nothing else; otherwise the best order of the training
    and the samples compete with it.
    """

    checkpoint: str = field(metadata={"file": True})
    samples: int = 0
    greedy_only: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.checkpoint, str) or not self.checkpoint:
            raise InputError(f"checkpoint must name a file of `edgewatt learn eon`, not {self.checkpoint!r}")
        at_least("samples", self.samples, 0)


@ORDERINGS.register(
    "eon",
    summary="Kamatar 2023: a policy trained by reinforcement on this network picks connections from the frontier",
    parameters=EonParameters,
    extra="learn",
)
def eon(network: Network, task: Task, parameters: EonParameters) -> Ordering:
    """Let the trained policy make an order. Raises InputError for a checkpoint of another network."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", "learn") from error
    from reorder.learning.eon.checkpoint import read
    from reorder.learning.eon.episodes import frontiers, play
    from reorder.learning.eon.policy import Graph

    state = read(parameters.checkpoint, network)
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    graph = Graph(state.features, network.sources, network.targets)
    made = play(state.parameters, graph, frontiers(network, 1, task.memory - 1), None)
    best.offer(made.edges[:, 0], take="greedy")
    if not parameters.greedy_only and len(state.best):
        best.offer(state.best, take="training")
    if not parameters.greedy_only and parameters.samples:
        generator = torch.Generator().manual_seed(task.seed)
        drawn = play(state.parameters, graph, frontiers(network, parameters.samples, task.memory - 1), generator)
        for edges in drawn.edges.T:
            best.offer(edges.copy(), take="sample")
    return best.ordering("eon", best.found, budget.over)
