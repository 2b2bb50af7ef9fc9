"""Ahn et al. 2020, Figures 3 and 12a: peaks of all orders of a cell, and arenas of those of least peak.

Peaks are counted exactly, over the sets of operators that an order can have behind it: each keeps the orders that lead
to it by the greatest memory on the way. Figure 12a's arenas are looked up among orders of least peak drawn alike.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, cast

import edgewatt as ew
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies.serenity_memory import ALLOCATOR, IMAGE, MODEL, REWRITE, folded, names, swiftnet
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.operator_problem import footprint
from traces.operators.opgraph import OpGraph

CELLS = ("SwiftNet cell A", "SwiftNet cell C", "DARTS normal cell", "RandWire WS32 seed 0")
DRAWN = 1000
ORDERS = ("file", "kahn-fifo")  # of the whole network, not scheduled
CASES: dict[str, list[str]] = {"scheduled": [], "rewritten": REWRITE}
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
Ways = dict[int, tuple[int, float]]  # bytes at the peak so far -> orders that lead there, and their weight when drawn


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a cell, and one a part of Figure 12 and Table 1; those of SwiftNet's model only where it is."""
    planned: list[dict[str, Any]] = [{"graph": name} for name in CELLS if name in names(full)]
    if CELLS[0] in names(full):
        planned += [{"arenas": case, "drawn": DRAWN, "seed": 1} for case in CASES]
        planned += [{"live": case} for case in CASES]
        planned += [{"counted": MODEL}, {"whole": MODEL}]
    return planned


def compute(job: Job) -> dict[str, Any]:
    """Count the orders of the cell with its concatenations folded, as the paper's node counts have them."""
    if "whole" in job:
        held = (graph := swiftnet(), graph.with_(outputs=(*graph.outputs, IMAGE)))  # its image dropped, and to the end
        sizes = {m: [ew.schedule(g, method=m, allocator=ALLOCATOR).arena_bytes for g in held] for m in ORDERS}
        return {"arenas": sizes}
    if "arenas" in job:
        return _arenas(job)
    if "live" in job:
        graph = _cell_a(job["live"])
        return {"live": [int(size) for size in footprint(graph, ew.schedule(graph).order).during_bytes]}
    if "counted" in job:
        return count_products(swiftnet())
    graph = folded(job["graph"])
    orders, peaks = count_orders(graph)
    return {"operators": graph.n_nodes, "orders": str(orders), "peaks": [[p, *s] for p, s in sorted(peaks.items())]}


def count_orders(graph: OpGraph) -> tuple[int, dict[int, tuple[float, float]]]:
    """Return the number of orders, and by bytes at the peak the share of them, every order alike and drawn."""
    live = LiveBytes(graph)
    reached: dict[int, Ways] = {0: {0: (1, 1.0)}}
    for _ in range(graph.n_nodes):
        then: dict[int, Ways] = {}
        for done, ways in reached.items():
            ready = live.ready(done)
            for v, now in ready:
                into = then.setdefault(done | 1 << v, {})
                for peak, (orders, weight) in ways.items():
                    here = into.get(max(peak, now), (0, 0.0))
                    into[max(peak, now)] = here[0] + orders, here[1] + weight / len(ready)
        reached = then
    (ways,) = reached.values()
    total = sum(orders for orders, _ in ways.values())
    return total, {peak: (orders / total, weight) for peak, (orders, weight) in ways.items()}


class LiveBytes:
    """Live bytes while an operator runs, by the set of operators done before it."""

    def __init__(self, graph: OpGraph) -> None:
        self.before = [sum(1 << u for u in graph.predecessors[v]) for v in range(graph.n_nodes)]
        number = {buffer: k for k, buffer in enumerate(graph.buffers)}
        of_tensor = {t.name: number[t.buffer] for node in graph.nodes for t in node.outputs}
        self.sizes = graph.buffer_bytes.tolist()
        self.writers, self.users = [0] * len(number), [0] * len(number)
        self.written = [{number[t.buffer] for t in node.outputs} for node in graph.nodes]
        for v, node in enumerate(graph.nodes):
            for k in self.written[v]:
                self.writers[k] |= 1 << v
            for k in self.written[v] | {of_tensor[name] for name in node.inputs}:
                self.users[k] |= 1 << v
        self.kept = {number[buffer] for buffer in graph.output_buffers}

    def ready(self, done: int) -> list[tuple[int, int]]:
        """Return the operators that may run next, each with the bytes alive while it does."""
        begun = (k for k, writers in enumerate(self.writers) if writers & done)
        live = {k for k in begun if k in self.kept or self.users[k] & ~done}
        ready = (v for v, before in enumerate(self.before) if not done >> v & 1 and not before & ~done)
        return [(v, sum(self.sizes[k] for k in live | self.written[v])) for v in ready]


