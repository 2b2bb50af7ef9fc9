"""Slow, obvious operator scheduling: footprint, arenas, Belady traffic, exhaustive optimum. Works on OpGraph only."""

from __future__ import annotations

from collections.abc import Sequence

from traces.operators.opgraph import OpGraph


def _users(graph: OpGraph) -> dict[str, set[int]]:
    users: dict[str, set[int]] = {b: set() for b in graph.buffers}
    for v, node in enumerate(graph.nodes):
        for name in node.inputs:
            users[graph.tensors[name].buffer].add(v)
        for t in node.outputs:
            users[t.buffer].add(v)
    return users


def _sizes(graph: OpGraph) -> dict[str, int]:
    return {t.buffer: t.n_bytes for t in graph.tensors.values()}


def predecessors(graph: OpGraph, v: int) -> set[int]:
    found = set()
    own = {t.buffer for t in graph.nodes[v].outputs}
    for name in graph.nodes[v].inputs:
        buffer = graph.tensors[name].buffer
        for u, node in enumerate(graph.nodes):
            for t in node.outputs:
                if t.buffer == buffer and (buffer not in own or t.name == name):
                    found.add(u)
    return found


def live_after(graph: OpGraph, done: set[int]) -> int:
    """Live bytes as a function of the executed set, by definition."""
    users, sizes = _users(graph), _sizes(graph)
    total = 0
    for b in graph.buffers:
        begun = any(t.buffer == b for v in done for t in graph.nodes[v].outputs)
        if begun and (b in graph.output_buffers or not users[b] <= done):
            total += sizes[b]
    return total


def peak(graph: OpGraph, order: Sequence[int]) -> int:
    sizes, users = _sizes(graph), _users(graph)
    live: set[str] = set()
    done: set[int] = set()
    highest = 0
    for v in order:
        live |= {t.buffer for t in graph.nodes[v].outputs}
        highest = max(highest, sum(sizes[b] for b in live))
        done.add(v)
        live = {b for b in live if b in graph.output_buffers or not users[b] <= done}
    return highest


def optimal_peak(graph: OpGraph) -> tuple[int, int]:
    """(smallest peak, number of downsets) over all topological orders, by the programme over downsets."""
    before = [predecessors(graph, v) for v in range(graph.n_nodes)]
    sizes = _sizes(graph)
    level = {frozenset(): 0}
    n_downsets = 1
    for _ in range(graph.n_nodes):
        following: dict[frozenset, int] = {}
        for done, highest in level.items():
            live = live_after(graph, set(done))
            begun = {t.buffer for u in done for t in graph.nodes[u].outputs}
            for v in range(graph.n_nodes):
                if v in done or not before[v] <= done:
                    continue
                new = {t.buffer for t in graph.nodes[v].outputs} - begun
                reached = max(highest, live + sum(sizes[b] for b in new))
                key = done | {v}
                following[key] = min(following.get(key, reached), reached)
        level = following
        n_downsets += len(level)
    return level[frozenset(range(graph.n_nodes))], n_downsets


def kahn(graph: OpGraph, stack: bool) -> list[int]:
    before = [predecessors(graph, v) for v in range(graph.n_nodes)]
    ready = [v for v in range(graph.n_nodes) if not before[v]]
    order: list[int] = []
    while ready:
        v = ready.pop(-1 if stack else 0)
        order.append(v)
        ready += [u for u in range(graph.n_nodes) if v in before[u] and before[u] <= set(order)]
    return order


def greedy(graph: OpGraph) -> list[int]:
    order: list[int] = []
    done: set[int] = set()
    sizes = _sizes(graph)
    before = [predecessors(graph, v) for v in range(graph.n_nodes)]
    while len(order) < graph.n_nodes:
        begun = {t.buffer for u in done for t in graph.nodes[u].outputs}

        def weigh(v: int, begun: set[str] = begun) -> tuple[int, int, int]:
            new = {t.buffer for t in graph.nodes[v].outputs} - begun
            return live_after(graph, done | {v}), live_after(graph, done) + sum(sizes[b] for b in new), v

        v = min((v for v in range(graph.n_nodes) if v not in done and before[v] <= done), key=weigh)
        order.append(v)
        done.add(v)
    return order


