"""Long runs for processors: a construction by sorting."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from cython_ext.edges.runs import near_runs
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import sorted_by
from reorder.edges.search.budget import count_of
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]


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
        count_of("sources", self.sources, 1)
        count_of("fused", self.fused, 1)
        count_of("near", self.near, 1)


def by_long_runs(network: Network, parameters: LongRunsParameters) -> Int64Array:
    """Return the order of `long_runs`: keys are sorted, so it is O(W log W), and what `near_runs` says for `near`."""
    fused, near = parameters.fused, parameters.near
    s, t, depth = network.sources, network.targets, network.depth
    by_depth = np.argsort(depth, kind="stable")
    width = np.bincount(depth)
    rank = np.empty(network.n_neurons, np.int64)  # among the neurons of the same depth
    rank[by_depth] = np.arange(network.n_neurons) - (np.cumsum(width) - width)[depth[by_depth]]

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
    if not len(edges):
        return edges
    starts, groups = _runs_of(keys[:4], t, edges)
    if near:
        edges = _in_order(edges, starts, near_runs(s[edges], t[edges], starts, groups, network.n_neurons, near))
    return edges


def _runs_of(keys: list[Int64Array], targets: Int64Array, edges: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return where runs of one target begin, and at which run each group of equal keys begins; and the ends."""
    starts = _changes([k[edges] for k in (*keys, targets)])
    return starts, np.searchsorted(starts, _changes([k[edges] for k in keys]))


def _in_order(edges: Int64Array, starts: Int64Array, runs: Int64Array) -> Int64Array:
    """Return the edges, run after run in the given order."""
    lengths = np.diff(starts)
    first = np.cumsum(lengths[runs]) - lengths[runs]
    return edges[np.repeat(starts[runs] - first, lengths[runs]) + np.arange(len(edges))]


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
