"""Orders for LRU: what is about to go and will be needed soon is used once more (cython_ext/residency/recency.pyx)."""

from __future__ import annotations

import numpy as np

from cython_ext.residency.recency import refreshed
from reorder.search.budget import Best
from traces.work.network import Network

# How far to look for connections to do early, as shares of those in which as many values come in as fast memory holds
# where each comes in once (measured on unrolled convolutions).
HORIZONS = (0.1, 0.4)


def applies(best: Best) -> bool:
    """Whether the objective counts the I/Os of LRU alone."""
    return best.score.objective.plain and best.task.policy == "lru"


def horizons(network: Network, memory: int) -> list[int]:
    """Return the horizons to try first, in connections."""
    turnover = memory * network.n_connections / max(1, int(network.touched.sum()))
    return [max(1, round(share * turnover)) for share in HORIZONS]


def offer_refreshed(best: Best, network: Network) -> None:
    """Offer the best order with values kept, the horizon doubled for as long as that pays."""
    assert best.edges is not None
    edges = best.edges
    ends = network.sources[edges].astype(np.int32), network.targets[edges].astype(np.int32)
    horizon, before = horizons(network, best.task.memory)[0], best.value
    while not best.budget.over:
        value = best.offer(edges[refreshed(*ends, network.n_neurons, best.task.memory, horizon)], **best.parameters)
        if value >= before:
            break
        before, horizon = value, 2 * horizon
