"""Orders for windows that slide: the layers of one parity stream, the others stay, whole or in windows of fast memory.

Those that stay are put in a row by when they can be done: all neighbours of a neuron that streams must be there at a
time, so one is done when all that share a neighbour with it have come.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cython_ext.edges.rows import fewest_at_a_time
from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import outputs_early, sorted_by, two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer, worth_more
from traces.networks.network import Int64Array, Network

FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MOST = 1024  # neurons that are put in a row one by one
FEW, SMALL = 8, 20_000  # connections a neuron; in all: on large networks with few plans of what to fuse are better


def numbered(neurons: npt.NDArray[np.integer], n: int) -> tuple[Int64Array, npt.NDArray[np.int32]]:
    """Return which of n neurons there are, and each one's place among them."""
    there = np.zeros(n, bool)
    there[neurons] = True
    return np.flatnonzero(there), (np.cumsum(there, dtype=np.int32) - 1)[neurons]


def closing(network: Network, chosen: Mask, stay: Mask, best: Best, moves: bool) -> FloatArray | None:
    """Return float64[N]: when neurons of `stay` are done one after the other, their neighbours before the first.

    chosen: bool[W], the connections looked at. Next is the neuron that needs the fewest new ones beside it; with
    `moves` each then moves to where the fewest are there at a time, while there is time. None for too many that stay.
    """
    ends = network.sources[chosen], network.targets[chosen]
    one, other = np.concatenate(ends), np.concatenate(ends[::-1])
    one, other = one[stay[other]], other[stay[other]]
    ids, item = numbered(other, network.n_neurons)
    if not 0 < len(ids) <= MOST:
        return None
    groups, group = numbered(one, network.n_neurons)
    row = fewest_at_a_time(group, item, len(groups), len(ids), lambda: not best.has_time, moves)
    rank, first, last = np.zeros(network.n_neurons), np.full(network.n_neurons, np.inf), np.zeros(network.n_neurons)
    rank[ids[row]] = np.arange(1, len(ids) + 1)
    np.minimum.at(first, one, rank[other])
    np.maximum.at(last, one, rank[other])
    return np.where(last > 0, first + last / (len(ids) + 1), rank)


def along(network: Network, position: FloatArray) -> Int64Array:
    """Return int64[W]: target by target by position, none before its sources; outputs as soon as a source is there."""
    key, s, t = np.where(network.in_degree > 0, position, -np.inf), network.sources, network.targets
    by_depth = sorted_by(network.depth[t])
    for level in np.split(by_depth, np.flatnonzero(np.diff(network.depth[t[by_depth]])) + 1):
        np.maximum.at(key, t[level], key[s[level]])
    rank = np.empty(len(key), np.int64)
    rank[np.lexsort((position, network.depth, key))] = np.arange(len(key))
    return outputs_early(network, sorted_by(rank[t], s))


def streamed(network: Network, parity: int, position: FloatArray | None = None) -> Int64Array:
    """Return int64[W]: neurons at depths of one parity by position, each computed and spent at once.

    The two layers beside it stay. Each connection joins neighbouring depths.
    """
    s, t, depth = network.sources, network.targets, network.depth
    spends = depth[s] % 2 == parity
    neuron, other, rank = np.where(spends, s, t), np.where(spends, t, s), np.empty(len(depth), np.int64)
    rank[np.lexsort((np.arange(len(depth)) if position is None else position, depth))] = np.arange(len(depth))
    return sorted_by(2 * rank[neuron] + spends, other)


def streams(network: Network, best: Best, moves: bool) -> Iterator[Int64Array]:
    """Yield orders in which the layers of one parity stream: by id (without `moves`), by when inputs and outputs can
    be done, and by when all layers of the inputs' parity can; the last one alone where connections skip layers."""
    of, last, both = network.depth, int(network.depth.max()), (0, 1)
    level = of[network.targets]
    chain, all_of_them = bool((level - of[network.sources] == 1).all()), level > 0
    if chain:
        if not moves:
            yield from (streamed(network, parity) for parity in both)
        ends = (of == 0) | ((of == last) & (last > 1))
        parts = [all_of_them] if last < 3 else [level == 1, level == last]  # one hidden layer has both windows
        found = [position for part in parts if (position := closing(network, part, ends, best, moves)) is not None]
        if found:
            yield from (streamed(network, parity, np.sum(found, axis=0)) for parity in both)
    position = closing(network, all_of_them, of % 2 == 0, best, moves) if last > 2 or not chain else None
    if position is not None:
        yield along(network, position)


def suits(network: Network) -> bool:
    """Return whether windows may be worth their time: few connections, or many a neuron."""
    return network.n_connections <= SMALL or network.n_connections >= FEW * network.n_neurons


@ORDERINGS.register(
    "windows",
    summary="every second layer streams past windows of the others, in the order in which those can be done",
    portfolio=0.6,
    suits=suits,
    effort=0.4,
    local_effort=1.6,
)
def windows(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the best order in which every second layer streams. Rows without moves come first: mostly they will do,
    and with moves they take up to fifty times as long."""
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    for moves in (False, True):
        for edges in streams(network, best, moves) if not moves or (best.has_time and worth_more(best)) else ():
            best.work += 1
            best.offer(edges)
            if not best.has_time:
                break
    if best.edges is None:
        best.offer(two_optimal_order(network))
    return best.ordering("windows", {}, best.budget.over)
