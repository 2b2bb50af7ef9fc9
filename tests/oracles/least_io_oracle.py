"""The least I/Os of a small network over every order and every eviction: shortest path over states, by brute force."""

from __future__ import annotations

import heapq
import itertools

from traces.networks.network import Network


def least_io(network: Network, memory: int) -> int:
    """State: connections done, values resident, which of these are dirty. Exponential in W."""
    edges = list(zip(network.sources.tolist(), network.targets.tolist(), strict=True))
    outputs = {int(x) for x in network.outputs}
    uses = {x: sum(1 << k for k, edge in enumerate(edges) if x in edge) for x in range(network.n_neurons)}
    before = [sum(1 << k for k, (_, b) in enumerate(edges) if b == a) for a, _ in edges]
    everything = (1 << len(edges)) - 1
    start = (0, frozenset[int](), frozenset[int]())
    best = {start: 0}
    heap: list[tuple[int, int, tuple[int, frozenset[int], frozenset[int]]]] = [(0, 0, start)]
    tie = itertools.count(1)
    least = 10**9
    while heap:
        cost, _, state = heapq.heappop(heap)
        if cost > best[state] or cost >= least:
            continue
        done, resident, dirty = state
        if done == everything:
            least = min(least, cost + len(dirty & outputs))
            continue
        for k, (a, b) in enumerate(edges):
            if done >> k & 1 or before[k] & ~done:
                continue
            others = sorted(resident - {a, b})
            now = done | 1 << k
            for kept in itertools.combinations(others, min(memory - 3, len(others))):
                gone = (resident - {a, b}) - set(kept)
                writes = sum(1 for x in gone & dirty if uses[x] & ~done or x in outputs)
                following = (now, frozenset(kept) | {a, b}, frozenset((dirty - gone) | {b}))
                total = cost + 1 + (a not in resident) + (b not in resident) + writes
                if total < best.get(following, least):
                    best[following] = total
                    heapq.heappush(heap, (total, next(tie), following))
    return least
