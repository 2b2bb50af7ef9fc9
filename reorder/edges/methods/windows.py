"""Orders for windows that slide: the layers of one parity stream, the others stay, whole or in windows of fast memory.

Neurons get one coordinate: spectral first (the vector that changes least along the connections but for what is
constant at each depth), then again and again the middle of the range of their neighbours', which is the efficient
estimate of a window's place where connections lie evenly within windows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from reorder.base import ORDERINGS, Ordering, Task
from reorder.edges.search.base_orders import outputs_early, sorted_by, two_optimal_order
from reorder.edges.search.budget import Best, Budget, Scorer
from reorder.edges.search.locality import lanczos
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

STEPS = 24  # of Lanczos: the coordinate need not be exact
ROUNDS = 12  # of middles of ranges; they change little after six on windows of an eighth to a half of a layer
MOST = 1024  # inputs and outputs that are put in a row one by one
OFFERED = 4  # rounds after which an order is counted, and again
LIKELY = 0.8  # of that eigenvalue after the first few steps, below which no more are made
ABOVE_RANDOM = 1.5  # eigenvalue against that of random layers with the same degrees, from which windows may be there


class _Graph:
    """Some connections of a network without directions: ends int64[2 E] each, grouped by one end."""

    def __init__(self, network: Network, chosen: npt.NDArray[np.bool_]) -> None:
        self.n, self.depth = network.n_neurons, network.depth
        s, t = network.sources[chosen], network.targets[chosen]
        one, other = np.concatenate((s, t)), np.concatenate((t, s))
        at = sorted_by(one)
        self.one, self.other = one[at], other[at]
        self.degree = np.bincount(one, minlength=self.n)
        self.touched = np.flatnonzero(self.degree)
        self.begin = (np.cumsum(self.degree) - self.degree)[self.touched]
        self.root = np.sqrt(np.maximum(self.degree, 1))
        self.random = 0.0 if not len(s) else float(
            np.mean(1 / np.sqrt(self.degree[s])) + np.mean(1 / np.sqrt(self.degree[t]))
        )  # fmt: skip

    def product(self, x: FloatArray) -> FloatArray:
        """Return the product of D^-1/2 A D^-1/2 with float64[N], without its mean at each depth."""
        x = np.bincount(self.one, (x / self.root)[self.other], self.n) / self.root
        weight = np.maximum(np.bincount(self.depth, self.degree), 1)
        return x - self.root * (self.degree > 0) * (np.bincount(self.depth, x * self.root) / weight)[self.depth]

    def spectral(self) -> FloatArray | None:
        """Return float64[N], the smoothest coordinate; None where it is no smoother than of random layers."""
        start = self.product(np.random.default_rng(0).standard_normal(self.n))
        least = ABOVE_RANDOM * self.random
        if not len(self.touched) or least >= 1 or not np.abs(start).max() > 1e-12:
            return None
        values, vectors = lanczos(self.product, start, STEPS, 1, LIKELY * least)
        return vectors[0] / self.root if values[0] > least else None

    def middles(self, place: FloatArray) -> FloatArray:
        """Return float64[N]: the middle of the range of each neuron's neighbours' places, as a rank from 0 to 1."""
        of_other = place[self.other]
        low, high = np.minimum.reduceat(of_other, self.begin), np.maximum.reduceat(of_other, self.begin)
        middle = place.copy()
        middle[self.touched] = (low + high) / 2
        return middle

    def closing(self, stay: npt.NDArray[np.bool_], best: Best) -> FloatArray | None:
        """Return float64[N]: when neurons of `stay` are done one after the other, their neighbours before the first.

        Next is the one that needs the fewest new ones beside it; then each moves to where the fewest are there at a
        time. Finds windows that are too wide for a smooth coordinate. O(n^2) for n that stay.
        """
        ids, here = self.touched[stay[self.touched]], stay[self.other]
        if not 0 < len(ids) <= MOST:
            return None
        bit = np.zeros(self.n, np.int64)
        bit[ids] = np.arange(len(ids))
        ends = list(zip(self.one[here].tolist(), bit[self.other[here]].tolist(), strict=True))
        seen, beside = [0] * self.n, [0] * len(ids)  # sets of `ids`, as bits
        for neuron, k in ends:
            seen[neuron] |= 1 << k
        for neuron, k in ends:
            beside[k] |= seen[neuron]
        there, left, row = 0, set(range(len(ids))), []
        while left:
            row.append(min(left, key=lambda k: (beside[k] & ~there).bit_count()))
            left.remove(row[-1])
            there |= beside[row[-1]]
        rank = np.zeros(self.n)
        rank[ids[fewest_at_a_time(row, beside, best)]] = np.arange(1, len(ids) + 1)
        first, last = np.full(self.n, np.inf), np.zeros(self.n)
        np.minimum.at(first, self.one[here], rank[self.other[here]])
        np.maximum.at(last, self.one[here], rank[self.other[here]])
        return np.where(last > 0, first + last / (len(ids) + 1), rank)

    def streamed(self, place: FloatArray, parity: int) -> FloatArray:
        """Return the places with those of one parity of depths as ranks from 0 to 1."""
        ids = self.touched[self.depth[self.touched] % 2 == parity]
        place = place.copy()
        place[ids[np.argsort(place[ids], kind="stable")]] = np.arange(len(ids)) / max(1, len(ids) - 1)
        return place


def along(network: Network, place: FloatArray) -> Int64Array:
    """Return int64[W]: target by target by place, none before its sources; outputs as soon as a source is there."""
    key, s, t = np.where(network.in_degree > 0, place, -np.inf), network.sources, network.targets
    by_depth = sorted_by(network.depth[t])
    for level in np.split(by_depth, np.flatnonzero(np.diff(network.depth[t[by_depth]])) + 1):
        np.maximum.at(key, t[level], key[s[level]])
    rank = np.empty(len(key), np.int64)
    rank[np.lexsort((place, network.depth, key))] = np.arange(len(key))
    return outputs_early(network, sorted_by(rank[t], s))


def streamed(network: Network, parity: int, place: FloatArray | None = None) -> Int64Array:
    """Return int64[W]: neurons at depths of one parity one after the other, by place, each computed and spent at once,
    so that the two layers beside it stay. Each connection joins neighbouring depths."""
    s, t, depth = network.sources, network.targets, network.depth
    spends = depth[s] % 2 == parity
    neuron = np.where(spends, s, t)
    key = neuron if place is None else place[neuron]
    return np.lexsort((np.where(spends, t, s), spends, neuron, key, depth[neuron]))


def streams(network: Network, best: Best) -> Iterator[Int64Array]:
    """Yield orders in which the layers of one parity stream, by id, then by when inputs and outputs can be done."""
    yield from (streamed(network, parity) for parity in (0, 1))
    of, last = network.depth, int(network.depth.max())
    level, place, stay = of[network.targets], np.zeros(network.n_neurons), (of == 0) | ((of == last) & (last > 1))
    for chosen in [level > 0] if last < 3 else [level == 1, level == last]:  # one hidden layer has both windows
        found = _Graph(network, chosen).closing(stay, best)
        if found is None:
            return
        place += found
    yield from (streamed(network, parity, place) for parity in (0, 1))


def fewest_at_a_time(row: list[int], beside: list[int], best: Best) -> list[int]:
    """Return the row with its members moved to where the fewest are there at a time on average, until none moves.

    beside: which must be there, as bits, before one is done and goes.
    """
    before: list[int] = []
    while before != row and best.has_time:
        before = list(row)
        for k in before:
            at, there = row.index(k), 0
            row.pop(at)
            ahead, behind = [0], [0]  # those before each place, without k; those after it, with k
            for other in row:
                behind.append((there | beside[k]).bit_count())
                there |= beside[other]
                ahead.append(there.bit_count())
            cost = np.cumsum(ahead) - np.cumsum(behind)
            to = int(cost.argmin())
            row.insert(to if cost[to] < cost[at] else at, k)
    return row


def coordinates(network: Network) -> Iterator[FloatArray]:
    """Yield places float64[N] of all neurons: by all connections, and by those between hidden neurons, so that inputs
    and outputs, which may be hubs, say nothing. None where neither is smoother than random layers."""
    s, t = network.sources, network.targets
    hidden = (network.in_degree[s] > 0) & ~network.is_output[t]
    for chosen in (np.ones(len(s), bool), hidden):
        graph = _Graph(network, chosen)
        place = graph.spectral()
        if place is None:
            continue
        yield place
        streams = 1 if chosen.all() else int(network.depth[t[chosen]].min(initial=1)) % 2
        place = graph.streamed(place, streams)
        for k in range(ROUNDS):
            place = np.where(network.depth % 2 == streams, place, graph.middles(place))
            middle = np.where(network.depth % 2 == streams, graph.middles(place), place)
            place = graph.streamed((place + graph.streamed(middle, streams)) / 2, streams)
            if k % OFFERED == OFFERED - 1:
                yield place


@ORDERINGS.register(
    "windows",
    summary="every second layer streams past windows of the others, along a coordinate that makes windows short",
    portfolio=0.6,
    effort=0.3,
)
def windows(network: Network, task: Task, parameters: None) -> Ordering:
    """Return the best order along coordinates that are made better again and again, or of layers that stay whole."""
    best = Best(Scorer(network, task), Budget(task.time_limit_s), task)
    chain = bool((network.depth[network.targets] - network.depth[network.sources] == 1).all())
    for edges in streams(network, best) if chain else ():
        best.offer(edges)
        if not best.has_time:
            break
    for place in coordinates(network):
        best.work += 1
        best.offer(along(network, place))
        for parity in (0, 1) if chain else ():
            best.offer(streamed(network, parity, place))
        if not best.has_time:
            break
    if best.edges is None:
        best.offer(two_optimal_order(network))
    return best.ordering("windows", {}, best.budget.over)
