"""Orders for LRU: what is about to go and will be needed soon is used once more (cython_ext/residency/recency.pyx)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cython_ext.residency.recency import refreshed
from reorder.edges.search.budget import Best
from traces.networks.network import Network

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


def offer_refreshed(
    best: Best, network: Network, edges: npt.NDArray[np.int64], first: int | None = None
) -> tuple[float, int]:
    """Offer an order (int64[W]) with values kept; return the least value and the horizon that gave it.

    Horizons go up from `first` by factors of two for as long as that pays, then down. The value is infinite where there
    is no time for one.
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
