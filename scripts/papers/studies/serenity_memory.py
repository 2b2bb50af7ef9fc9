"""Ahn et al. 2020, Figures 10 to 13: peak memory, off-chip traffic and scheduling time, cell by cell.

SwiftNet comes from its model file, cells of the other networks are generated: the paper prints no tensor sizes of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import edgewatt as ew
from edgewatt.operators.request import load_graph
from papers.figure import Chart, Figure, Job, Row, Table
from traces.operators.opgraph import INPUT, OpGraph

MODEL = "swiftnet_vww_uint8.tflite"
FIRST, IMAGE = "maxpool_pre2/max_pooling2d/MaxPool", "input"
# Cut out of the model: from one tensor, which becomes the input, to another. Folded, A and C have the paper's 21 and 22
# operators, the whole its 62.
CUTS = {
    "SwiftNet cell A": (FIRST, "swiftnet_2_1/activation"),
    "SwiftNet cell C": ("pool_3/max_pooling2d/MaxPool", "swiftnet_4_1/activation"),
    "SwiftNet": (FIRST, "swiftnet_4_1/activation"),
}
GENERATED = {
    "DARTS normal cell": "darts_v2", "NASNet normal cell": "nasnet", "AmoebaNet normal cell": "amoebanet",
    "RandWire WS32 seed 0": "randwire-ws32", "RandWire WS32 seed 2": "randwire-ws32-seed2",
    "RandWire WS32 three stages": "randwire-ws32x3", "RandWire ER32": "randwire-er32", "RandWire BA32": "randwire-ba32",
    "RandWire WS64": "randwire-ws64",
}  # fmt: skip
OWN = ("SwiftNet cell A", "SwiftNet cell C", "DARTS normal cell", *(n for n in GENERATED if "WS32" in n))
"""Cells of the networks that the paper evaluates."""
ONLY_FULL = ("RandWire WS64",)
REWRITE = ["channel-wise"]
"""The pattern of the paper's text (section 3.3); with absorbed additions cell A has its count of 33 nodes."""
ALLOCATOR = "linear"
"""TensorFlow Lite's when the paper was written."""


def model_path() -> Path | None:
    """Return where SwiftNet's model of the reference data lies (EDGEWATT_REFERENCE), None if it is not there."""
    folder = os.environ.get("EDGEWATT_REFERENCE")
    path = Path(folder) / "models" / MODEL if folder else None
    return path if path is not None and path.is_file() else None


def names(full: bool) -> list[str]:
    """Return the graphs that can be had here."""
    cells = list(CUTS) if model_path() else []
    return cells + [name for name in GENERATED if full or name not in ONLY_FULL]


@cache
def swiftnet() -> OpGraph:
    """Return SwiftNet's whole model. Raises InputError without it."""
    path = model_path()
    if path is None:
        raise ew.InputError(f"{MODEL} is not where EDGEWATT_REFERENCE said any more")
    return cast(OpGraph, ew.load(path))


def graph_of(name: str) -> OpGraph:
    """Return a graph of `names`."""
    return load_graph(GENERATED[name]) if name in GENERATED else _between(swiftnet(), *CUTS[name])


def folded(name: str) -> OpGraph:
    """Return it with its concatenations folded, as the paper's counts of nodes have them."""
    return cast(OpGraph, ew.operators.rewrite_graph(graph_of(name), "fold-concat"))


def _between(graph: OpGraph, first: str, last: str) -> OpGraph:
    """Return the operators that `last` needs, up to `first`, which becomes the input."""
    nodes = {node.output.name: node for node in graph.nodes}
    needed, waiting = {first}, [last]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += nodes[name].inputs
    begin = replace(nodes[first], op=INPUT, inputs=(), constants=(), attributes={})
    kept = [begin, *(node for node in graph.nodes if node.output.name in needed - {first})]
    used = {name: graph.constants[name] for node in kept for name in node.constants}
    return graph.with_(nodes=tuple(kept), outputs=(last,), constants=used)