def _up(x: int) -> int:
    return -(-x // 64) * 64


def _place(placed: list[tuple[int, int]], size: int, best: bool) -> int:
    end, choice = 0, None
    for offset, stop in sorted(placed):
        if _up(end) + size <= offset and (choice is None or (best and offset - end < choice[0])):
            choice = (offset - end, _up(end))
        end = max(end, stop)
    return choice[1] if choice else _up(end)


def _first_writers(graph: OpGraph, order: Sequence[int]) -> list[str]:
    return list(dict.fromkeys(t.buffer for v in order for t in graph.nodes[v].outputs))


def arena(graph: OpGraph, order: Sequence[int], allocator: str) -> int:
    users, sizes, n = _users(graph), _sizes(graph), len(order)
    step = {v: i for i, v in enumerate(order)}
    first = {b: min(step[v] for v in users[b]) for b in users}
    last = {b: n if b in graph.output_buffers else max(step[v] for v in users[b]) for b in users}
    numbered = _first_writers(graph, order)
    place: dict[str, int] = {}
    if allocator == "linear":
        sequence = numbered
    else:
        sequence = sorted(numbered, key=lambda b: (-sizes[b], first[b], numbered.index(b)))
    for b in sequence:
        if allocator == "linear":  # still there when b arrives
            others = [c for c in place if last[c] >= first[b]]
        else:
            others = [c for c in place if first[c] <= last[b] and first[b] <= last[c]]
        spots = [(place[c], place[c] + sizes[c]) for c in others]
        place[b] = _place(spots, sizes[b], allocator != "size-first-fit")
    return max(place[b] + sizes[b] for b in place)


def traffic(graph: OpGraph, order: Sequence[int], onchip_bytes: int, block_bytes: int) -> tuple[int, int]:
    """(read, written) bytes of Belady replacement, block by block."""
    sizes = _sizes(graph)
    number = {b: i for i, b in enumerate(_first_writers(graph, order))}
    accesses: list[tuple[tuple[int, int], str]] = []
    begun = set()
    blocks = {b: -(-sizes[b] // block_bytes) for b in sizes}
    for v in order:
        own = list(dict.fromkeys(t.buffer for t in graph.nodes[v].outputs))
        for b in dict.fromkeys(graph.tensors[name].buffer for name in graph.nodes[v].inputs):
            if b not in own:
                accesses += [((number[b], k), "read") for k in range(blocks[b])]
        for b in own:
            accesses += [((number[b], k), "update" if b in begun else "write") for k in range(blocks[b])]
            begun.add(b)
    by_number = {i: b for b, i in number.items()}
    uses: dict[tuple[int, int], list[int]] = {}
    for i, (block, _) in enumerate(accesses):
        uses.setdefault(block, []).append(i)

    def size(block: tuple[int, int]) -> int:
        return min(block_bytes, sizes[by_number[block[0]]] - block[1] * block_bytes)

    resident: dict[tuple[int, int], bool] = {}
    read = written = 0
    for i, (block, kind) in enumerate(accesses):

        def farness(b: tuple[int, int], i: int = i) -> tuple[float, int, int]:
            later = [u for u in uses[b] if u >= i]
            return (later[0] if later else float("inf"), -b[0], -b[1])

        if block not in resident:
            if kind != "write":
                read += size(block)
            if len(resident) == onchip_bytes // block_bytes:
                out = max(resident, key=farness)
                if resident.pop(out):
                    written += size(out)
            resident[block] = False
        if kind != "read":
            resident[block] = True
        if uses[block][-1] == i and by_number[block[0]] not in graph.output_buffers:
            del resident[block]
    return read, written
