"""Orders made without search: Kahn's algorithm with a queue or a stack, greedy, random."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from reorder.schedule.operator_problem import OperatorProblem, Order


def file_order(problem: OperatorProblem) -> Order:
    """Return the order of the file."""
    return np.arange(problem.graph.n_nodes, dtype=np.int32)


def kahn(problem: OperatorProblem, *, stack: bool = False) -> Order:
    """Kahn's algorithm: the ready operators wait in a queue (breadth first) or on a stack (depth first).

    Operators without predecessors enter in file order; the successors of each operator follow, in file order, as their
    last predecessor goes. This is the schedule of TensorFlow Lite and the hard budget of Ahn et al. 2020, Algorithm 2.
    """
    graph = problem.graph
    pending = [len(ids) for ids in graph.predecessors]
    ready = deque(v for v, count in enumerate(pending) if not count)
    order = []
    while ready:
        v = ready.pop() if stack else ready.popleft()
        order.append(v)
        for u in graph.successors[v]:
            pending[u] -= 1
            if not pending[u]:
                ready.append(u)
    return np.array(order, np.int32)


def greedy(problem: OperatorProblem) -> Order:
    """Always run the ready operator that leaves the fewest live bytes (ties: smaller transient, then file order).

    The change an operator makes only shrinks as others run, and only when they share a buffer with it, so candidates
    wait in a heap and are weighed again when a neighbour has run. O(edges x log).
    """
    graph = problem.graph
    size = graph.buffer_bytes.tolist()
    kept = problem.kept.tolist()
    writes, touches = problem.buffer_rows["writes"], problem.buffer_rows["touches"]
    users: list[list[int]] = [[] for _ in size]
    for v, buffers in enumerate(touches):
        for b in buffers:
            users[b].append(v)
    left = [len(ids) for ids in users]
    begun = [False] * len(size)
    pending = [len(ids) for ids in graph.predecessors]
    done = [False] * graph.n_nodes

    def weigh(v: int) -> tuple[int, int, int]:
        allocated = sum([size[b] for b in writes[v] if not begun[b]])
        freed = sum([size[b] for b in touches[v] if left[b] == 1 and not kept[b]])
        return allocated - freed, allocated, v

    current = {v: weigh(v) for v, count in enumerate(pending) if not count}
    heap = sorted(current.values())
    order = []
    while heap:
        entry = heapq.heappop(heap)
        v = entry[2]
        if done[v] or current[v] != entry:
            continue
        done[v] = True
        order.append(v)
        stale: set[int] = set()
        for b in touches[v]:
            left[b] -= 1
            first_write = b in writes[v] and not begun[b]
            begun[b] = begun[b] or b in writes[v]
            if first_write or left[b] == 1:
                stale.update(u for u in users[b] if u in current and not done[u])
        for u in graph.successors[v]:
            pending[u] -= 1
            if not pending[u]:
                stale.add(u)
        for u in stale:
            current[u] = weigh(u)
            heapq.heappush(heap, current[u])
    return np.array(order, np.int32)


def random_peaks(problem: OperatorProblem, count: int, seed: int = 0) -> np.ndarray:
    """Return int64[count] peaks of random topological orders (uniform among the ready operators at every step)."""
    state = np.array([seed & (2**64 - 1)], np.uint64)
    last = np.empty(problem.graph.n_nodes, np.int32)
    return np.concatenate(
        [problem.costs.random_orders(min(256, count - done), state, last) for done in range(0, count, 256)]
        or [np.empty(0, np.int64)]
    )
