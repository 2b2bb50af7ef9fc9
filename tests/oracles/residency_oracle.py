"""The residency model by definition: intervals from two permutations, piercing points by plain greedy search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traces.networks.network import Network


def intervals(
    network: Network, opens: Sequence[int], drops: Sequence[int], slots: int
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return open, finish and drop stages by neuron; opens and drops are lists of neurons."""
    opened = {v: max(1, rank - slots + 1) for rank, v in enumerate(opens, 1)}
    dropped = {v: rank for rank, v in enumerate(drops, 1)}
    finished: dict[int, int] = {}
    targets: dict[int, list[int]] = {}
    for s, t in zip(network.sources.tolist(), network.targets.tolist(), strict=True):
        targets.setdefault(s, []).append(t)
    for v in sorted(opened, key=lambda v: -network.depth[v]):
        finished[v] = min([dropped[v], *(finished[t] for t in targets.get(v, ()))])
    return opened, finished, dropped


def piercing(network: Network, s: int, state: tuple[dict[int, int], dict[int, int], dict[int, int]]) -> list[int]:
    """Return the stages at which a source is loaded: the fewest that pierce the intervals of its targets."""
    opened, finished, dropped = state
    left = [t for t in network.targets[network.sources == s].tolist() if s not in opened or opened[t] > dropped[s]]
    points = []
    while left:
        points.append(min(finished[t] for t in left))
        left = [t for t in left if opened[t] > points[-1]]
    return points


def carried(
    network: Network, state: tuple[dict[int, int], dict[int, int], dict[int, int]], sources: Sequence[int]
) -> int:
    """Return how many loads sources save, one after another, that stay from a stage into the next, one each time.

    Two stages between which a source stays are one for it; it stays through none, where others stream.
    """
    opened, finished, dropped = state
    free, saved = set(finished.values()) | set(dropped.values()), 0

    def loads(s: int, stays: set[int]) -> int:
        stage = {k: k - sum(b < k for b in stays) for k in range(1, len(dropped) + 2)}
        own = stage[dropped[s]] if s in dropped else 0
        left = [(stage[opened[t]], stage[finished[t]]) for t in network.targets[network.sources == s].tolist()]
        left, points = [(a, f) for a, f in left if a > own], 0
        while left:
            point, points = min(f for _, f in left), points + 1
            left = [(a, f) for a, f in left if a > point]
        return points

    for s in sources:
        stays: set[int] = set()
        for k in sorted(free):
            if k - 1 not in stays and loads(s, stays | {k}) < loads(s, stays):
                stays.add(k)
        free -= stays
        saved += len(stays)
    return saved


def earliest(network: Network, s: int, state: tuple[dict[int, int], dict[int, int], dict[int, int]]) -> list[int]:
    """Return the same number of stages, each as early as it can be."""
    opened, finished, dropped = state
    left = [t for t in network.targets[network.sources == s].tolist() if s not in opened or opened[t] > dropped[s]]
    points = []
    while left:
        points.append(max(opened[t] for t in left))
        left = [t for t in left if finished[t] < points[-1]]
    return points[::-1]


def misses(
    network: Network, state: tuple[dict[int, int], dict[int, int], dict[int, int]], v: int, opens: int, ends: int
) -> int:
    """Return how many sources of v need one more load if it is resident from `opens` to `ends`."""
    missed = 0
    for s in network.sources[network.targets == v].tolist():
        ranges = zip(earliest(network, s, state), piercing(network, s, state), strict=True)
        missed += opens > state[2].get(s, 0) and not any(first <= ends and opens <= last for first, last in ranges)
    return missed


def gains(network: Network, state: tuple[dict[int, int], dict[int, int], dict[int, int]], v: int) -> int:
    """Return how many sources of v seem to need one load less without it."""
    own = state[0][v], state[1][v]
    return sum(
        own in zip(earliest(network, s, state), piercing(network, s, state), strict=True)
        for s in network.sources[network.targets == v].tolist()
    )


def estimate(
    network: Network, state: tuple[dict[int, int], dict[int, int], dict[int, int]], one: int, other: int
) -> int:
    """Return what a swap of two whole intervals seems to cost the sources of both."""
    opened, _, dropped = state
    return sum(
        misses(network, state, v, opened[w], dropped[w]) - gains(network, state, v)
        for v, w in ((one, other), (other, one))
    )


def of_release(
    network: Network, state: tuple[dict[int, int], dict[int, int], dict[int, int]], s: int, release: int
) -> int:
    """Return what it costs for the targets of s that it drops at another stage."""
    opened, finished, dropped = state
    before = len(piercing(network, s, state))
    after = len(piercing(network, s, (opened, finished, {**dropped, s: release})))
    return after + (after > 0) - before - (before > 0)


