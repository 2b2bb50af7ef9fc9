"""Orders along a plan of strips, from its definition: when each neuron is complete, then everything sorted by that."""

from __future__ import annotations

import numpy as np

from reorder.edges.search.strips import DepthGroup, Strips


def plan_order(strips: Strips, plan: tuple[DepthGroup, ...]) -> list[int]:
    """Return the connections in the order of a plan, one group after another."""
    return [edge for group in plan for edge in _group_order(strips, group)]


def _group_order(strips: Strips, group: DepthGroup) -> list[int]:
    items = strips.items
    network = items.network
    depth = network.depth.tolist()
    outside = {}
    for v in range(network.n_neurons):
        place = [1 - p if back else p for p, back in zip(strips.coordinate[:, v], group.back, strict=True)]
        across = place[group.across] * group.strips - group.lead
        strip = max(0, min(int(np.floor(across)), group.strips - 1))
        along = place[1 - group.across]
        if group.turns and strip % 2 == 1:
            along = 1 - along
        along = (along + group.slant * (across - strip + group.lead)) / (1 + group.slant * (1 + group.lead))
        outside[v] = int((strip + along) * 2**36)
    edges = [e for e in range(network.n_connections) if group.first <= depth[network.targets[e]] <= group.last]
    complete: dict[int, int] = {}
    for d in range(group.first, group.last + 1):
        latest = {}
        for v in items.items.tolist():
            if depth[v] == d:
                into = [int(network.sources[e]) for e in edges if network.targets[e] == v]
                latest[v] = max(complete.get(s, outside[s]) for s in into)
        if group.late:
            waits = int(np.median([latest[v] - outside[v] for v in latest]))
            latest = {v: max(due, outside[v] + waits) for v, due in latest.items()}
        complete |= latest

    def due(v: int) -> tuple[int, int, int]:
        return complete.get(v, outside[v]), depth[v], v

    ends = [(due(int(network.sources[e])), due(int(network.targets[e])), e) for e in edges]
    if group.early == 0:
        return [e for _, _, e in sorted((target, source, e) for source, target, e in ends)]
    by_item = {int(v): k for k, v in enumerate(items.items)}
    if group.early == 1:
        return [e for _, _, e in sorted((source, by_item[int(network.targets[e])], e) for source, _, e in ends)]
    begins = {}
    for v in complete:
        first = min(source[0] for source, _, e in ends if network.targets[e] == v)
        waited = complete[v] - max(first, complete[v] - complete[v] % 2**36)  # in its last strip
        begins[v] = complete[v] - int(group.early * waited)
    between = []
    for source, _, e in ends:
        v = int(network.targets[e])
        comes, begun = (source[0], 2 * source[1] + 1, source[2]), (begins[v], 2 * depth[v], v)
        between.append((max(comes, begun), by_item[v], e))
    return [e for *_, e in sorted(between)]
