"""Blocks of targets by hypergraph partitioning with Mt-KaHyPar (extra `partition`).

Targets are nodes, sources nets over the targets they feed, one hypergraph per depth. The partitioner lowers the sum
over nets of blocks touched less one: exactly the loads that blocks of targets cause beyond one per source. Its
deterministic mode is used: another gave other blocks from run to run, even on one thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.blocks import Int64Array, best_size
from reorder.search.budget import count_of
from reorder.search.intervals import Items
from traces.base.errors import MissingExtraError
from traces.work.network import Network


@dataclass(frozen=True)
class PartitionParameters:
    """size: targets per block at most; None: tried out by policy."""

    size: int | None = None

    def __post_init__(self) -> None:
        count_of("size", self.size, 1)


@cache
def _partitioner() -> tuple[Any, Any]:
    """Return the library and its start-up object, one per process."""
    try:
        import mtkahypar
    except ImportError as error:
        raise MissingExtraError("mtkahypar", "partition") from error
    return mtkahypar, mtkahypar.initialize(1)


def partitioned_items(items: Items, size: int, seed: int) -> Int64Array:
    """Return int64[n]: the block of each item, at most `size` items each. Blocks never mix depths and rise with depth.

    Raises MissingExtraError without the library.
    """
    library, start_up = _partitioner()
    depth = items.network.depth[items.items]
    block = np.empty(len(items.items), np.int64)
    blocks = 0
    for level in np.unique(depth):
        members = np.flatnonzero(depth == level)  # items are numbered by depth
        n, n_blocks = len(members), -(-len(members) // size)
        edges = slice(items.start[members[0]], items.start[members[-1] + 1])
        nets = _nets(items.source[edges], items.target[edges] - members[0])
        part = np.zeros(n, np.int64)
        if n_blocks == n or not nets:
            part = np.arange(n) // size
        elif n_blocks > 1:
            context = start_up.context_from_preset(library.PresetType.DETERMINISTIC)
            context.set_partitioning_parameters(n_blocks, size * n_blocks / n - 1, library.Objective.KM1)
            context.logging = False
            library.set_seed(seed % 2**31)
            parts = start_up.create_hypergraph(context, n, len(nets), nets).partition(context)
            part = np.array([parts.block_id(node) for node in range(n)])
        block[members] = blocks + part
        blocks += n_blocks
    return block


def _nets(source: Any, target: Any) -> list[list[int]]:
    """Return the targets of each source that has at least two."""
    order = np.argsort(source, kind="stable")
    cuts = np.flatnonzero(np.diff(source[order])) + 1
    return [part.tolist() for part in np.split(target[order], cuts) if len(part) > 1]


@ORDERINGS.register(
    "partition",
    summary="blocks of targets that share sources, by hypergraph partitioning (extra 'partition')",
    parameters=PartitionParameters,
    portfolio=1,
    start=True,
    extra="partition",
)
def partition(network: Network, task: Task, parameters: PartitionParameters) -> Ordering:
    """Stream every source of a block once past its targets. The time limit is looked at between sizes."""
    return best_size(
        network, task, "partition", parameters.size, lambda items, size, _: partitioned_items(items, size, task.seed)
    )