ON_CHIP_KIB = (32, 64, 128, 256)
BLOCK_BYTES, EVALUATIONS = 256, 2000
CASES = ("scheduled", "rewritten")


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a graph; those of the reference data only where they are, the largest with `full`."""
    return [{"graph": name} for name in names(full)]


def compute(job: Job) -> dict[str, Any]:
    """Kahn's order on the graph as it comes; scheduled with concatenations folded; rewritten and scheduled."""
    given = graph_of(job["graph"])
    kahn = ew.schedule(given, method="kahn-fifo", allocator=ALLOCATOR)
    sizes = {str(kib): {"onchip_bytes": 1024 * kib, "block_bytes": BLOCK_BYTES} for kib in ON_CHIP_KIB}
    traffic = {kib: ew.operators.offchip_traffic(given, kahn.order, **size).total_bytes for kib, size in sizes.items()}
    result: dict[str, Any] = {"kahn": {"peak": kahn.peak_bytes, "arena": kahn.arena_bytes, "traffic": traffic}}
    plain = folded(job["graph"])
    for case, graph in zip(CASES, (plain, ew.operators.rewrite_graph(plain, REWRITE)), strict=True):
        if case == "rewritten" and graph.n_nodes == plain.n_nodes:
            result[case] = result["scheduled"]  # nothing to rewrite
            continue
        best, seconds = _timed(graph, allocator=ALLOCATOR)
        published, published_seconds = _timed(graph, method="serenity", allocator=ALLOCATOR)
        placed = ew.schedule(graph, objective="arena", evaluations=EVALUATIONS, allocator=ALLOCATOR)
        result[case] = {
            "operators": graph.n_nodes, "peak": best.peak_bytes, "states": best.states, "seconds": seconds,
            "published_seconds": published_seconds, "arena": published.arena_bytes, "least_arena": placed.arena_bytes,
            "traffic": {k: ew.operators.offchip_traffic(graph, best.order, **s).total_bytes for k, s in sizes.items()},
            "minimised": {
                k: ew.schedule(graph, objective="traffic", evaluations=EVALUATIONS, **s).traffic_bytes
                for k, s in sizes.items()
            },
        }  # fmt: skip
    return result


def _timed(graph: Any, **options: Any) -> tuple[Any, float]:
    start = time.thread_time()
    return ew.schedule(graph, **options), time.thread_time() - start


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row for each case, and in it for each size of the memory on chip."""
    kahn, found = result["kahn"], []
    for case in CASES:
        r = result[case]
        row: Row = {
            "graph": job["graph"], "case": case, "own": job["graph"] in OWN, "operators": r["operators"],
            "peak": r["peak"],
            "Kahn's arena": kahn["arena"], "arena": r["arena"], "least arena": r["least_arena"],
            "times less": kahn["arena"] / r["arena"], "times less, least arena": kahn["arena"] / r["least_arena"],
            "published ms": 1e3 * r["published_seconds"], "best-first ms": 1e3 * r["seconds"], "states": r["states"],
        }  # fmt: skip
        found.append(row)
        for kib, before in kahn["traffic"].items():
            if before:
                after = {"least peak": r["traffic"][kib] / before, "minimised": r["minimised"][kib] / before}
                found.append({"graph": job["graph"], "own": row["own"], "traffic of": case, "KiB": int(kib), **after})
    return found


FIGURES = [
    Figure(
        "serenity-memory", "ahn-2020", "10, 11, 12, 13",
        "Figures 10 to 13: peak memory, off-chip traffic, scheduling time",
        "Cells as they come (concatenations as operators) in Kahn's order with TensorFlow Lite's allocator of the "
        "time, against schedules with concatenations folded, and rewritten channel-wise. The paper prints no tensor "
        "sizes of its DARTS and RandWire cells; ours are stated in the generators. Traffic in blocks of 256 bytes.",
        jobs, compute, rows,
        (Chart("10", "graph", ("times less",), "times less memory than Kahn's order", series="case", bars=True),
         Chart("11", "KiB", ("least peak",), "off-chip bytes over those of Kahn's order", series="graph", log="x",
               where={"traffic of": "scheduled"}),
         Chart("13", "graph", ("published ms", "best-first ms"), "milliseconds of CPU time", panel="case", bars=True),
         Table("Bytes", ("graph", "case"), ("operators", "peak", "Kahn's arena", "arena", "least arena", "states"))),
        (1.9, 2.4), version=3,
    )
]  # fmt: skip
