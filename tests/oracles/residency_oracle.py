"""The residency model by definition: intervals from two permutations, piercing points by plain greedy search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traces.network import Network


def intervals(
    network: Network, opens: Sequence[int], drops: Sequence[int], slots: int
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return open, finish and drop stages by neuron; opens and drops are lists of neurons."""
    opened = {v: max(1, rank - slots + 1) for rank, v in enumerate(opens, 1)}
    dropped = {v: rank for rank, v in enumerate(drops, 1)}
    finished: dict[int, int] = {}
    targets: dict[int, list[int]] = {}
    for s, t in zip(network.sources.tolist(), network.targets.tolist(), strict=True):
        targets.setdefault(s, []).append(t)
    for v in sorted(opened, key=lambda v: -network.depth[v]):
        finished[v] = min([dropped[v], *(finished[t] for t in targets.get(v, ()))])
    return opened, finished, dropped


def cost(network: Network, opens: Sequence[int], drops: Sequence[int], slots: int) -> int | None:
    """Return loads of sources plus writes of spilled hidden values; None if the state is not possible."""
    opened, finished, dropped = intervals(network, opens, drops, slots)
    computed = set(opened)
    if any(opened[v] > finished[v] for v in computed):
        return None
    total = 0
    for s in np.flatnonzero(network.out_degree > 0).tolist():
        fed = network.targets[network.sources == s].tolist()
        hidden = s in computed
        if hidden and any(finished[s] > finished[t] for t in fed):
            return None
        left = [t for t in fed if not (hidden and opened[t] <= dropped[s])]
        points = 0
        while left:
            point = min(finished[t] for t in left)
            left = [t for t in left if opened[t] > point]
            points += 1
        total += points + (1 if hidden and points else 0)
    return total
