"""Blocks of targets by hypergraph partitioning with Mt-KaHyPar (extra `partition`).

Targets are nodes, sources nets over the targets they feed, one hypergraph per depth. The partitioner lowers the sum
over nets of blocks touched less one: exactly the loads that blocks of targets cause beyond one per source. Its
deterministic mode is used: another gave other blocks from run to run, even on one thread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.methods.blocks import DepthBlocks, Int64Array, best_size
from reorder.edges.search.budget import Budget, count_of
from reorder.edges.search.intervals import Items
from traces.base.errors import MissingExtraError
from traces.base.workers import call_aside
from traces.networks.network import Network

# Under a time limit: seconds a connection takes (measured 20 to 60 us), up to which it is divided in this process, and
# which a process aside takes to start.
PIN_S, SHORT_S, START_S = 60e-6, 0.2, 0.5


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


def partitioned_items(items: Items, size: int, seed: int, budget: Budget | None = None) -> Int64Array:
    """Return int64[n]: the block of each item, at most `size` items each. Blocks never mix depths and rise with depth.

    Under a time limit each depth has its items' share of the time left, and those that take longer stay as they come.
    The library cannot be stopped, so all but the smallest are divided aside. Raises MissingExtraError without it.
    """
    _partitioner()
    budget = Budget() if budget is None else budget
    blocks = DepthBlocks(items, size)
    block = blocks.as_they_come
    for first, n in blocks.stages:
        edges = slice(items.start[first], items.start[first + n])
        given = n, size, items.source[edges], items.target[edges] - first, seed
        seconds = budget.left() * n / (len(block) - first)
        if math.isinf(seconds) or len(given[2]) * PIN_S < min(seconds, SHORT_S):
            part = divided(*given)
        elif seconds > START_S:
            try:
                part = call_aside(seconds, divided, *given)
            except TimeoutError:
                continue
        else:
            continue
        block[first : first + n] = block[first] + part
    return block


def divided(n: int, size: int, source: Any, target: Any, seed: int) -> Int64Array:
    """Return int64[n]: the block of each target, at most `size` each. source, target: the ends of each connection."""
    library, start_up = _partitioner()
    nets, n_blocks = _nets(source, target), -(-n // size)
    if size == 1 or not nets:
        return np.arange(n) // size
    context = start_up.context_from_preset(library.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(n_blocks, size * n_blocks / n - 1, library.Objective.KM1)
    context.logging = False
    library.set_seed(seed % 2**31)
    parts = start_up.create_hypergraph(context, n, len(nets), nets).partition(context)
    return np.array([parts.block_id(node) for node in range(n)])


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
    """Stream every source of a block once past its targets."""
    return best_size(
        network,
        task,
        "partition",
        parameters.size,
        lambda items, size, budget: partitioned_items(items, size, task.seed, budget),
    )
