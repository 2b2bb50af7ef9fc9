"""Long runs for processors: a construction by sorting."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from cython_ext.edges.runs import near_runs
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import rank_in_depth, sorted_by
from reorder.edges.search.budget import check_counts
from traces.networks.network import Int64Array, Network


@dataclass(frozen=True)
class LongRunsParameters:
    """sources: most sources of a tile; None: all. fused: most neurons of a block of two layers; None: layer by layer.

    alike: targets of equal run lengths (then least sources) follow each other; else they come by id. near: how many
    neurons stay in a cache: next comes the target with most of its sources among those used last (ties: as alike).
    """

    sources: int | None = None
    fused: int | None = None
    alike: bool = False
    near: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, sources=1, fused=1, near=1)


def by_long_runs(network: Network, parameters: LongRunsParameters) -> Int64Array:
    """Return the order of `long_runs`: keys are sorted, so it is O(W log W), and what `near_runs` says for `near`."""
    fused, near = parameters.fused, parameters.near
    s, t, depth = network.sources, network.targets, network.depth
    rank, width = rank_in_depth(network)

    def part(neurons: Int64Array, most: int | None) -> Int64Array:
        across = width[depth[neurons]]
        return rank[neurons] * -(-across // (most or network.n_neurons)) // across

    tile = part(s, parameters.sources)
    level, block = depth[t], np.zeros(len(t), np.int64)
    if fused is not None:  # depths 1 and 2, 3 and 4, ...: neurons of the first are used up block by block
        first = level % 2 == 1
        block = np.where(first, part(t, fused), np.where(depth[s] == level - 1, part(s, fused), 0))
        tile = np.where(first, tile, tile + (depth[s] == level - 1) * (1 + int(tile.max())))
        level = (level + 1) // 2
    keys = [level, block, depth[t], tile]
    if parameters.alike or near:
        run = sorted_by(*keys, t, s)
        starts = _changes([k[run] for k in (*keys, t)])
        lengths = np.diff(starts)
        for value in (lengths, s[run[starts[:-1]]]):
            key = np.empty(len(run), np.int64)
            key[run] = np.repeat(value, lengths)
            keys.append(key)
    edges = sorted_by(*keys, t, s)
    if not near or not len(edges):
        return edges
    starts = _changes([k[edges] for k in (*keys[:4], t)])
    groups = np.searchsorted(starts, _changes([k[edges] for k in keys[:4]]))  # at which run each group begins
    runs = near_runs(s[edges], t[edges], starts, groups, network.n_neurons, near)
    lengths = np.diff(starts)[runs]
    return edges[np.repeat(starts[runs] - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(edges))]


def _changes(keys: list[Int64Array]) -> Int64Array:
    """Return where stretches of equal keys begin, and their length."""
    different = np.zeros(max(0, len(keys[0]) - 1), bool)
    for key in keys:
        different |= key[1:] != key[:-1]
    return np.concatenate(([0], np.flatnonzero(different) + 1, [len(keys[0])]))


@ORDERINGS.register(
    "long-runs",
    summary="for processors: target after target, by equal tiles of a layer's sources, two layers at a time if wished",
    parameters=LongRunsParameters,
)
def long_runs(network: Network, task: Task, parameters: LongRunsParameters) -> Ordering:
    """Walk layer by layer; inside a layer all targets take their sources of one tile before the next tile begins.

    The rows of a tile stay in a cache, and sums in registers for a whole run. With `fused`, a block of the neurons of
    every other layer is computed, and used up by the next layer before the next block: less of it lives at once. With
    `near`, targets that share sources follow each other, so that more of these are still in the cache.
    """
    edges = by_long_runs(network, parameters)
    return Ordering(edges, "long-runs", {k: v for k, v in asdict(parameters).items() if v})