def cost(network: Network, opens: Sequence[int], drops: Sequence[int], slots: int) -> int | None:
    """Return loads of sources plus writes of spilled hidden values; None if the state is not possible."""
    opened, finished, dropped = intervals(network, opens, drops, slots)
    computed = set(opened)
    if any(opened[v] > finished[v] for v in computed):
        return None
    total = 0
    for s in np.flatnonzero(network.out_degree > 0).tolist():
        fed = network.targets[network.sources == s].tolist()
        hidden = s in computed
        if hidden and any(finished[s] > finished[t] for t in fed):
            return None
        points = len(piercing(network, s, (opened, finished, dropped)))
        total += points + (1 if hidden and points else 0)
    return total


def random_words(state: Sequence[int]) -> Iterator[int]:
    """xoroshiro128++ 1.0 from its published definition."""
    mask = 2**64 - 1

    def left(x: int, k: int) -> int:
        return (x << k | x >> (64 - k)) & mask

    a, b = state
    while True:
        yield (left((a + b) & mask, 17) + a) & mask
        b ^= a
        a, b = left(a, 49) ^ b ^ (b << 21) & mask, left(b, 28)


@dataclass(frozen=True)
class Annealing:
    """How states are annealed: the settings of the kernel's `tune`, and how it draws.

    scans: share of moves that look at partners for one item among 128 that open one after the other.
    """

    seed: int
    temperature: float
    shares: tuple[float, float]
    longest: int
    moves: int
    scans: float = 0

    def words(self) -> Iterator[int]:
        state = np.random.SeedSequence(self.seed).generate_state(2, np.uint64)
        return random_words((int(state[0]) | 1, int(state[1])))

    def limit(self, word: int) -> int:
        """Return the most that a move may cost more."""
        drawn, most = (word & 0xFFFFFFFF) / 2**32, 0
        while self.temperature and most < 63 and drawn < math.exp(-(most + 1) / self.temperature):
            most += 1
        return most

    def partner(self, i: int, word: int) -> int:
        """Return the rank to exchange with rank i; it may lie outside."""
        step = int(math.exp(math.log(self.longest + 0.999) * ((word >> 16 & 1023) + 0.5) / 1024))
        return i + step if word >> 26 & 1 else i - step


def anneal(
    network: Network, opens: Sequence[int], drops: Sequence[int], slots: int, how: Annealing
) -> tuple[int, list[int], list[int]]:
    """Return (cost, opens, drops) after `moves` unguided proposals, each judged by the whole cost of the new state.

    Swaps of whole intervals that seem to cost more than would be accepted are left out.
    """
    words, shares = how.words(), how.shares
    opens, drops, n = list(opens), list(drops), len(opens)
    now = cost(network, opens, drops, slots)
    assert now is not None
    for _ in range(how.moves):
        if how.scans and (next(words) >> 11) / 2**53 < how.scans:
            a, b = next(words), next(words)
            i, most = (a >> 32) * n >> 32, how.limit(b)
            v = opens[i]
            first = max(0, min(how.partner(i, a) - (b >> 32) % 128, n - 128))
            present = opened, _, dropped = intervals(network, opens, drops, slots)
            missed = {w: misses(network, present, v, opened[w], dropped[w]) for w in opens[first : first + 128]}
            gained = gains(network, present, v)
            found = [w for w in missed if network.depth[w] == network.depth[v] and w != v]
            found = [w for w in found if missed[w] <= gained + most + 1]
            drawn = next(words)
            for _ in range(min(8, len(found))):
                at = (drawn & 0xFFFFFFFF) * len(found) >> 32
                w, found[at] = found[at], found[-1]
                found.pop()
                drawn = (drawn * 6364136223846793005 + 1442695040888963407) % 2**64
                drawn ^= drawn >> 29
                seems = (
                    missed[w] - gained + misses(network, present, w, opened[v], dropped[v]) - gains(network, present, w)
                )
                if seems > most + 2:
                    continue
                seems += of_release(network, present, v, dropped[w]) + of_release(network, present, w, dropped[v])
                if seems > most:
                    continue
                swapped = {v: w, w: v}
                new_opens, new_drops = ([swapped.get(x, x) for x in ranks] for ranks in (opens, drops))
                new = cost(network, new_opens, new_drops, slots)
                if new is not None and new - now <= most:
                    opens, drops, now = new_opens, new_drops, new
                    break
            continue
        a, b = next(words), next(words)
        kind = (a & 0xFFFF) / 2**16
        i = (a >> 32) * n >> 32
        j = how.partner(i, a)
        if not 0 <= j < n:
            continue
        ranked = opens if kind < shares[0] else drops
        v, w = ranked[i], ranked[j]
        new_opens, new_drops = list(opens), list(drops)
        if kind < shares[0] or kind >= sum(shares):
            x, y = opens.index(v), opens.index(w)
            new_opens[x], new_opens[y] = w, v
        if kind >= shares[0]:
            new_drops[i], new_drops[j] = w, v
        elif i < slots and j < slots:
            continue  # both open at stage 1 anyway
        most = how.limit(b)
        present = intervals(network, opens, drops, slots)
        if kind >= sum(shares) and estimate(network, present, v, w) > most:
            continue
        new = cost(network, new_opens, new_drops, slots)
        if new is not None and new - now <= most:
            opens, drops, now = new_opens, new_drops, new
    return now, opens, drops
