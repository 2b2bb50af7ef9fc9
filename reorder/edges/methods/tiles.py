"""Tile orders: two numbers block every layer, as dense kernels are blocked; the best of a few shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import rank_in_depth, sorted_by
from reorder.edges.search.budget import Best, Budget, Scorer, check_counts, worth_more
from traces.base.errors import unknown_name
from traces.networks.network import Int64Array, Network


@dataclass(frozen=True)
class Tile:
    """A blocked loop nest over each layer: at most `targets` x `sources` neurons a tile.

    outer: whose tiles the outer loop walks. With 'targets' partial sums stay and sources stream past; with 'sources'
    values of sources stay and targets pass one after another. The inner loop turns round with each step of the outer
    one (serpentine), so that what it used last is used first.
    """

    targets: int
    sources: int
    outer: str

    @property
    def words(self) -> str:
        """The tile as a configuration has it: with these numbers no others are tried."""
        numbers = ", ".join(f"{name}: {value}" for name, value in asdict(self).items())
        return f"orderings: [{{kind: tiles, {numbers}}}]"

    def order(self, network: Network, pairs: Int64Array | None = None) -> Int64Array:
        """Return int64[W]: by depth of target, then tile by tile, inside a tile target by target. O(W).

        pairs: int64[W], the connections by target, then source, if they are known.

        Neurons of one depth are cut into tiles of equal size, by their numbers. The first inner loop runs backwards: a
        layer begins with the sources that the layer before it finished last.
        """
        pairs = sorted_by(network.targets, network.sources) if pairs is None else pairs
        s, t = network.sources[pairs], network.targets[pairs]
        target, source = (_tile_of(network, size) for size in (self.targets, self.sources))
        outer, inner = (target[t], source[s]) if self.outer == "targets" else (source[s], target[t])
        turned = np.where(outer % 2 == 0, int(inner.max(initial=0)) - inner, inner)
        return pairs[sorted_by(network.depth[t], outer, turned)]


def _tile_of(network: Network, size: int) -> Int64Array:
    """Return int64[N]: the tile of each neuron among those of its depth, in as few equal tiles of `size` as hold it."""
    rank, width = rank_in_depth(network)
    return rank * -(-width // size)[network.depth] // width[network.depth]


# Shares of the M - 1 values for (targets, sources) of a tile; 0: one neuron. The most promising first: by the mean over
# eight pruned and dense networks and four memories. LRU and RR keep less besides the values that stream.
STAYS: dict[str, tuple[tuple[float, float], ...]] = {
    "min": ((1.0, 0), (0.6, 0), (0, 1.0), (0.3, 0), (0.6, 0.3), (0, 0.6), (0, 0.3)),
    "lru": ((0.6, 0), (0.9, 0), (0.3, 0), (0, 0.9), (0.35, 0.65), (0, 0.6), (0, 0.3)),
    "rr": ((0.35, 0.65), (0.5, 0.5), (0.3, 0), (0, 0.9), (0.6, 0), (0, 0.6), (0, 0.3)),
}

# Of them, where tiles near the best are tried: from these the same are found as from all (28 networks and memories).
FIRST = 4
MOST = 24  # tiles that are tried by simulation (quickstart: 3.6 % less energy than the best of the first seven)


def tile_choices(memory: int, policy: str = "min", multiple: int = 1) -> list[Tile]:
    """Return the tiles worth trying for M = memory, the most promising first.

    multiple: sizes are rounded to whole multiples (neurons that share a burst or a cache line).
    """
    room = memory - 1

    def neurons(share: float) -> int:
        size = min(room - 1, round(share * room))
        return max(1, round(size / multiple) * multiple if size >= multiple else size)

    return list(dict.fromkeys(Tile(neurons(t), neurons(s), "targets" if t else "sources") for t, s in STAYS[policy]))


def nearby_tiles(tile: Tile, width: int, times: float = 1.1) -> list[Tile]:
    """Return tiles that cut a layer of `width` into so many times as many or as few parts, one more or fewer at least:
    of targets, of sources, or more of one and fewer of the other."""

    def changed(size: int, by: int) -> int:
        parts = -(-width // size)
        other = (round(parts / times), parts, max(parts + 1, round(parts * times)))[by + 1]
        return -(-width // max(1, min(other, parts - 1) if by < 0 else other))

    turns = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
    return [replace(tile, targets=changed(tile.targets, t), sources=changed(tile.sources, s)) for t, s in turns]


def climb(tile: Tile, value: float, width: int, value_of: Callable[[Tile], float]) -> Tile:
    """Return the tile at the end of steps from this one to better ones near it, on in a direction that was better:
    with twice as many or few parts of a layer of `width`, then 1.3 times."""
    for times in (2.0, 1.3):
        way = failed = 0
        while failed < len(near := nearby_tiles(tile, width, times)):
            if (other := value_of(near[way])) < value:
                tile, value, failed = near[way], other, 0
            else:
                failed, way = failed + 1, (way + 1) % len(near)
    return tile


@dataclass(frozen=True, eq=False)
class BestTile:
    """The best tile for a memory or machine: its two numbers, its order (int64[W]) and what that costs."""

    tile: Tile
    edges: Int64Array
    value: float


def best_tile(
    network: Network,
    memory: int,
    cost: Callable[[Int64Array], float],
    *,
    policy: str = "min",
    multiple: int = 1,
    over: Callable[[], bool] | None = None,
) -> BestTile:
    """Return the best simple blocking of a network: of a few tiles the one whose order costs the least, then of tiles
    near it, as long as one is better and MOST have not been tried; row by row where that is better.

    memory: M of the I/O model, or the rows that a machine's fast memory holds. cost: of an order (int64[W]), as
    `edgewatt.evaluation.machine_cost.MachineCost` or a count of I/Os gives it. policy: by which fast memory evicts
    ('lru' for a cache). multiple: neurons that share a burst or line. over: ends the choice early, after one tile at
    least. Deterministic.
    """
    best: BestTile | None = None
    tried: set[Tile] = set()
    pairs, width = sorted_by(network.targets, network.sources), int(np.bincount(network.depth).max())

    def value_of(tile: Tile) -> float:
        nonlocal best
        if tile in tried or (best is not None and over is not None and over()):
            return math.inf
        tried.add(tile)
        edges = tile.order(network, pairs)
        value = cost(edges)
        if best is None or value < best.value:
            best = BestTile(tile, edges, value)
        return value

    for tile in tile_choices(memory, policy, multiple):
        value_of(tile)
    assert best is not None
    climb(best.tile, best.value, width, lambda tile: value_of(tile) if len(tried) < MOST else math.inf)
    value_of(Tile(1, width, "targets"))  # row by row
    return best


@dataclass(frozen=True)
class TilesParameters:
    """Targets and sources per tile, and which of the two the outer loop walks; None: tried out."""

    targets: int | None = None
    sources: int | None = None
    outer: str | None = None

    def __post_init__(self) -> None:
        check_counts(self, targets=1, sources=1)
        if self.outer not in (None, "targets", "sources"):
            raise unknown_name("outer loop", self.outer, ("targets", "sources"))


@ORDERINGS.register(
    "tiles",
    summary="tiles of sources x targets, as dense kernels are blocked; sizes by the memory",
    parameters=TilesParameters,
    portfolio=0.5,
    blocking=True,
    effort=0.05,
)
def tiles(network: Network, task: Task, parameters: TilesParameters) -> Ordering:
    """Walk layer by layer over tiles, to and fro: partial sums stay, values of sources stay, or both.

    The best of a few shapes, then of those near it, as long as one of them is better.
    """
    budget = Budget(task.time_limit_s)
    best = Best(Scorer(network, task), budget, task)
    given = {name: value for name, value in asdict(parameters).items() if value is not None}
    tried: set[Tile] = set()
    pairs, width = sorted_by(network.targets, network.sources), int(np.bincount(network.depth).max())
    shapes, around = tile_choices(task.memory, task.policy)[:FIRST], None
    while around != best.parameters:
        around = best.parameters
        for tile in dict.fromkeys(replace(shape, **given) for shape in shapes):
            if tile in tried:
                continue
            if best.edges is not None and not (best.has_time and worth_more(best)):
                break
            tried.add(tile)
            best.work += 1
            best.offer(tile.order(network, pairs), **asdict(tile))
        shapes = nearby_tiles(Tile(**best.parameters), width)
    return best.ordering("tiles", best.parameters, budget.over)
