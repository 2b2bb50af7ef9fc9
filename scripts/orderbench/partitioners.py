"""Partitioners as entries: python scripts/orderbench/partitioners.py METHOD FOLDER -o RESULTS.json

    python scripts/orderbench write tasks
    python scripts/orderbench/partitioners.py nested-dissection tasks -o nd.json    # pip install pymetis
    python scripts/orderbench/partitioners.py mt-kahypar tasks -o mt.json           # pip install mtkahypar

Reads the tasks that `write` made and needs nothing of edgewatt. Nested dissection (George 1973, by METIS) numbers all
neurons, directions ignored; targets follow each other by that number. Mt-KaHyPar (Gottesbueren et al. 2024) cuts the
targets of each depth into parts; a source is a net over those it feeds, so the connectivity that it lowers counts how
often sources are read. Parts follow each other, inside a part sources stream past its targets. Each tries both ways to
walk what it made, target by target and source by source, and of parts a few sizes, and keeps the best.
"""

import argparse
import heapq
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from check import count

PARTS = (0.4, 0.7, 1.0)  # targets of a part, of the M - 3 values that partial sums may fill
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


METHODS: dict[str, Callable[[Task], Iterator[list[int]]]] = {
    "nested-dissection": nested_dissection,
    "mt-kahypar": mt_kahypar,
}


def main() -> None:
    """Order every task of a folder and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    rows = {}
    for path in sorted(given.folder.glob("*.json")):
        task = json.loads(path.read_text())
        network = task["n_neurons"], task["connections"], task["outputs"]
        began = time.process_time()
        orders = list(METHODS[given.method](task))
        seconds = time.process_time() - began
        least = min(count(*network, task["memory"], task["policy"], order) for order in orders)
        rows[task["name"]] = {"io": least, "seconds": round(seconds, 3), "floor": None}
    recipe = f"python scripts/orderbench/partitioners.py {given.method} FOLDER"
    given.output.write_text(json.dumps({"method": given.method, "recipe": recipe, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
