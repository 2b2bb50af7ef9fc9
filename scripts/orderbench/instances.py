"""The tasks of orderbench: generators with seeds, in plain Python, so that checking one needs nothing else.

Only `random.Random(seed).random()` is drawn, which is the same in every version of Python. Numbers of neurons are
shuffled inside their layers where nothing else is said, and so are operators among the orders that may run: an order
must be found, not read off. A task is what its JSON file holds; check.py says what each kind of answer costs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random
from typing import Any

Pairs = list[tuple[int, int]]
Operators = list[tuple[int, list[int]]]  # bytes that it writes, the operators that it reads
Task = dict[str, Any]


def below(rng: Random, n: int) -> int:
    """Draw one of 0 to n - 1."""
    return int(rng.random() * n)


def sample(rng: Random, n: int, k: int) -> list[int]:
    """Draw k of 0 to n - 1, no one twice, ascending."""
    items = list(range(n))
    for i in range(k):
        j = i + below(rng, n - i)
        items[i], items[j] = items[j], items[i]
    return sorted(items[:k])


def layered(
    widths: list[int], chosen: Callable[[int, int, int], Iterable[int]], rng: Random | None
) -> tuple[int, Pairs]:
    """Return (neurons, connections): target t of layer k has the sources chosen(k, t, width before), one if none.

    rng: shuffles numbers inside layers; None: they stay.
    """
    first = [sum(widths[:k]) for k in range(len(widths) + 1)]
    number = list(range(first[-1]))
    if rng is not None:
        for begin, end in pairwise(first):
            number[begin:end] = [begin + k for k in shuffle(rng, end - begin)]
    pairs = [
        (number[first[k - 1] + s], number[first[k] + t])
        for k in range(1, len(widths))
        for t in range(widths[k])
        for s in (sorted(set(chosen(k, t, widths[k - 1]))) or [t % widths[k - 1]])
    ]
    return first[-1], sorted(pairs, key=lambda pair: pair[::-1])


def shuffle(rng: Random, n: int) -> list[int]:
    """Return a permutation of 0 to n - 1."""
    items = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(rng, i + 1)
        items[i], items[j] = items[j], items[i]
    return items


def random_layers(rng: Random, widths: list[int], density: float) -> tuple[int, Pairs]:
    return layered(widths, lambda k, t, n: [s for s in range(n) if rng.random() < density], None)


def pruned(rng: Random, widths: list[int], density: float) -> tuple[int, Pairs]:
    """Rows and columns of unlike weight, as magnitude pruning of trained layers leaves them."""
    heavy = [[rng.random() ** 2 * 3 * density for _ in range(n)] for n in widths]
    return layered(
        widths, lambda k, t, n: [s for s in range(n) if rng.random() < heavy[k - 1][s] * (0.4 + t % 4 * 0.4)], rng
    )


def two_of_four(rng: Random, widths: list[int]) -> tuple[int, Pairs]:
    return layered(widths, lambda k, t, n: [g + s for g in range(0, n, 4) for s in sample(rng, 4, 2)], None)


def blocks(rng: Random, widths: list[int], size: int) -> tuple[int, Pairs]:
    return layered(widths, lambda k, t, n: [s for s in range(n) if s // size == t // size], rng)


def band(rng: Random, widths: list[int], half: int, density: float) -> tuple[int, Pairs]:
    return layered(
        widths,
        lambda k, t, n: [s for s in range(max(0, t - half), min(n, t + half + 1)) if rng.random() < density],
        rng,
    )


def convolution(rng: Random, side: int, channels: list[int]) -> tuple[int, Pairs]:
    kept = [[[rng.random() < 0.6 for _ in range(9 * a)] for _ in range(b)] for a, b in pairwise(channels)]

    def chosen(k: int, t: int, n: int) -> list[int]:
        (pixel, out), before = divmod(t, channels[k]), channels[k - 1]
        y, x = divmod(pixel, side)
        taps = [(y + j // 3 - 1, x + j % 3 - 1, c, 9 * c + j) for c in range(before) for j in range(9)]
        return [
            (v * side + u) * before + c
            for v, u, c, tap in taps
            if 0 <= v < side and 0 <= u < side and kept[k - 1][out][tap]
        ]

    return layered([side * side * c for c in channels], chosen, rng)


def fft(rng: Random, levels: int) -> tuple[int, Pairs]:
    return layered([1 << levels] * (levels + 1), lambda k, t, n: [t, t ^ (1 << (k - 1))], rng)


def tree(rng: Random, n: int, most: int) -> tuple[int, Pairs]:
    parent, front = [-1], [0]
    while len(parent) < n:
        v = front.pop(below(rng, len(front)))
        for _ in range(2 + below(rng, most - 1)):
            front.append(len(parent))
            parent.append(v)
    number = shuffle(rng, len(parent))
    pairs = [(number[c], number[parent[c]]) for c in range(1, len(parent))]
    return len(parent), sorted(pairs, key=lambda pair: pair[::-1])


def stencil(rng: Random, n: int, steps: int) -> tuple[int, Pairs]:
    return layered([n] * (steps + 1), lambda k, t, n: [s for s in (t - 1, t, t + 1) if 0 <= s < n], rng)


def grid(rng: Random, side: int, steps: int) -> tuple[int, Pairs]:
    def chosen(k: int, t: int, n: int) -> list[int]:
        y, x = divmod(t, side)
        near = [(y, x), (y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
        return [v * side + u for v, u in near if 0 <= v < side and 0 <= u < side]

    return layered([side * side] * (steps + 1), chosen, rng)


def lstm(rng: Random, n: int, density: float) -> tuple[int, Pairs]:
    """Inputs and state to four gates, those of one unit to its output."""

    def chosen(k: int, t: int, before: int) -> list[int]:
        if k == 2:
            return [t + g * n for g in range(4)]
        return [s for s in range(before) if rng.random() < density]

    return layered([2 * n, 4 * n, n], chosen, rng)


def experts(rng: Random, n: int, number: int, width: int) -> tuple[int, Pairs]:
    """Mixture of experts: each reads and feeds a quarter of the neurons."""
    reads, feeds = ([sample(rng, n, n // 4) for _ in range(number)] for _ in range(2))

    def chosen(k: int, t: int, before: int) -> list[int]:
        if k == 1:
            return [s for s in reads[t // width] if rng.random() < 0.5]
        return [h for h in range(before) if t in feeds[h // width] and rng.random() < 0.5]

    return layered([n, number * width, n], chosen, rng)


def graph(rng: Random, n: int, degree: int, layers: int) -> tuple[int, Pairs]:
    """Message passing on a graph with hubs: the k-th neuron is an end in proportion to about 1 / k."""
    near: list[set[int]] = [{v} for v in range(n)]
    for _ in range(n * degree // 2):
        a, b = (int(n ** rng.random()) - 1 for _ in range(2))
        near[a].add(b)
        near[b].add(a)
    return layered([n] * layers, lambda k, t, n: near[t], rng)


def radix(rng: Random, n: int, fan: int, layers: int) -> tuple[int, Pairs]:
    """RadiX-Net-like: `fan` sources, strides 1 and `fan` in turns."""
    return layered([n] * layers, lambda k, t, n: [(t + j * fan ** (k % 2)) % n for j in range(fan)], rng)


def grown(rng: Random, m_g: int, iterations: int, degree: int) -> tuple[int, Pairs]:
    """Compact growth (Gleinig et al. 2023, Appendix B): minimal I/Os in a memory of m_g."""
    bag, pairs = list(range(m_g - 2)), []
    for step in range(iterations):
        for place in range(degree):
            pick = place + below(rng, len(bag) - place)
            bag[place], bag[pick] = bag[pick], bag[place]
        pairs += [(s, m_g - 2 + step) for s in bag[:degree]]
        bag[degree - 1] = m_g - 2 + step
    n = m_g - 2 + iterations + 1
    pairs += [(s, n - 1) for s in bag]
    number = shuffle(rng, n)
    return n, sorted(((number[a], number[b]) for a, b in pairs), key=lambda pair: pair[::-1])


def windows(rng: Random, n: int, hidden: int, width: int, degree: int) -> tuple[int, Pairs]:
    """Trained for a memory: hidden neurons read and feed inside one window that slides over inputs and outputs."""
    begin = [round(h * (n - width) / (hidden - 1)) for h in range(hidden)]
    feeds = [{begin[h] + x for x in sample(rng, width, degree)} for h in range(hidden)]

    def chosen(k: int, t: int, before: int) -> list[int]:
        if k == 1:
            return [begin[t] + x for x in sample(rng, width, degree)]
        return [h for h in range(hidden) if t in feeds[h]]

    return layered([n, hidden, n], chosen, rng)


def dense(rng: Random, widths: list[int]) -> tuple[int, Pairs]:
    return layered(widths, lambda k, t, n: range(n), None)


def tiny(rng: Random, connections: int, reach: int) -> tuple[int, Pairs]:
    """Any acyclic network of few connections, source and target at most `reach` apart: small enough to be solved."""
    n = round(connections * (0.5 + 0.35 * rng.random())) + 2
    pairs = [(a, b) for a in range(n) for b in range(a + 1, min(n, a + reach + 1))]
    chosen = [pairs[k] for k in sample(rng, len(pairs), min(connections, len(pairs)))]
    return n, sorted(chosen, key=lambda pair: pair[::-1])


def matrix(rng: Random, rows: int, columns: int, kept: int, levels: int) -> Task:
    """`kept` entries a row, in any order: half precision, values about normal or, levels > 0, of a small code book."""
    entries = []
    for row in range(rows):
        ids = sample(rng, columns, kept)
        for k in shuffle(rng, kept):
            value = sum(rng.random() for _ in range(4)) - 2
            value = round(value * levels) / levels if levels else value
            entries.append((row, *struct.unpack("<H", struct.pack("<e", value)), ids[k]))
    return {"entries": entries}


def numbered(rng: Random, operators: Operators) -> Operators:
    """Number operators in a random order in which they may run."""
    number = dict[int, int]()
    while len(number) < len(operators):
        ready = [v for v, (_, inputs) in enumerate(operators) if v not in number and number.keys() >= {*inputs}]
        number[ready[below(rng, len(ready))]] = len(number)
    return [(operators[v][0], sorted(number[u] for u in operators[v][1])) for v in number]


def wired(rng: Random, n: int, reach: int) -> Operators:
    """Any graph: up to three inputs among the `reach` before, sizes of four kinds."""
    inputs = [[v - 1 - k for k in sample(rng, min(v, reach), min(v, 1 + below(rng, 3)))] for v in range(n)]
    return numbered(rng, [(8 << below(rng, 4), one) for one in inputs])


def cells(rng: Random, number: int, branches: int, depth: int) -> Operators:
    """Cells in a row, each of branches that widen and narrow and are joined."""
    operators: Operators = [(32, [])]
    for _ in range(number):
        root, ends = len(operators) - 1, []
        for _ in range(branches):
            for at in range(1 + below(rng, depth)):
                operators.append((8 + 8 * below(rng, 9), [len(operators) - 1 if at else root]))
            ends.append(len(operators) - 1)
        operators.append((32, ends))
    return numbered(rng, operators)


def operators(rng: Random, make: Callable[..., Operators], *arguments: int) -> Task:
    made = make(rng, *arguments)
    read = {v for _, inputs in made for v in inputs}
    return {"operators": made, "outputs": [v for v in range(len(made)) if v not in read]}


def lifetimes(rng: Random, n: int, span: int, longest: int, most: int) -> Task:
    """Buffers that begin anywhere, few of them long or large."""
    begin = [below(rng, span) for _ in range(n)]
    return {"buffers": [(b, b + 1 + int(longest ** rng.random()), 1 + int(most ** rng.random())) for b in begin]}


def arena(rng: Random, make: Callable[..., Operators], *arguments: int) -> Task:
    """The buffers of operators that run as they are numbered."""
    made = make(rng, *arguments)
    last = {v: at + 1 for at, (_, inputs) in enumerate(made) for v in (at, *inputs)}
    return {"buffers": [(v, last[v], n_bytes) for v, (n_bytes, _) in enumerate(made)]}


# kind -> (generator, its arguments in turn, the memories in turn). Every instance has a seed of its own.
KINDS: dict[str, tuple[Callable[..., tuple[int, Pairs]], list[tuple[object, ...]], list[int]]] = {
    "random": (random_layers, [([80, 80, 80], 0.2), ([120, 120, 40], 0.1), ([150, 150, 150], 0.03)], [15, 30, 60]),
    "pruned": (pruned, [([120, 60, 30, 10], 0.2), ([100, 100, 100], 0.15)], [15, 30, 60]),
    "2:4": (two_of_four, [([64, 64, 32],), ([96, 48, 96],)], [12, 24, 48]),
    "block": (blocks, [([80, 80, 80], 16), ([120, 120], 20)], [10, 20, 40]),
    "band": (band, [([120, 120, 120], 6, 0.6), ([200, 200], 8, 0.5)], [16, 24, 36]),
    "convolution": (convolution, [(8, [2, 3, 3]), (10, [1, 2, 2, 2])], [20, 40, 80]),
    "fft": (fft, [(6,), (7,)], [12, 20, 40]),
    "tree": (tree, [(300, 3), (500, 4)], [5, 6, 8]),
    "stencil": (stencil, [(60, 16), (100, 12)], [16, 24, 40]),
    "grid": (grid, [(12, 5), (14, 4)], [30, 50, 80]),
    "lstm": (lstm, [(32, 0.25), (48, 0.12)], [16, 32, 64]),
    "experts": (experts, [(64, 6, 24), (48, 8, 16)], [16, 34, 50]),
    "graph": (graph, [(150, 6, 3), (100, 8, 3)], [20, 40, 70]),
    "radix": (radix, [(64, 8, 4), (81, 9, 3)], [12, 24, 40]),
    "grown": (grown, [(20, 250, 4), (40, 300, 5), (12, 200, 3)], [20, 40, 12]),
    "windows": (windows, [(60, 200, 14, 6), (80, 240, 20, 8)], [31, 43]),
    "dense": (dense, [([40, 40, 40, 40],), ([60, 30, 60],)], [10, 20, 36]),
    "tiny": (tiny, [(10, 9), (12, 5), (14, 8), (16, 6), (18, 9), (20, 5)], [3, 4, 5]),
}
EACH, TINY = 9, 60  # instances of a kind, and of the tiny ones
POLICIES = ("min", "min", "lru", "rr")  # in turn


# What is no network: kind -> (generator, its arguments) in turn.
OTHERS: dict[str, list[tuple[Any, ...]]] = {
    "tuples": [
        *((matrix, *a) for a in ((8, 64, 6, 0), (12, 256, 8, 0), (16, 512, 9, 8), (10, 512, 10, 0), (30, 90, 7, 16))),
        *((matrix, *a) for a in ((20, 512, 40, 0), (20, 512, 40, 8), (6, 4096, 150, 0), (8, 256, 64, 16))),
    ],
    "operators": [
        *((operators, wired, *a) for a in ((30, 6), (50, 8), (80, 10), (60, 30), (80, 30), (100, 50))),
        *((operators, cells, *a) for a in ((3, 8, 6), (1, 30, 3), (6, 6, 4))),
    ],
    "arenas": [
        *((lifetimes, *a) for a in ((12, 6, 4, 9), (30, 20, 10, 64), (60, 40, 15, 64), (100, 60, 30, 999))),
        *((arena, wired, *a) for a in ((60, 12), (120, 60))),
        *((arena, cells, *a) for a in ((3, 8, 6), (1, 30, 3), (6, 6, 4))),
    ],
}


def instances() -> Iterable[Task]:
    """Yield all tasks, always the same."""
    for kind, (make, arguments, memories) in KINDS.items():
        for k in range(TINY if kind == "tiny" else EACH):
            n, pairs = make(Random(f"{kind} {k}"), *arguments[k % len(arguments)])
            policy = POLICIES[k % len(POLICIES)] if kind not in ("grown", "windows") or k % 5 == 4 else "min"
            outputs = sorted({b for _, b in pairs} - {a for a, _ in pairs})
            network = {"n_neurons": n, "connections": pairs, "outputs": outputs}
            task = {"name": f"{kind}-{k:02d}", "kind": kind, "memory": memories[k % len(memories)], "policy": policy}
            yield task | network
    for kind, rows in OTHERS.items():
        for k, (make, *arguments) in enumerate(rows):
            yield {"name": f"{kind}-{k:02d}", "kind": kind, **make(Random(f"{kind} {k}"), *arguments)}