def _cell_a(case: str) -> OpGraph:
    return cast(OpGraph, ew.operators.rewrite_graph(folded(CELLS[0]), CASES[case]))


def _arenas(job: Job) -> dict[str, Any]:
    """Count the arenas of orders of least peak of cell A."""
    graph = _cell_a(job["arenas"])
    peak = ew.schedule(graph).peak_bytes
    total, drawn = least_orders(graph, peak, job["drawn"], job["seed"])
    arenas = Counter(arena(graph, order, ALLOCATOR).height for order in drawn)
    return {"peak": peak, "orders": str(total), "arenas": [[size, n] for size, n in sorted(arenas.items())]}


def count_products(graph: OpGraph) -> dict[str, int]:
    """Count the multiply-adds and weights of a model, and the elements that all but concatenations write."""
    counts = Counter[str]()
    for node in graph.nodes:
        written = sum(prod(tensor.shape) for tensor in node.outputs)
        if node.op in WEIGHTED:
            weights, *biases = (graph.constants[name].size for name in node.constants)
            counts["weights"] += weights
            counts["biases"] += sum(biases)
            counts["multiply_adds"] += weights * (written // node.outputs[0].shape[-1])
        counts["written"] += written if node.inputs and node.op != "CONCATENATION" else 0
    return dict(counts)


def least_orders(graph: OpGraph, peak: int, n: int, seed: int) -> tuple[int, Iterator[list[int]]]:
    """Return how many orders need at most `peak` bytes, and n of them, each drawn as likely as any other."""
    live, reached = LiveBytes(graph), {0}
    levels: list[dict[int, list[int]]] = []  # sets of operators done -> what may run next
    for _ in range(graph.n_nodes):
        levels.append({done: [v for v, now in live.ready(done) if now <= peak] for done in reached})
        reached = {done | 1 << v for done, ready in levels[-1].items() for v in ready}
    ways = {(1 << graph.n_nodes) - 1: 1}
    for level in reversed(levels):
        ways |= {done: sum(ways.get(done | 1 << v, 0) for v in ready) for done, ready in level.items()}

    def drawn() -> Iterator[list[int]]:
        random_ = random.Random(seed)
        for _ in range(n):
            done, order = 0, []
            for level in levels:
                weights = [ways.get(done | 1 << v, 0) for v in level[done]]
                (v,) = random_.choices(level[done], weights)
                order.append(v)
                done |= 1 << v
            yield order

    return ways[0], drawn()


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """Rows of Figure 3 (cumulative shares by peak, per cent), of the arenas, of the bytes alive, and of Table 1."""
    if "graph" in job:
        found, alike, drawn = [], 0.0, 0.0
        for peak, *shares in result["peaks"]:
            alike, drawn = alike + 100 * shares[0], drawn + 100 * shares[1]
            row = {"every order alike": alike, "drawn step by step": drawn, "operators": result["operators"]}
            found.append({**job, "peak": peak, "orders": float(result["orders"]), **row})
        return found
    if "arenas" in job:
        return [{**job, "arena": size, "share": 100 * n / job["drawn"], "orders": float(result["orders"])}
                for size, n in result["arenas"]]  # fmt: skip
    if "live" in job:
        return [{**job, "operators_run": k, "bytes": size} for k, size in enumerate(result["live"], 1)]
    if "counted" in job:
        return [{**job, **result}]
    return [{**job, "order": method, "image dropped": sizes[0], "image held": sizes[1]}
            for method, sizes in result["arenas"].items()]  # fmt: skip


FIGURES = [
    Figure(
        "serenity-orders", "ahn-2020", "3, 12, Table 1",
        "Figures 3 and 12: the peaks of all orders of a cell, their arenas",
        "Cells with their concatenations folded, every order counted; 1,000 orders of least peak of SwiftNet cell A, "
        "drawn alike. The paper does not say how its schedules are drawn: every order alike, and each ready operator "
        "alike, are tried. Nor does it say which of its orders of least peak it lays out, or which buffers count for "
        "TensorFlow Lite.",
        jobs, compute, rows,
        (Chart("3", "peak", ("every order alike", "drawn step by step"), "% of the orders at most", panel="graph"),
         Chart("12b", "operators_run", ("bytes",), "bytes of activations alive", series="live"),
         Table("Figure 12a: arenas of orders of least peak", ("arenas", "arena"), ("share", "orders")),
         Table("Figure 12a: the whole network, not scheduled", ("order",), ("image dropped", "image held")),
         Table("Table 1", ("counted",), ("multiply_adds", "written", "weights", "biases"))),
        (0.25, 0.25), version=2,
    )
]  # fmt: skip
