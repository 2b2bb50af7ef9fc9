"""Ahn et al. 2020, Figures 10 to 13: peak memory, off-chip traffic and scheduling time, cell by cell."""

from __future__ import annotations

import time
from typing import Any

import edgewatt as ew
from papers.stand_ins.serenity_graphs import available, graph_of, mean, settings
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable

CELL_A = "SwiftNet cell A"
NOT_HERE = "needs the reference data"
PAPERS_ALLOCATOR = "linear"  # that of TensorFlow Lite when the paper was written


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a graph; those of the reference data only where they are, the largest with `full`."""
    wanted = (entry for entry in settings()["graphs"] if full or not entry.get("full"))
    return [{"graph": entry["name"]} for entry in wanted if available(entry)]


def compute(job: Job) -> dict[str, Any]:
    """Kahn's order on the graph as it comes; scheduled with concatenations folded; rewritten and scheduled."""
    config = settings()
    entry = next(entry for entry in config["graphs"] if entry["name"] == job["graph"])
    given = graph_of(entry)
    folded = ew.rewrite_graph(given, "fold-concat")
    blocks, evaluations = config["block_bytes"], config["evaluations"]
    kahn = ew.schedule(given, method="kahn-fifo", allocator=PAPERS_ALLOCATOR)
    row: dict[str, Any] = {
        "own": bool(entry.get("own")),
        "kahn": {"peak": kahn.peak_bytes, "arena": kahn.arena_bytes, "traffic": {}},
        "operators": [given.n_nodes, folded.n_nodes],
    }
    for kib in config["onchip_kib"]:
        row["kahn"]["traffic"][str(kib)] = ew.offchip_traffic(
            given, kahn.order, onchip_bytes=1024 * kib, block_bytes=blocks
        ).total_bytes
    for key, graph in (("scheduled", folded), ("rewritten", ew.rewrite_graph(folded, config["rewrite"]))):
        if key == "rewritten" and graph.n_nodes == folded.n_nodes:
            row[key] = row["scheduled"]  # nothing to rewrite
            continue
        best, seconds = _timed(graph, allocator=PAPERS_ALLOCATOR)
        published, published_seconds = _timed(graph, method="serenity", allocator=PAPERS_ALLOCATOR)
        placed = ew.schedule(graph, objective="arena", evaluations=evaluations, allocator=PAPERS_ALLOCATOR)
        row[key] = {
            "operators": graph.n_nodes, "peak": best.peak_bytes, "proved": best.proved, "states": best.states,
            "arena": published.arena_bytes, "order_arena": best.arena_bytes, "least_arena": placed.arena_bytes,
            "seconds": seconds, "published_seconds": published_seconds, "traffic": {}, "minimised": {},
        }  # fmt: skip
        for kib in config["onchip_kib"]:
            size: dict[str, Any] = {"onchip_bytes": 1024 * kib, "block_bytes": blocks}
            row[key]["traffic"][str(kib)] = ew.offchip_traffic(graph, best.order, **size).total_bytes
            minimised = ew.schedule(graph, objective="traffic", evaluations=evaluations, **size)
            row[key]["minimised"][str(kib)] = minimised.traffic_bytes
    return row


def _timed(graph: Any, **options: Any) -> tuple[Any, float]:
    start = time.thread_time()
    return ew.schedule(graph, **options), time.thread_time() - start


def _reduction(row: Any, key: str, what: str = "arena") -> float:
    return float(row["kahn"]["arena"] / row[key][what])


