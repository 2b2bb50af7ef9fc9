"""Windows over layers: which connections a layered network may have so that a small fast memory reads each value once.

Every second layer stays in fast memory, narrowed to as many neurons as it holds; the neurons of the others pass one
after the other, and each may connect to all that stay: it is computed, spent and dropped. Inputs and outputs cannot be
narrowed; where they have no room, a window slides over them from the first to the last. Fast memory holds two layers
that stay at a time, the neuron that passes, and the connection in hand. Every value is then in fast memory from its
first connection to its last, which is Compact Growth (Gleinig et al. 2023, Theorem 2): any subset of the connections
allowed needs W + N + S I/Os and no more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.checks import checked_memory

Int64Array = npt.NDArray[np.int64]
WHOLE = 2 / 3
"""Of memory that inputs may take so that all stay; else they take half. A rule of thumb (digits and MNIST-1D,
256-128-256 hidden neurons): a neuron that misses inputs costs as much as narrower hidden layers."""
AGAIN = 1.2
"""I/Os for an input that a tile reads again: min drops a value that a sparse tile does not use, to read it later. An
estimate: 1.02 to 1.4 on digits and MNIST-1D."""


@dataclass(frozen=True, eq=False)
class Windows:
    """The connections that a memory allows. A position counts along a layer in the order in which its neurons pass.

    widths: neurons of each layer, inputs first. sizes: of each layer's window, which lies over the layer that stays.
    positions: per layer int64[n], the position of each neuron. pulls: by layer of connections, whether targets stream
    past sources that stay; if not, sources past targets. live: how many positions of each layer have connections, the
    first ones. block: the connections allowed are the same for this many consecutive outputs. values: fast memory that
    a neuron of each layer takes (that of a channel is its map). tile: neurons of the first hidden layer that are
    computed together; inputs are read again for each such tile, and what it feeds as well where that does not stay:
    I/Os above the bound.
    """

    widths: tuple[int, ...]
    sizes: tuple[int, ...]
    positions: tuple[Int64Array, ...]
    pulls: tuple[bool, ...]
    live: tuple[int, ...]
    block: int = 1
    values: tuple[int, ...] = ()
    tile: int = 1

    @property
    def staying(self) -> list[int]:
        """How many neurons stay, by layer of connections."""
        return [self._ends(k)[0] for k in range(len(self.sizes))]

    def _ends(self, k: int) -> tuple[int, int]:
        """Return how many neurons of layer k of connections stay, and how many stream."""
        a, b = self.live[k : k + 2]
        return (a, b) if self.pulls[k] else (b, a)

    @cached_property
    def starts(self) -> list[Int64Array]:
        """int64[streaming neurons] by layer of connections: the first position of each neuron's window."""
        starts = []
        for k, pull in enumerate(self.pulls):
            staying, streaming = self._ends(k)
            step = np.arange(streaming) // (self.block if pull else 1)
            size, span = self.sizes[k], staying - self.sizes[k]
            # The middle slides from one end to the other, so the neurons at the ends are seen half as often.
            first = np.clip(np.round((step + 0.5) * (span + size) / (step[-1] + 1) - size / 2), 0, span)
            first = first.astype(np.int64)
            starts.append(first if pull else first // self.block * self.block)
        return starts

    def pairs(self, k: int) -> tuple[Int64Array, Int64Array]:
        """Return (targets, sources) of the connections allowed in layer k, in the layers' own numbering."""
        staying = (self.starts[k][:, None] + np.arange(self.sizes[k])).ravel()
        streaming = np.repeat(np.arange(len(self.starts[k])), self.sizes[k])
        sources, targets = (staying, streaming) if self.pulls[k] else (streaming, staying)
        return np.argsort(self.positions[k + 1])[targets], np.argsort(self.positions[k])[sources]

    def allowed(self) -> list[npt.NDArray[np.bool_]]:
        """Return bool[outputs, inputs] of each layer of connections."""
        masks = [np.zeros((b, a), bool) for a, b in pairs_of(self.widths)]
        for k, mask in enumerate(masks):
            mask[self.pairs(k)] = True
        return masks

    @property
    def capacity(self) -> int:
        """Connections allowed."""
        return sum(size * self._ends(k)[1] for k, size in enumerate(self.sizes))

    @cached_property
    def ranks(self) -> list[Int64Array]:
        """int64[n] for each layer, by position: when a neuron passes; -1 where none does, as the layer stays.

        A neuron passes as soon as its sources are complete; what follows from it comes before the next one. O(N).
        """
        widths, ranks = self.live, [np.full(n, -1, np.int64) for n in self.widths]
        ready = [(start + self.sizes[k]).tolist() for k, start in enumerate(self.starts)]
        filled = [[*start[1:].tolist(), widths[k + 1]] for k, start in enumerate(self.starts)]  # no later one reaches
        complete, passed, clock = [widths[0]] + [0] * len(self.sizes), [0] * len(self.sizes), 0

        follow = [0]  # layers whose neurons pass, each for the sake of the one before it
        while follow:
            k = follow[-1]
            layer, n = (k + 1, widths[k + 1]) if k < len(self.sizes) and self.pulls[k] else (k, widths[k])
            if k == len(self.sizes) or passed[k] == n:
                follow.pop()
                continue
            v = passed[k]
            if (ready[k][v] if self.pulls[k] else v + 1) > complete[k]:
                follow.pop()
                continue
            if ranks[layer][v] < 0:
                ranks[layer][v] = clock
                clock += 1
            passed[k] += 1
            complete[k + 1] = passed[k] if self.pulls[k] else filled[k][v]
            follow.append(k + 1)
        return ranks

    def _seen_by(self, k: int) -> tuple[Int64Array, Int64Array]:
        """Return the first and the last streaming neuron that sees each position of the layer that stays."""
        p, start = np.arange(self._ends(k)[0]), self.starts[k]
        return np.searchsorted(start + self.sizes[k], p, "right"), np.searchsorted(start, p, "right") - 1

    def two_of_four(self) -> int:
        """Return how many connections are allowed if at most 2 of 4 consecutive sources may have one."""
        count = 0
        for k, start in enumerate(self.starts):
            low, high = (start, start + self.sizes[k]) if self.pulls[k] else self._seen_by(k)
            high = high if self.pulls[k] else high + 1
            inner = np.maximum(high // 4 - -(-low // 4), 0)
            ends = np.minimum(2, -low % 4) + np.minimum(2, high % 4)
            one = low // 4 == (high - 1) // 4  # all in one group of four
            count += int(np.where(one, np.minimum(2, high - low), 2 * inner + ends).sum())
        return count

    @property
    def memory(self) -> int:
        """The least M with which the whole of what is allowed reaches the lower bound, tiles aside. O(N log N)."""
        n, lives = len(self.sizes), []
        for layer, width in enumerate(self.live):
            times = []
            for k, side in ((layer - 1, 1), (layer, 0)):  # connections into the layer, out of it
                if not 0 <= k < n:
                    continue
                if self.pulls[k] == bool(side):  # the layer streams here
                    first = last = self.ranks[layer][:width]
                else:
                    first, last = (self.ranks[k + 1 - side][at] for at in self._seen_by(k))
                phase = 0 if self.pulls[k] else 1
                times += [2 * first + phase, 2 * last + phase]
            values = np.full(width, self.values[layer] if self.values else 1)
            lives.append((np.min(times, axis=0), np.max(times, axis=0) + 1, values))
        begin, end, values = (np.concatenate(each) for each in zip(*lives, strict=True))
        change = np.zeros(int(end.max()) + 1, np.int64)
        np.add.at(change, begin, values)
        np.add.at(change, end, -values)
        return int(np.cumsum(change).max()) + 1

    def order(self, layers: Int64Array, targets: Int64Array, sources: Int64Array) -> Int64Array:
        """Return the order of work that belongs to the windows: int64[W], indices of connections.

        layers: layer of each connection; targets, sources: neurons inside their layers. A connection is done when its
        streaming neuron passes: first those into the neuron, then those out of it; one that no window allows waits
        until its source is complete. A tile passes as one: neuron by neuron of what stays. O(W log W).
        """
        pull, first = np.array(self.pulls)[layers], np.cumsum((0, *self.widths))
        position = np.concatenate(self.positions)
        rank = np.concatenate([ranks[p] for ranks, p in zip(self.ranks, self.positions, strict=True)])
        s, t = first[layers] + sources, first[layers + 1] + targets
        pacing, neighbour = np.where(pull, t, s), np.where(pull, s, t)
        tiled = (pacing >= first[1]) & (pacing < first[2])
        when = 2 * np.where(tiled, rank[pacing] // self.tile * self.tile, rank[pacing]) + ~pull
        done = np.full(first[-1], -1)
        for k in range(len(self.sizes)):
            here = layers == k
            when[here] = np.maximum(when[here], done[s[here]])
            np.maximum.at(done, t[here], when[here])
        return np.lexsort((position[neighbour], layers, when))


def mixed(windows: Windows, seed: int) -> Windows:
    """Return the windows with inputs at random positions: each window shows a sample of all inputs, not a corner."""
    inputs = np.random.default_rng(seed).permutation(windows.widths[0])
    return replace(windows, positions=(inputs, *windows.positions[1:]))


def pairs_of(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the (sources, targets) of each layer of connections."""
    return list(pairwise(widths))


@dataclass(frozen=True)
class Capacity:
    """The most connections that layers of given widths can have at the lower bound, with a memory M.

    blocks_of_16: the same inputs for 16 consecutive outputs. two_of_four: at most 2 of 4 consecutive inputs. most: no
    mask and no order has more.
    """

    memory: int
    windows: int
    blocks_of_16: int
    two_of_four: int
    most: int


def capacity(widths: Sequence[int], memory: int) -> Capacity:
    """Return what a memory has room for, by kind of window; one that needs a larger memory has 0.

    The upper limit: values enter fast memory once each and leave it once; a value that enters meets at most M - 2
    others, the first M - 1 values each other, and only values of neighbouring layers connect. So W <= N (M - 2) -
    (M - 2)(M - 1) / 2, W <= sum of n min(M - 2, n before + n after), and W <= the dense layers'.
    """
    n, room = sum(widths), checked_memory(memory) - 2
    first = min(room, n)
    near = zip(widths, [0, *widths[:-1]], [*widths[1:], 0], strict=True)
    most = min(
        n * first - first * (first + 1) // 2,
        sum(width * min(room, before + after) for width, before, after in near),
        sum(a * b for a, b in pairs_of(widths)),
    )

    def held(block: int) -> Windows | None:
        return fit(widths, memory, spread=0.0, block=block) if memory >= least_memory(widths, block=block) else None

    any_, sixteen = held(1), held(16)
    free, alike = (0 if each is None else each.capacity for each in (any_, sixteen))
    return Capacity(memory, free, alike, 0 if any_ is None else any_.two_of_four(), most)


def least_memory(widths: Sequence[int], *, block: int = 1, values: Sequence[int] = ()) -> int:
    """Return an M with which windows of the least sizes reach the bound."""
    return _made(widths, 0, 0.0, block, values).memory


def fit(
    widths: Sequence[int],
    memory: int,
    *,
    connections: int = 0,
    spread: float = 1.0,
    block: int = 1,
    values: Sequence[int] = (),
) -> Windows:
    """Return windows that a memory has room for.

    connections: how many they must allow at least. spread: 1 gives inputs what they need (`WHOLE`); 0 gives all room to
    the layers in which a place allows the most connections; it is lowered where `connections` ask for it. Neurons stand
    at the positions of their numbers.
    Raises InputError where memory has no room for windows, or they for the connections; it names the nearest M.
    """
    least = least_memory(widths, block=block, values=values)
    if memory < least:
        raise InputError(
            f"M = {memory} has no room for a window over each layer of {'-'.join(map(str, widths))}: the least is "
            f"M = {least}"
        )
    best = _fitted(widths, memory, 0.0, block, values)
    if best.capacity < connections:
        raise InputError(
            f"M = {memory} has room for {best.capacity} connections of {'-'.join(map(str, widths))} at the lower "
            f"bound, not for {connections}"
        )
    low, high = 0.0, spread
    found = _fitted(widths, memory, spread, block, values) if spread else best
    if found.capacity >= connections:
        return found
    for _ in range(8):  # the largest spread that allows enough, to 1/256
        middle = (low + high) / 2
        tried = _fitted(widths, memory, middle, block, values)
        if tried.capacity >= connections:
            low, best = middle, tried
        else:
            high = middle
    return best


def tiled(widths: Sequence[int], memory: int, connections: int, extra: int) -> Windows | None:
    """Return narrow layers whose neurons all see all inputs, read again for each tile of the first hidden layer.

    That costs about `extra` I/Os above the bound at most: `AGAIN` times the inputs read again. A single hidden layer is
    narrowed to the tiles that `extra` pays for, since outputs are read and written again with each. None where they
    have no room or need none.
    """
    inputs, hidden, room = *widths[:2], memory - 2
    if len(widths) < 3 or room < 2:
        return None
    if len(widths) == 3:
        tile, held = room, {}
        live = [inputs, min(hidden, tile * (1 + extra // (inputs + 2 * widths[2]))), widths[2]]
    else:
        least = -(-hidden // (1 + extra // inputs))
        held = _narrow((least, *widths[1:]), room, 0, 1.0, 1, ())
        tile, live = room - held[2], [held.get(k, n) if k else n for k, n in enumerate(widths)]
        live[-1] = widths[-1]
        if held[2] + least > room or min(inputs, hidden) <= tile or AGAIN * inputs * (-(-hidden // tile) - 1) > extra:
            return None
    found = _over(widths, {**held, 0: inputs}, live, 0, tile=tile)
    return found if found.capacity >= connections else None


def memory_for(widths: Sequence[int], connections: int, *, block: int = 1, values: Sequence[int] = ()) -> int:
    """Return the least M whose windows have room for so many connections."""
    low = least_memory(widths, block=block, values=values)
    high = low + sum(n * v for n, v in zip(widths, values or [1] * len(widths), strict=True))
    found = lambda memory: _fitted(widths, memory, 0.0, block, values).capacity  # noqa: E731
    return low + bisect_left(range(low, high), connections, key=found)


def _fitted(widths: Sequence[int], memory: int, spread: float, block: int, values: Sequence[int]) -> Windows:
    """Return the largest windows that fit; `memory` has room for the least."""
    reserve = 1 + max(values or [1])
    found = None
    while found is None or found.memory > memory:  # a value more or less where windows begin and end
        found = _made(widths, memory - reserve, spread, block, values)
        reserve += max(1, found.memory - memory)
    return found


def _narrow(
    widths: Sequence[int], room: int, first: int, spread: float, block: int, values: Sequence[int]
) -> dict[int, int]:
    """Return how many neurons of each layer that stays are in memory: of every second layer from `first` on.

    spread: 1 gives inputs up to `WHOLE` of the room if all fit, else half; 0 gives hidden layers the most.
    """
    stay, cost = list(range(first, len(widths), 2)), values or [1] * len(widths)
    unit = [1, *(block if n % block == 0 else n for n in widths[1:])]
    held = {k: unit[k] for k in stay}
    for k in {0, len(widths) - 1} & set(stay):  # what streams must see them all
        least = -(-widths[k] // (-(-widths[1] // block) if k == 0 else widths[k - 1]))
        held[k] = -(-least // unit[k]) * unit[k]

    def grow(k: int, most: float) -> None:
        neighbour = max((held[j] * cost[j] for j in (k - 2, k + 2) if j in held), default=0)
        size = min(widths[k], int(min(most, room - neighbour) // cost[k]))
        held[k] = max(held[k], size // unit[k] * unit[k])

    if stay[-1] == len(widths) - 1:  # every output is needed; a window over them would hide neurons from it
        grow(stay[-1], room / 2)
    if not first:
        whole = widths[0] * cost[0] <= WHOLE * room
        grow(0, spread * room * (WHOLE if whole else 0.5))
    for k in stay[not first :]:
        grow(k, room / 2)
    for k in reversed(stay):
        grow(k, room)
    return held


def _made(widths: Sequence[int], room: int, spread: float, block: int, values: Sequence[int]) -> Windows:
    """Return windows in so much memory, at least the smallest ones: those that allow the most connections."""
    found = []
    for first in (0, 1):
        held, last = _narrow(widths, room, first, spread, block, values), len(widths) - 1
        live = [n if k in (0, last) else held.get(k, n) for k, n in enumerate(widths)]
        found.append(_over(widths, held, live, first, block=block, values=tuple(values)))
    return max(found, key=lambda windows: windows.capacity)


def _over(widths: Sequence[int], held: dict[int, int], live: Sequence[int], first: int, **more: Any) -> Windows:
    """Return windows of the sizes held (of the others: all), where every second layer from `first` on stays."""
    pulls = tuple((k - first) % 2 == 0 for k in range(len(widths) - 1))
    stay = [k if pull else k + 1 for k, pull in enumerate(pulls)]
    sizes, positions = tuple(held.get(k, widths[k]) for k in stay), tuple(np.arange(n) for n in widths)
    return Windows(tuple(widths), sizes, positions, pulls, tuple(live), **more)
