"""Numberings for cache lines: which neurons share a line, and the order in tiles that goes with it.

Sources are cut into tiles that fit the cache, so that sources with common targets share a tile (swap
annealing). A tile then meets all its targets one after another. Targets that meet the same tiles
lie side by side, so a tile touches no line of which it needs little: a layer is sorted by the tile a neuron belongs to
as a source, then by the tiles it meets as a target.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cython_ext.edges.blocks import swap_blocks
from reorder.edges.machine.surrogate import CacheShape, Int64Array
from reorder.edges.search.base_orders import sorted_by
from traces.networks.network import Network

SWAPS_PER_ITEM = 400
COUNT_BYTES = 1 << 26  # beyond this table of loads per tile and target, sources are left as they come
HOT, COLD = 2.0, 0.2  # temperatures of swap annealing, in loads
SHARES = (0.25, 0.35, 0.5, 0.6)  # of the cache's lines that the sources of a tile fill


def tiles_of(network: Network, size: int, swaps: int, seed: int) -> Int64Array:
    """Return int64[N]: the tile of each neuron as a source, counted from 0 in every layer."""
    tile = np.zeros(network.n_neurons, np.int64)
    local = np.full(network.n_neurons, -1, np.int64)
    for level in range(int(network.depth.max())):
        ids = np.flatnonzero((network.depth == level) & (network.out_degree > 0))
        if len(ids) <= size:
            continue
        local[ids] = np.arange(len(ids))
        edges = np.flatnonzero(network.depth[network.sources] == level)
        edges = edges[np.argsort(local[network.sources[edges]], kind="stable")]
        used, target = np.unique(network.targets[edges], return_inverse=True)
        order = np.arange(len(ids), dtype=np.int32)
        if swaps and 2 * -(-len(ids) // size) * len(used) <= COUNT_BYTES:
            start = np.concatenate(([0], np.cumsum(network.out_degree[ids]))).astype(np.int32)
            budget = swaps * len(ids)
            swap_blocks(start, target.astype(np.int32), order, size, len(used), budget, HOT, COLD, seed + level)
        tile[ids[order]] = np.arange(len(ids)) // size
    return tile


def numbering(network: Network, tile: Int64Array) -> Int64Array:
    """Return int64[N], the new number of each neuron: by its tile, then by the tiles it meets, then as it was."""
    met = np.zeros((int(tile.max()) + 1, network.n_neurons), np.uint8)
    met[tile[network.sources], network.targets] = 1
    signature = np.packbits(met, axis=0)
    number = np.empty(network.n_neurons, np.int64)
    for level in range(int(network.depth.max()) + 1):
        ids = np.flatnonzero(network.depth == level)
        number[ids[np.lexsort((ids, *signature[::-1, ids], tile[ids]))]] = ids
    return number


def numberings(network: Network, cache: CacheShape, seed: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield (numbering int64[N], order int64[W] by tiles for it), for some sizes of tiles, grouped or as they come."""
    line = max(1, cache.line_bytes // cache.rows[1])
    lines = cache.sets * cache.ways
    s, t = network.sources, network.targets
    for size in dict.fromkeys(max(1, round(share * lines)) * line for share in SHARES):
        for swaps in (0, SWAPS_PER_ITEM):
            tile = tiles_of(network, size, swaps, seed)
            number = numbering(network, tile)
            yield number, sorted_by(network.depth[t], tile[s], number[t], number[s])
