"""Solvers that need nothing of edgewatt: python scripts/orderbench/solvers.py METHOD TASKS ANSWERS

    python scripts/orderbench write tasks
    python scripts/orderbench/solvers.py held-karp tasks held-karp                  # tuples in short rows: the least
    python scripts/orderbench/solvers.py nested-dissection tasks nested-dissection  # pip install pymetis
    python scripts/orderbench/solvers.py mt-kahypar tasks mt-kahypar                # pip install mtkahypar
    python scripts/orderbench count mt-kahypar -o mt-kahypar.json

Nested dissection (George 1973, by METIS) numbers all neurons, directions ignored; targets follow each other by that
number. Mt-KaHyPar (Gottesbueren et al. 2024) cuts the targets of each depth into parts; a source is a net over those it
feeds, so the connectivity that it lowers counts how often sources are read. Parts follow each other, inside a part
sources stream past its targets. Each tries both ways to walk what it made, target by target and source by source, and
of parts a few sizes, and keeps the best. Held and Karp (1962): dynamic programming over subsets of a row's entries.
"""

import argparse
import heapq
import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from check import count

PARTS = (0.4, 0.7, 1.0)  # targets of a part, of the M - 3 values that partial sums may fill
LONGEST_ROW = 12  # of held-karp: 2^12 sets
IMBALANCE, SEED = 0.03, 1  # what Mt-KaHyPar's documentation uses

Task = dict[str, Any]


def by_targets(task: Task, key: list[Any]) -> list[int]:
    """Return the order target by target, of those whose sources are complete the one with the least key first."""
    into: list[list[int]] = [[] for _ in key]
    feeds: list[list[int]] = [[] for _ in key]
    for k, (a, b) in enumerate(task["connections"]):
        into[b].append(k)
        feeds[a].append(b)
    missing = [len(edges) for edges in into]
    ready, order = list[tuple[Any, int]](), list[int]()

    def complete(neuron: int) -> None:
        for b in feeds[neuron]:
            missing[b] -= 1
            if not missing[b]:
                heapq.heappush(ready, (key[b], b))

    for neuron in [v for v, edges in enumerate(into) if not edges]:
        complete(neuron)
    while ready:
        _, target = heapq.heappop(ready)
        order += sorted(into[target], key=lambda k: key[task["connections"][k][0]])
        complete(target)
    return order


def depths(task: Task) -> list[int]:
    """Return the longest path into each neuron."""
    depth = [0] * task["n_neurons"]
    for k in by_targets(task, depth):
        a, b = task["connections"][k]
        depth[b] = max(depth[b], depth[a] + 1)
    return depth


def nested_dissection(task: Task) -> Iterator[list[int]]:
    """Yield the orders by METIS's numbering of the neurons, upwards and downwards."""
    import pymetis

    near: list[set[int]] = [set() for _ in range(task["n_neurons"])]
    for a, b in task["connections"]:
        near[a].add(b)
        near[b].add(a)
    number = pymetis.nested_dissection(adjacency=[sorted(one) for one in near])[1]
    for sign in (1, -1):
        yield by_targets(task, [sign * k for k in number])


def mt_kahypar(task: Task) -> Iterator[list[int]]:
    """Yield the orders part by part, by sizes of parts and both ways inside a part."""
    import mtkahypar

    library = mtkahypar.initialize(1)
    mtkahypar.set_seed(SEED)
    depth, pairs = depths(task), task["connections"]
    for share in PARTS:
        part = [0] * task["n_neurons"]
        for level in range(1, max(depth) + 1):
            targets = [v for v, at in enumerate(depth) if at == level]
            place = {v: k for k, v in enumerate(targets)}
            nets: dict[int, list[int]] = {}
            for a, b in pairs:
                if depth[b] == level:
                    nets.setdefault(a, []).append(place[b])
            number = -(-len(targets) // max(1, round(share * (task["memory"] - 3))))
            if 1 < number < len(targets):
                context = library.context_from_preset(mtkahypar.PresetType.DETERMINISTIC)
                context.set_partitioning_parameters(number, IMBALANCE, mtkahypar.Objective.KM1)
                context.logging = False
                graph = library.create_hypergraph(context, len(targets), len(nets), list(nets.values()))
                blocks = graph.partition(context).get_partition()
            else:
                blocks = range(len(targets)) if number > 1 else [0] * len(targets)
            for v, block in zip(targets, blocks, strict=True):
                part[v] = block
        for inside in (0, 1):  # of a pair (source, target), by which connections of a part are sorted first
            yield sorted(range(len(pairs)), key=lambda k: (depth[t := pairs[k][1]], part[t], pairs[k][inside], t))


def held_karp(task: Task) -> Iterator[list[int]]:
    """Yield an order of least ones: for each set of a row's entries and the last of them the best way to send these."""
    entries = task["entries"]
    rows: dict[int, set[int]] = {}
    for k, (row, _, _) in enumerate(entries):
        rows.setdefault(row, set()).add(k)
    if max(map(len, rows.values())) > LONGEST_ROW:
        return

    @cache
    def sent(last: int, k: int) -> int:
        words = entries[k][1:] if last < 0 else (entries[k][j] ^ entries[last][j] for j in (1, 2))
        weights = [byte.bit_count() for word in words for byte in divmod(word, 256)]
        return sum(min(weight, 9 - weight) for weight in weights)

    states: dict[Any, tuple[int, tuple[int, ...]]] = {(frozenset(), -1): (0, ())}
    for slot, (row, _, _) in enumerate(entries):
        longer: dict[Any, tuple[int, tuple[int, ...]]] = {}
        for (done, last), (cost, order) in states.items():
            for k in rows[row] - done:
                total = cost + sent(last if slot % 16 else -1, k)
                state = (done & rows[row] | {k}, k)
                if state not in longer or total < longer[state][0]:
                    longer[state] = total, (*order, k)
        states = longer
    yield list(min(states.values())[1])


METHODS: dict[str, tuple[str, Callable[[Task], Iterator[list[int]]]]] = {
    "held-karp": ("entries", held_karp),
    "nested-dissection": ("connections", nested_dissection),
    "mt-kahypar": ("connections", mt_kahypar),
}


def main() -> None:
    """Answer every task of a folder that a method is for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("answers", type=Path)
    given = parser.parse_args()
    given.answers.mkdir(parents=True, exist_ok=True)
    things, method = METHODS[given.method]
    for path in sorted(given.tasks.glob("*.json")):
        task = json.loads(path.read_text())
        began = time.process_time()
        orders = list(method(task)) if things in task else []
        seconds = time.process_time() - began
        if orders:
            cost, order = min((count(task, order), order) for order in orders)
            answer = {"order": order, "seconds": seconds, "floor": cost if method is held_karp else None}
            (given.answers / path.name).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
