"""Small networks: annealing of the sequence by exact counts, and a proof that no order has fewer I/Os."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cython_ext.annealing.sequence import Sequence
from cython_ext.edges.exact import MOST_EDGES, MOST_PLACES, MOST_VALUES, least_order
from cython_ext.iomodel.counts import PINNING_CODES, POLICY_CODES
from reorder.base import Task
from reorder.edges.search.budget import Best
from traces.networks.network import Int64Array, Network


@dataclass(frozen=True)
class SmallSearch:
    """Up to which size networks count as small, and how they are searched.

    connections: at most; above, other searches find more in the same time. hot, cold: first and last temperature of a
    round, in I/Os. round_s, at, power: seconds of a round with `at` connections, and how they grow with them.
    moves: per connection, without a time limit. states: of the A*, without one; it is begun for at most `provable`
    connections. anytime: states above that, where a bound alone is wanted.
    """

    connections: int = 600
    hot: float = 1.0
    cold: float = 0.12
    round_s: float = 0.05
    at: int = 20
    power: float = 0.7
    moves: int = 4000
    states: int = 160_000
    provable: int = 24
    anytime: int = 8_000


SMALL = SmallSearch()
SLICES = 32  # temperatures of a round


def suits(best: Best, network: Network) -> bool:
    """Whether a network is small, and the objective the I/Os of one fast memory."""
    return best.score.objective.plain and 1 < network.n_connections <= SMALL.connections


def anneal_sequence(best: Best, network: Network, moves: int | None, seconds: float) -> None:
    """Anneal the best order for so many moves (None: by the size), or, under a limit, for so many seconds; offer what
    is found."""
    assert best.edges is not None
    task, w = best.task, network.n_connections
    ends = network.sources.astype(np.int32), network.targets.astype(np.int32)
    codes = POLICY_CODES[task.policy], PINNING_CODES[task.pinning]
    search = Sequence(*ends, network.n_neurons, network.is_output.view(np.uint8), task.memory, *codes, task.seed)
    least = w + search.start(best.edges)
    began, done = best.budget.spent(), 0
    timed = seconds < math.inf
    whole = SMALL.moves * w if moves is None else moves
    rounds = max(1, round(seconds / (SMALL.round_s * (w / SMALL.at) ** SMALL.power))) if timed else 3
    step = max(1, min(whole // (rounds * SLICES), 64) if timed else whole // (rounds * SLICES))
    at = 0
    while True:
        share = (best.budget.spent() - began) / seconds if timed else done / whole
        if share >= 1:
            break
        if int(share * rounds) > at:
            at = int(share * rounds)
            search.start(search.best_found())
        search.run(step, SMALL.hot * (SMALL.cold / SMALL.hot) ** (share * rounds - at))
        done += step
    best.work += done
    if w + search.least < least:
        best.offer(search.best_found())


def prove(best: Best, network: Network, seconds: float) -> bool:
    """Return whether the best order has the least I/Os of all; first look for one that has fewer.

    seconds: at most; without a limit the states of the search are bounded instead.
    """
    task = best.task
    if best.edges is None or network.n_connections > SMALL.provable or not _solvable(network, task):
        return False
    began = best.budget.spent()
    timed = seconds < math.inf
    over = (lambda: best.budget.spent() - began >= seconds) if timed else None
    edges, proved, _ = _least_order(network, task, int(best.value), 1 << 24 if timed else SMALL.states, over)
    if edges is not None:
        best.offer(edges)
    return proved


def least_total(network: Network, task: Task, known: int) -> int:
    """Return I/Os that no order of a small network is below under the task's policy, at most `known`; 0: not small.

    From the A* of `prove`, which may end early: what it has not looked at by then has at least so many.
    """
    if not _solvable(network, task):
        return 0
    states = SMALL.states if network.n_connections <= SMALL.provable else SMALL.anytime
    return network.n_connections + _least_order(network, task, known, states)[2]


def _solvable(network: Network, task: Task) -> bool:
    held = task.memory - 1 <= MOST_PLACES or task.sees_future
    literal = task.sees_future or task.pinning == "literal"
    return 0 < network.n_connections <= MOST_EDGES and network.n_neurons <= MOST_VALUES and held and literal


def _least_order(
    network: Network, task: Task, known: int, states: int, over: Callable[[], bool] | None = None
) -> tuple[Int64Array | None, bool, int]:
    ends = network.sources.astype(np.int32), network.targets.astype(np.int32)
    outputs, bound = network.is_output.view(np.uint8), known - network.n_connections
    policy = POLICY_CODES[task.policy]
    return least_order(*ends, network.n_neurons, outputs, task.memory, policy, bound, states, over)