def tables(done: Done) -> list[StudyTable]:
    """Return a table a figure."""
    config, rows = settings(), [(str(job["graph"]), result) for job, result in done]
    memory = [
        (name, f"{r['operators'][0]} -> {r['scheduled']['operators']} -> {r['rewritten']['operators']}",
         r["kahn"]["arena"], r["scheduled"]["arena"], r["rewritten"]["arena"],
         r["scheduled"]["order_arena"], r["rewritten"]["order_arena"],
         f"{_reduction(r, 'scheduled'):.2f}", f"{_reduction(r, 'rewritten'):.2f}",
         r["scheduled"]["least_arena"], r["rewritten"]["least_arena"])
        for name, r in rows
    ]  # fmt: skip
    traffic = [
        (name, kib, r["kahn"]["traffic"][str(kib)], r["scheduled"]["traffic"][str(kib)],
         r["scheduled"]["minimised"][str(kib)], r["rewritten"]["minimised"][str(kib)])
        for name, r in rows for kib in config["onchip_kib"] if r["kahn"]["traffic"][str(kib)]
    ]  # fmt: skip
    times = [
        (name, *(f"{1e3 * r[key][what]:.1f}" for key in ("scheduled", "rewritten")
                 for what in ("seconds", "published_seconds")), r["scheduled"]["states"], r["rewritten"]["states"])
        for name, r in rows
    ]  # fmt: skip
    return [
        StudyTable(
            "Figure 10: bytes of the arena (operators as given, folded, rewritten)",
            (
                "graph", "operators", "Kahn", "SERENITY's order", "rewritten", "best-first's order", "rewritten",
                "times less", "rewritten, times less",
                "least arena found", "rewritten",
            ),
            memory,
            Drawing("10", "graph", "times less memory than Kahn's order", [
                ("", name, word, _reduction(r, key))
                for name, r in rows for word, key in (("scheduled", "scheduled"), ("and rewritten", "rewritten"))
            ], bars=True),
        ),
        StudyTable(
            f"Figure 11: off-chip bytes in blocks of {config['block_bytes']}",
            ("graph", "on-chip KiB", "Kahn", "least peak", "traffic minimised", "rewritten, minimised"),
            traffic,
            Drawing("11", "on-chip KiB", "off-chip bytes over those of Kahn's order", [
                ("", kib, name, r["scheduled"]["traffic"][str(kib)] / r["kahn"]["traffic"][str(kib)])
                for name, r in rows for kib in config["onchip_kib"] if r["kahn"]["traffic"][str(kib)]
            ], log="x"),
        ),
        StudyTable(
            "Figure 13: scheduling, milliseconds of CPU time",
            (
                "graph", "best-first", "SERENITY's", "rewritten: best-first", "SERENITY's", "states", "rewritten",
            ),
            times,
            Drawing("13", "graph", "milliseconds", [
                ("rewritten" if key == "rewritten" else "as given", name, word, 1e3 * r[key][what])
                for name, r in rows for key in ("scheduled", "rewritten")
                for word, what in (("SERENITY's", "published_seconds"), ("best-first", "seconds"))
            ], bars=True),
        ),
    ]  # fmt: skip


def _means(done: Done, key: str) -> tuple[str, str]:
    """Means over the cells of the paper's own kinds: its method's, and of the least arenas found."""
    own = [r for _, r in done if r["own"]]
    theirs, ours = (mean([_reduction(r, key, what) for r in own]) for what in ("arena", "least_arena"))
    return f"{theirs:.2f} times over {len(own)} cells of the paper's networks", f"{ours:.2f} times"


def _scheduled(done: Done) -> tuple[str, str]:
    return _means(done, "scheduled")


def _rewritten(done: Done) -> tuple[str, str]:
    return _means(done, "rewritten")


def _extra(done: Done) -> tuple[str, str]:
    def share(what: str) -> str:
        ratios = [r["scheduled"][what] / r["rewritten"][what] for _, r in done if r["own"]]
        return f"{100 * (1 - 1 / mean(ratios)):.1f} %"

    return share("arena"), share("least_arena")


def _traffic(done: Done) -> tuple[str, str]:
    at = str(settings()["onchip_kib"][-1])

    def words(rows: list[Any], key: str) -> str:
        pairs = [(r["kahn"]["traffic"][at], r["scheduled"][key][at]) for r in rows]
        left = [before / after for before, after in pairs if before and after]
        gone = sum(1 for before, after in pairs if before and not after)
        return f"{mean(left):.2f} times over {len(left)} graphs with traffic left, gone in {gone}"

    return words([r for _, r in done if r["own"]], "traffic"), words([r for _, r in done], "minimised")


def _peak(key: str) -> Any:
    def words(done: Done) -> tuple[str, str]:
        results = [r for job, r in done if job["graph"] == CELL_A]
        return (f"{results[0][key]['peak']:,} B", "") if results else (NOT_HERE, NOT_HERE)

    return words


def _times(done: Done) -> tuple[str, str]:
    def words(what: str) -> str:
        seconds = [[r[key][what] for _, r in done] for key in ("scheduled", "rewritten")]
        return " and ".join(f"{1e3 * sum(s) / len(s):.0f} ms" for s in seconds) + " on average (rewritten)"

    return words("published_seconds"), words("seconds")


STUDIES.register("serenity-memory", summary="Figures 10 to 13: memory, traffic and time of schedules")(
    Study(
        jobs,
        compute,
        tables,
        {
            "scheduled": _scheduled,
            "rewritten": _rewritten,
            "extra": _extra,
            "traffic": _traffic,
            "scheduled-peak": _peak("scheduled"),
            "rewritten-peak": _peak("rewritten"),
            "times": _times,
        },
        version=2,  # soft budgeting restarts and steps geometrically: other states, times and orders than before
    )
)
