"""Ahn et al. 2020, Figures 3 and 12a: peaks of all orders of a cell, and arenas of those of least peak.

Peaks are counted exactly, over the sets of operators that an order can have behind it: each keeps the orders that lead
to it by the greatest memory on the way. The paper does not say how it draws schedules, so two weights are counted:
every order alike, and an order drawn step by step, each ready operator alike.

Many orders have the least peak, and TensorFlow Lite's allocator of the time lays each out in its own way, so Figure
12a's arenas are looked up among orders drawn alike from all of these. Its figure for TensorFlow Lite itself is looked
up on the whole network, the image dropped after its use, and held to the end as that interpreter holds its inputs.

Table 1's multiply-adds and weights are counted in SwiftNet's published model.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, cast

import edgewatt as ew
from papers.stand_ins.serenity_graphs import available, graph_of, settings
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable
from reorder.operators.schedule.arena import arena
from reorder.operators.schedule.operator_problem import footprint
from traces.operators.opgraph import OpGraph

DEVICE_BYTES = 250 * 1024  # the paper's SparkFun Edge
CELLS = ("SwiftNet cell A", "SwiftNet cell C", "DARTS normal cell", "RandWire WS32 seed 0")
WEIGHTS = ("alike", "drawn")
DRAWN = 1000
CASES: dict[str, tuple[str, ...]] = {"scheduled": (), "rewritten": ("channel-wise",)}
WHOLE, IMAGE = "swiftnet_file_86.json", "input:input"
METHODS = {"file": "the file's order", "kahn-fifo": "Kahn's order"}
ALLOCATOR = "linear"  # TensorFlow Lite's when the paper was written
MODEL = "swiftnet_vww_uint8.tflite"
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
Ways = dict[int, tuple[int, float]]  # bytes at the peak so far -> orders that lead there, and their weight when drawn


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a cell, and one a part of Figure 12a; those of the reference data only where they are."""
    planned: list[dict[str, Any]] = [{"graph": name} for name in CELLS if available(_entry(name))]
    if available(_entry(CELLS[0])):
        planned += [{"arenas": case, "drawn": DRAWN, "seed": 1} for case in CASES]
        planned += [{"live": case} for case in CASES]
    planned += [{"counted": MODEL}] if _model().is_file() else []
    return planned + ([{"whole": WHOLE}] if available({"file": WHOLE}) else [])


def _model() -> Path:
    return Path(os.environ.get("EDGEWATT_REFERENCE", ".")) / "models" / MODEL


def _entry(name: str) -> dict[str, Any]:
    return next(entry for entry in settings()["graphs"] if entry["name"] == name)


def compute(job: Job) -> dict[str, Any]:
    """Count the orders of the cell with its concatenations folded, as the paper's node counts have them."""
    if "whole" in job:
        return {"arenas": {method: _whole(job["whole"], method) for method in METHODS}}
    if "arenas" in job:
        return _arenas(job)
    if "live" in job:
        return {"live": _live(job["live"])}
    if "counted" in job:
        return count_products(cast(OpGraph, ew.load(_model())))
    graph = ew.rewrite_graph(graph_of(_entry(job["graph"])), "fold-concat")
    orders, peaks = count_orders(graph)
    return {"operators": graph.n_nodes, "orders": str(orders), "peaks": [[p, *s] for p, s in sorted(peaks.items())]}


def count_orders(graph: OpGraph) -> tuple[int, dict[int, tuple[float, float]]]:
    """Return the number of orders, and by bytes at the peak the share of them, by WEIGHTS."""
    before = [sum(1 << u for u in graph.predecessors[v]) for v in range(graph.n_nodes)]
    memory = LiveBytes(graph)
    reached: dict[int, Ways] = {0: {0: (1, 1.0)}}
    for _ in range(graph.n_nodes):
        then: dict[int, Ways] = {}
        for done, ways in reached.items():
            ready = [v for v in range(graph.n_nodes) if not done >> v & 1 and not before[v] & ~done]
            for v in ready:
                into, now = then.setdefault(done | 1 << v, {}), memory.during(done, v)
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

    def during(self, done: int, v: int) -> int:
        begun = (k for k, writers in enumerate(self.writers) if writers & done)
        live = {k for k in begun if k in self.kept or self.users[k] & ~done}
        return sum(self.sizes[k] for k in live | self.written[v])


def _cell_a(case: str) -> OpGraph:
    graph: OpGraph = ew.rewrite_graph(ew.rewrite_graph(graph_of(_entry(CELLS[0])), "fold-concat"), CASES[case])
    return graph


def _live(case: str) -> list[int]:
    """Return the bytes alive while each operator of the least-peak order of cell A runs."""
    graph = _cell_a(case)
    return [int(size) for size in footprint(graph, ew.schedule(graph).order).during_bytes]


def _arenas(job: Job) -> dict[str, Any]:
    """Count the arenas of orders of least peak of cell A."""
    graph = _cell_a(job["arenas"])
    peak = ew.schedule(graph).peak_bytes
    total, drawn = least_orders(graph, peak, job["drawn"], job["seed"])
    arenas = Counter(arena(graph, order, ALLOCATOR).n_bytes for order in drawn)
    return {"peak": peak, "orders": str(total), "arenas": [[size, n] for size, n in sorted(arenas.items())]}


