"""Tiles of targets between which part of a layer's values stay, for dense layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import rank_in_depth, sorted_by
from reorder.edges.search.budget import check_counts
from traces.networks.network import Network

# Of a layer with two full tiles at least, what is left is begun ahead where it is
# at most this share of one (measured on dense chains, 200 to 500 wide).
AHEAD = 0.25


@dataclass(frozen=True)
class PartKeptParameters:
    """targets: of a tile, at most; None: M - 2."""

    targets: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, targets=1)


def is_dense(network: Network) -> bool:
    """Return whether there are half the connections that whole layers have, at least."""
    width = np.bincount(network.depth)
    return 2 * network.n_connections >= int(width[:-1] @ width[1:])


@ORDERINGS.register(
    "part-kept",
    summary="tiles of targets; part of each layer stays for the next one, for dense layers",
    parameters=PartKeptParameters,
    portfolio=0.55,
    suits=is_dense,
    effort=0.05,
)
def part_kept(network: Network, task: Task, parameters: PartKeptParameters) -> Ordering:
    """Walk layer by layer over equal tiles of targets, each time from the last source.

    So the sources that were finished last are used again soonest, and MIN keeps those
    that fit beside a tile and never writes them. A few targets that full tiles would
    leave over are begun while the layer before is computed, tile by tile.
    """
    targets = parameters.targets or max(1, task.memory - 2)
    s, t, depth = network.sources, network.targets, network.depth
    rank, width = rank_in_depth(network)
    left = width % targets
    left[(width < 2 * targets) | (left > AHEAD * targets)] = 0
    left[:2] = 0  # no layer before is computed
    rest = width - left
    tiles = -(-rest // targets)
    place = rank - left[depth]
    tile = np.where(place < 0, 0, 1 + place * tiles[depth] // rest[depth])
    ahead = tile[t] == 0
    level = depth[t] - ahead
    now = np.where(ahead, np.where(depth[s] == level, tile[s], 0), tile[t])
    edges = sorted_by(level, now, ahead, len(depth) - rank[s], t, s)
    return Ordering(edges, "part-kept", {"targets": targets})
