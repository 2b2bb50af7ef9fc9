"""Fixed blocks of targets, and long runs for processors: constructions by sorting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from cython_ext.edges.blocks import swap_blocks
from cython_ext.edges.runs import near_runs
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import sorted_by
from reorder.edges.search.budget import Best, Budget, Scorer, count_of
from reorder.edges.search.initial_states import slot_choices
from reorder.edges.search.intervals import Items
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]

SWAPS_PER_ITEM = 400
AFTER = 2.0  # times what grouping connections takes: sorting them by block, counting and checking the order (measured)
COUNT_BYTES = 1 << 26  # beyond this table of loads per block and source, blocks are left as they come
HOT, COLD = 2.0, 0.2  # temperatures of swap annealing, in loads


@dataclass(frozen=True)
class BlocksParameters:
    """size: targets per block; None: tried out by policy. swaps: how many are proposed; None: 400 per target."""

    size: int | None = None
    swaps: int | None = None

    def __post_init__(self) -> None:
        count_of("size", self.size, 1)
        count_of("swaps", self.swaps, 0)


class DepthBlocks:
    """Blocks of at most `size` items that never mix depths; their numbers rise with depth.

    as_they_come: int64[n], the block of each item where they follow each other by number. stages: (first item, items)
    of each depth that has several blocks.
    """

    def __init__(self, items: Items, size: int) -> None:
        counts = np.bincount(items.network.depth[items.items])  # items are numbered by depth
        counts = counts[counts > 0]
        firsts = np.cumsum(counts) - counts
        blocks = -(-counts // size)
        begins = np.cumsum(blocks) - blocks
        many = counts > size
        self.stages = list(zip(firsts[many].tolist(), counts[many].tolist(), strict=True))
        sizes = np.full(int(blocks.sum()), size)
        sizes[begins + blocks - 1] = counts - (blocks - 1) * size
        self.as_they_come: Int64Array = np.repeat(np.arange(len(sizes)), sizes)


def block_of_items(items: Items, size: int, swaps: int | None, seed: int, budget: Budget) -> Int64Array:
    """Return int64[n]: the block of each item. Blocks never mix depths, and their numbers rise with depth.

    Under a time limit each depth is annealed for its items' share of the time left; once it is over, the rest stay as
    they come.
    """
    blocks = DepthBlocks(items, size)
    block = blocks.as_they_come
    local = np.full(len(items.sources), -1, np.int32)  # sources of one depth, numbered from 0
    for first, n in blocks.stages:
        if budget.over:
            break
        start = items.start[first : first + n + 1] - items.start[first]
        source = items.source[items.start[first] : items.start[first + n]]
        used = np.unique(source)
        if 2 * -(-n // size) * len(used) > COUNT_BYTES:
            continue
        local[used] = np.arange(len(used), dtype=np.int32)
        order = np.arange(n, dtype=np.int32)
        most = SWAPS_PER_ITEM * n if swaps is None else swaps * n // len(block)
        spent, depth = budget.share(n / (len(block) - first)), int(items.network.depth[items.items[first]])
        swap_blocks(start, local[source], order, size, len(used), most, HOT, COLD, seed + depth, spent)
        block[first + order] = block[first] + np.arange(n) // size
    return block


def by_blocks(items: Items, block: Int64Array) -> Int64Array:
    """Return the order block by block: each source once, into all of the block's targets."""
    return items.edges[sorted_by(block[items.target], items.source, items.target)]


def best_size(
    network: Network, task: Task, method: str, size: int | None, blocks_of: Callable[[Items, int, Budget], Int64Array]
) -> Ordering:
    """Return the best order over the sizes worth trying, or of the given one, until the time limit.

    Blocks are made until what is left is the time that the order and its value take: as long as for the size before,
    and AFTER times as long as the connections took to be grouped for the first.
    """
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    items = Items.of(network, task)
    grouped = items.source, items.target
    rest = AFTER * max(budget.spent(), items.sorting_s) if len(grouped[0]) else 0.0
    for choice in [size] if size else slot_choices(task):
        if best.edges is not None and budget.over:
            break
        best.work += 1
        block = blocks_of(items, choice, budget.less(rest))
        made = budget.spent()
        best.offer(by_blocks(items, block), size=choice)
        rest = budget.spent() - made
    return best.ordering(method, best.parameters, budget.over)


@ORDERINGS.register(
    "blocks",
    summary="fixed blocks of targets that share sources, improved by swap annealing; sources stream past each",
    parameters=BlocksParameters,
    effort=5,
)
def blocks(network: Network, task: Task, parameters: BlocksParameters) -> Ordering:
    """Fill fast memory with a block of partial sums, stream every source of the block once, and go on."""

    def of_size(items: Items, size: int, budget: Budget) -> Int64Array:
        return block_of_items(items, size, parameters.swaps, task.seed, budget)

    return best_size(network, task, "blocks", parameters.size, of_size)


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
    place = np.empty(network.n_neurons, np.int64)  # among the neurons of the same depth
    place[by_depth] = np.arange(network.n_neurons) - (np.cumsum(width) - width)[depth[by_depth]]

    def part(neurons: Int64Array, most: int | None) -> Int64Array:
        across = width[depth[neurons]]
        return place[neurons] * -(-across // (most or network.n_neurons)) // across

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