def _whole(file: str, method: str) -> list[int]:
    """Return the bytes of the arena, the image dropped after its use and held to the end."""
    sizes = []
    for held in ([], [IMAGE]):
        graph = graph_of({"file": file}, held)
        sizes.append(ew.schedule(graph, method=method, allocator=ALLOCATOR).arena_bytes)
    return sizes


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
    nodes = range(graph.n_nodes)
    before, memory = [sum(1 << u for u in graph.predecessors[v]) for v in nodes], LiveBytes(graph)
    levels: list[dict[int, list[int]]] = []  # sets of operators done -> what may run next
    reached = {0}
    for _ in nodes:
        levels.append({
            done: [v for v in nodes if not done >> v & 1 and not before[v] & ~done and memory.during(done, v) <= peak]
            for done in reached
        })  # fmt: skip
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


def _within(result: Any, limit: int) -> list[float]:
    return [sum(row[1 + k] for row in result["peaks"] if row[0] <= limit) for k in range(len(WEIGHTS))]


def tables(done: Done) -> list[StudyTable]:
    """Return the cumulative shares of each cell, and the arenas."""
    result = []
    for job, r in done:
        if "whole" in job:
            rows = [(METHODS[m], *sizes) for m, sizes in r["arenas"].items()]
            title = "Figure 12a: bytes of the arena of the whole network, not scheduled"
            heads: tuple[str, ...] = ("order", "image dropped after its use", "image held to the end")
        elif "arenas" in job:
            rows = [(size, f"{100 * n / job['drawn']:.1f} %") for size, n in r["arenas"]]
            drawn = f"{job['drawn']:,} of {int(r['orders']):,} orders of {r['peak']:,} bytes at the peak"
            title, heads = (
                f"Figure 12a: arenas of {CELLS[0]}, {job['arenas']}: {drawn}",
                ("bytes", "share of the orders"),
            )
        elif "counted" in job:
            title, heads, rows = f"Table 1: {job['counted']}", ("what", "number"), [*r.items()]
        elif "live" in job:
            continue
        else:
            rows = [(peak, *(f"{100 * share:.4f} %" for share in _within(r, peak))) for peak, *_ in r["peaks"]]
            title = f"Figure 3: orders of {job['graph']}, {r['operators']} operators, {int(r['orders']):,} orders"
            heads = ("bytes at most", "every order alike", "drawn step by step")
        result.append(StudyTable(title, heads, rows))
    return [*_figures(done), *result]


def _figures(done: Done) -> list[StudyTable]:
    """Figure 3 of every cell, Figure 12b of cell A."""
    names = ("every order alike", "drawn step by step")
    shares = [
        (job["graph"], peak, name, 100 * share)
        for job, r in done if "graph" in job for peak, *_ in r["peaks"]
        for name, share in zip(names, _within(r, peak), strict=True)
    ]  # fmt: skip
    live = [("", k, job["live"], size) for job, r in done if "live" in job for k, size in enumerate(r["live"], 1)]
    return [
        StudyTable("Figure 3", (), [], Drawing("3", "bytes at the peak", "% of the orders at most", shares)),
        StudyTable("Figure 12b", (), [], Drawing("12b", "operators run", "bytes of activations alive", live)),
    ]


NOT_HERE = "needs the reference data"


def _words(limit: int | None) -> Any:
    def words(done: Done) -> tuple[str, str]:
        results = [r for job, r in done if job.get("graph") == CELLS[0]]
        if not results:
            return NOT_HERE, ""
        alike, drawn = _within(results[0], min(row[0] for row in results[0]["peaks"]) if limit is None else limit)
        return f"{100 * alike:.3g} % of all orders; {100 * drawn:.2g} % drawn step by step", ""

    return words


def _arena(case: str, paper_bytes: int) -> Any:
    def words(done: Done) -> tuple[str, str]:
        for job, r in done:
            if job.get("arenas") == case:
                sizes = dict(r["arenas"])
                share = 100 * sizes.get(paper_bytes, 0) / job["drawn"]
                span = f"{min(sizes):,} to {max(sizes):,} B over all"
                return f"{paper_bytes:,} B in {share:.1f} % of the orders of least peak; {span}", f"{min(sizes):,} B"
        return NOT_HERE, NOT_HERE

    return words


def _tflite(done: Done) -> tuple[str, str]:
    for job, r in done:
        if "whole" in job:
            dropped, held = r["arenas"]["file"]
            return f"{held:,} B in the file's order with the image held; {dropped:,} B without", ""
    return NOT_HERE, NOT_HERE


def _specification(done: Done) -> tuple[str, str]:
    for job, r in done:
        if "counted" in job:
            adds, more = (f"{n / 1e6:.2f} million" for n in (r["multiply_adds"], r["multiply_adds"] + r["written"]))
            each = f"{more} with one for each element written but by concatenations"
            return f"SwiftNet: {adds} multiply-adds ({each}); {r['weights']:,} weights and {r['biases']:,} biases", ""
    return NOT_HERE, ""


def _days(done: Done) -> tuple[str, str]:
    """The orders that a search without memoization goes through, by the operators of the graph."""
    counts = sorted((r["operators"], int(r["orders"]), job["graph"]) for job, r in done if "graph" in job)
    return "; ".join(f"{n:.1e} orders of {k} operators ({name})" for k, n, name in counts) or NOT_HERE, ""


STUDIES.register("serenity-orders", summary="Figures 3 and 12a: peaks of all orders, arenas of those of least peak")(
    Study(
        jobs,
        compute,
        tables,
        {
            "fits": _words(DEVICE_BYTES),
            "least": _words(None),
            "days": _days,
            "specification": _specification,
            "tflite-arena": _tflite,
            "scheduled-arena": _arena("scheduled", 250_880),
            "rewritten-arena": _arena("rewritten", 225_792),
        },
    )
)
