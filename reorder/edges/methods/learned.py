"""Learned orders. `learned`: a greedy over residency intervals whose scores are linear with trained weights, one pass.
`eon`: the edge ordering network of Kamatar 2023, trained for one network.

Weights were trained on generated networks by `edgewatt learn order` of version 0.2.0. A few sets are tried and the best
by exact count is kept; a short cold annealing ends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.methods.residency import cold_moves
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer, check_counts
from reorder.edges.search.initial_states import before_orders, slot_choices
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import neuron_coordinates
from reorder.edges.search.streaming import (
    Ends,
    Rival,
    StreamingWeights,
    fitting,
    has_spare_slots,
    is_sparse,
    shipped_weights,
    streamed,
)
from traces.base.errors import InputError, MissingExtraError, shown
from traces.networks.network import Network

# Stages by which opens are put off under LRU and RR, where a source lingers after it was loaded: tried first, then
# nearer and nearer to the best.
DELAYS, NEARER = (0, 3, 6, 12, 24), (2, 1)
FEWER = 0.87  # of the slots, tried too where memory holds much of a layer: MIN keeps sources in the others
# Swaps at the end: in all (twice that where memory holds much of a layer and the pass alone is weakest), each, and for
# each connection into an item.
AFTER_US, MOVE_US, CONNECTION_US = 20_000, 0.12, 0.019


@dataclass(frozen=True)
class LearnedParameters:
    """slots: neurons resident at once; None: by policy.

    moves: swaps of residency intervals that cost no more, after the pass; None: as many as take some 20 ms (40 where
    memory holds much of a layer), none where that is less than one an item; 0: none.
    """

    slots: int | None = None
    moves: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, slots=1, moves=0)


@ORDERINGS.register(
    "learned",
    summary="one pass: partial sums stay, the source that helps them most streams next; trained weights",
    parameters=LearnedParameters,
    portfolio=3.5,
    effort=1,
    local_effort=5,
)
def learned(network: Network, task: Task, parameters: LearnedParameters) -> Ordering:
    """Run the greedy with one set of weights after another.

    Where time is up before the first is done, what it did is completed; where there is none for it, two-optimal.
    """
    items = Items.of(network, task)
    if task.prepared is not None:
        neuron_coordinates(items)  # found out once for the whole portfolio: not in this member's time
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    learning = before_orders(budget, items)
    if not learning.over:
        stream_all(items, best, learning, parameters)
    if best.edges is None:
        best.offer(two_optimal_order(network), slots=0, set="")
    return best.ordering("learned", best.parameters, learning.over)


def stream_all(items: Items, best: Best, learning: Budget, parameters: LearnedParameters) -> None:
    """Offer what the greedy finds with one set of weights after another while `learning` has time, then swaps."""
    task = best.task
    choices = [parameters.slots] if parameters.slots else slot_choices(task)[: 1 if task.sees_future else 3]
    chosen = fitting(shipped_weights(), items, task.policy, choices[0])
    spare_slots = task.sees_future and has_spare_slots(items, choices[0]) and not is_sparse(items)
    if spare_slots and not parameters.slots:
        choices.append(round(FEWER * choices[0]))
    rivals = {slots: Rival() for slots in choices}
    for slots, weights in [(slots, weights) for weights in chosen for slots in choices]:
        if learning.over:
            return
        best.work += 1
        ends = Ends(learning, rivals[slots], cut=best.edges is None)
        stream_into(items, best, max(1, min(slots, task.memory - 2)), weights, ends)
    moves = parameters.moves
    if moves is None:
        moves = round((1 + spare_slots) * AFTER_US / (MOVE_US + CONNECTION_US * len(items.edges) / len(items.items)))
        moves = 0 if moves < len(items.items) else moves
    if not moves or learning.over or (task.prepared is not None and neuron_coordinates(items) is None):
        return
    weights = next(one for one in chosen if one.name == best.parameters["set"])
    state = streamed(items, best.parameters["slots"], weights)
    if state is not None:
        cold_moves(items, state, best, moves, best.parameters)


def stream_into(items: Items, best: Best, slots: int, weights: StreamingWeights, ends: Ends) -> None:
    """Run the greedy once and offer what it finds, under LRU and RR with several delays."""
    state = streamed(items, slots, weights, ends)
    if state is None:
        return
    search = items.search(state.slots, still=True)
    search.set_state(state.opens, state.drops)
    values: dict[int, float] = {}

    def offer(delays: Iterable[int]) -> int:
        for delay in delays:
            if delay >= 0 and delay not in values and (not values or best.has_time):
                made = items.decode(search, delay)
                values[delay] = best.offer(made, slots=state.slots, set=weights.name, delay=delay)
        return min(values, key=lambda delay: (values[delay], delay))

    if best.task.sees_future:
        offer([0])
        return
    known = best.parameters.get("delay")
    at = offer(DELAYS if known is None else [known])
    for step in NEARER:
        at = offer([at - step, at + step])


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
            raise InputError(f"checkpoint must name a file of `edgewatt learn eon`, not {shown(self.checkpoint)}")
        check_counts(self, samples=0)


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
    from reorder.eon.checkpoint import read
    from reorder.eon.episodes import frontiers, likeliest, play
    from reorder.eon.policy import Graph

    state = read(parameters.checkpoint, network)
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    graph = Graph(state.features, network.sources, network.targets)
    best.offer(likeliest(state.best_parameters, graph, network, task.memory - 1)[0], take="greedy")
    if not parameters.greedy_only and len(state.best):
        best.offer(state.best, take="training")
    if not parameters.greedy_only and parameters.samples:
        generator = torch.Generator().manual_seed(task.seed)
        drawn = play(state.best_parameters, graph, frontiers(network, parameters.samples, task.memory - 1), generator)
        for edges in drawn.edges.T:
            best.offer(edges.copy(), take="sample")
    return best.ordering("eon", best.parameters, budget.over)
