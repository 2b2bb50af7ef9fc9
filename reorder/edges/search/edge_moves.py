"""Single connections of a good order: touches for LRU, and edge moves by the exact objective.

A touch uses a value that LRU would evict before its next use once more (cython_ext/residency/recency.pyx). Edge moves
are those of Connection Reordering (Gleinig et al. 2023, section IV), all but cold: an order that costs no more is kept.
Searches over residency intervals see a model of the policy; this sees the policy itself.
"""

from __future__ import annotations

import math

import numpy as np

from cython_ext.annealing.connections import _Annealer
from cython_ext.residency.recency import refreshed
from reorder.base import Task
from reorder.edges.search.budget import Best, so_far
from reorder.edges.search.objectives import make_objective
from traces.networks.network import Int64Array, Network
from traces.networks.processing import processing_arrays

# How far to look for connections to do early, as shares of those in which as many values come in as fast memory holds
# where each comes in once (measured on unrolled convolutions).
HORIZONS = (0.1, 0.4)
REFRESHED = 10  # counts that one refreshing takes, about (measured at 1e5 to 1e7 connections)


def applies(best: Best) -> bool:
    """Whether the objective counts the I/Os of LRU alone."""
    return best.score.objective.plain and best.task.keeps_touched


def horizons(network: Network, memory: int) -> list[int]:
    """Return the horizons to try first, in connections."""
    turnover = memory * network.n_connections / max(1, int(network.touched.sum()))
    return [max(1, round(share * turnover)) for share in HORIZONS]


def offer_refreshed(best: Best, network: Network, edges: Int64Array, first: int | None = None) -> tuple[float, int]:
    """Offer an order (int64[W]) with values kept; return the least value and the horizon that gave it.

    Horizons go up from `first` by factors of two for as long as that pays, then down. The value is infinite where there
    is too little time for one.
    """
    ends = network.sources[edges].astype(np.int32), network.targets[edges].astype(np.int32)
    memory, values, per_horizon = best.task.memory, dict[int, float](), 0.0

    def value(horizon: int) -> float:
        nonlocal per_horizon
        takes = max(REFRESHED * best.counting, per_horizon * horizon)
        if horizon not in values and best.budget.left() > takes + best.offer_s:
            began = best.budget.spent()
            made = edges[refreshed(*ends, network.n_neurons, memory, horizon)]
            per_horizon = (best.budget.spent() - began) / horizon
            values[horizon] = best.offer(made, **best.parameters)
        return values.get(horizon, np.inf)

    chosen = first or horizons(network, memory)[0]
    for factor in (2.0, 0.5):
        while value(other := max(1, round(factor * chosen))) < value(chosen):
            chosen = other
    return value(chosen), chosen


# Of the budget: the less the model fits the policy, the more (measured), and more where annealing finds less, after
# plans of what to fuse; less under RR on sparse networks, where a long search anneals further (from about 300 us a
# connection on, by .3 to 1 % on four networks; below, by as much less far).
SHARE, PLANNED_SHARE = {"min": 0.04, "lru": 0.15, "rr": 0.93}, 0.8
LONG_US, LONG_SHARE = 300, 0.6
SWAPS_PER_MOVE = 20  # swaps of residency intervals that take as long as one edge move (measured)
PATIENCE = 2.0  # I/Os above the present order at which a move is given up; few recover (measured)
COLD = 2.0  # cooling rate: after ten moves one I/O more is kept once in 10^30
CHUNKS = 20  # looks at the clock
MANY_CONNECTIONS, BEGIN_US = 1_000_000, 0.8  # above, a search takes so long to begin, a connection (measured at 1e7)


def annealer(
    network: Network,
    task: Task,
    start: Int64Array,
    window: int,
    sigma: float,
    incremental: bool = True,
    patience: float = math.inf,
) -> _Annealer:
    """Return the compiled search from the order `start` (int64[W]), under the task's objective."""
    objective = make_objective(task.objective)
    return _Annealer(
        *processing_arrays(network, start), network.n_neurons, network.is_output.astype(np.uint8),
        runs_weight=objective.runs, io_terms=[term.within(task) for term in objective.io],
        window=min(window, network.n_connections), sigma=sigma, seed=task.seed % 2**64, incremental=incremental,
        patience=patience,
    )  # fmt: skip


def window(network: Network) -> int:
    """Return a third of the average number of connections into a neuron, at least 4; larger windows found less."""
    return max(4, round(network.n_connections / max(1, int((network.in_degree > 0).sum())) / 3))


def begins_within(network: Network, seconds: float) -> bool:
    """Return whether a search begins in so many seconds. That of a small network takes no time that counts."""
    return network.n_connections <= MANY_CONNECTIONS or seconds >= BEGIN_US * 1e-6 * network.n_connections


def polish(best: Best, network: Network, moves: int | None, seconds: float, start: Int64Array | None = None) -> None:
    """Improve an order by `moves` edge moves or for `seconds`, whichever ends first, and offer the result.

    start: int64[W]; None: the best one.
    """
    if best.edges is None or moves == 0 or seconds <= 0 or not begins_within(network, seconds):
        return
    started, task = best.budget.spent(), best.task
    if applies(best):
        offer_refreshed(best, network, best.edges)
    start = best.edges if start is None else start
    search = annealer(network, task, start, window(network), COLD, patience=PATIENCE)
    over = None if seconds == math.inf else lambda: best.budget.spent() - started >= seconds
    done, chunk = 0, 16
    while moves is None or done < moves:
        spent = best.budget.spent() - started
        if spent >= seconds:
            break
        if done:
            chunk = min(4 * chunk, max(16, int(done / max(spent, 1e-6) * min(seconds, 60) / CHUNKS)))
        step = chunk if moves is None else min(chunk, moves - done)
        search.run(step, over)
        done += step
        best.work += step
        if task.progress:
            share = max(done / moves if moves else 0.0, spent / seconds if seconds < math.inf else 0.0)
            task.progress(round(1000 * min(1.0, share)), 1000, so_far(search.best, task.objective))
    best.offer(start[search.best_found()], **best.parameters)
