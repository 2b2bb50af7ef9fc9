"""Ahn et al. 2020, Figures 10 to 13: peak memory, off-chip traffic and scheduling time, cell by cell."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import edgewatt as ew
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies.serenity_graphs import ALLOCATOR, OWN, REWRITE, graph_of, names

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
    traffic = {kib: ew.offchip_traffic(given, kahn.order, **size).total_bytes for kib, size in sizes.items()}
    result: dict[str, Any] = {"kahn": {"peak": kahn.peak_bytes, "arena": kahn.arena_bytes, "traffic": traffic}}
    folded = ew.rewrite_graph(given, "fold-concat")
    for case, graph in zip(CASES, (folded, ew.rewrite_graph(folded, REWRITE)), strict=True):
        if case == "rewritten" and graph.n_nodes == folded.n_nodes:
            result[case] = result["scheduled"]  # nothing to rewrite
            continue
        best, seconds = _timed(graph, allocator=ALLOCATOR)
        published, published_seconds = _timed(graph, method="serenity", allocator=ALLOCATOR)
        placed = ew.schedule(graph, objective="arena", evaluations=EVALUATIONS, allocator=ALLOCATOR)
        result[case] = {
            "operators": graph.n_nodes, "peak": best.peak_bytes, "states": best.states, "seconds": seconds,
            "published_seconds": published_seconds, "arena": published.arena_bytes, "least_arena": placed.arena_bytes,
            "traffic": {k: ew.offchip_traffic(graph, best.order, **s).total_bytes for k, s in sizes.items()},
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
            "graph": job["graph"], "case": case, "own": job["graph"] in OWN, "operators": r["operators"], "peak": r["peak"],
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
        "serenity-memory", "ahn-2020", "10, 11, 12, 13", "Figures 10 to 13: peak memory, off-chip traffic, scheduling "
                                                         "time",
        "Cells as they come (concatenations as operators) in Kahn's order with TensorFlow Lite's allocator of the "
        "time, against schedules with concatenations folded, and rewritten channel-wise. The paper prints no tensor "
        "sizes of its DARTS and RandWire cells; ours are stated in the generators. Traffic in blocks of 256 bytes.",
        jobs, compute, rows,
        (Chart("10", "graph", ("times less",), "times less memory than Kahn's order", series="case", bars=True),
         Chart("11", "KiB", ("least peak",), "off-chip bytes over those of Kahn's order", series="graph", log="x",
               where={"traffic of": "scheduled"}),
         Chart("13", "graph", ("published ms", "best-first ms"), "milliseconds of CPU time", panel="case", bars=True),
         Table("Bytes", ("graph", "case"), ("operators", "peak", "Kahn's arena", "arena", "least arena", "states"))),
        (1.5, 2.4), version=3,
    )
]  # fmt: skip
