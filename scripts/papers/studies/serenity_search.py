"""Ahn et al. 2020, Table 2: what dividing the graph and budgeting the memory save of the search.

The paper limits each search step by wall-clock time and does not print the limit; here it is a number of states, and
all of them from 10 to 100,000 are tried. Algorithm 2 as printed moves both budgets at once, and where a timeout is
followed by two steps without a solution it lowers a budget that was too low: it is run beside ours.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import edgewatt as ew
from papers.figure import Figure, Job, Row, Table
from papers.studies.serenity_memory import REWRITE, folded, names
from reorder.operators.schedule.schedulers.serenity import PRINTED_STEPS

SWIFTNET = "SwiftNet"
REWRITES = {"no": [], "channel-wise": REWRITE, "and additions": [*REWRITE, "absorb-add"],
            "and kernel-wise": [*REWRITE, "kernel-wise"]}  # fmt: skip
BUDGETS = {"ours": "ours", "printed": "printed", "none": "unbounded"}
LIMITS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 20_000, 100_000)


def jobs(full: bool) -> list[dict[str, Any]]:
    """The rows of the table, other readings of the rewritten graph, and other limits; none without SwiftNet's model."""
    if SWIFTNET not in names(full):
        return []
    planned: list[dict[str, Any]] = [{"rewrite": r, "divide": False, "budget": "none"} for r in ("no", "channel-wise")]
    planned += [{"rewrite": r, "divide": True, "budget": "none"} for r in REWRITES]
    for budget in ("ours", "printed"):
        planned += [{"rewrite": r, "divide": True, "budget": budget, "limit": n} for r in REWRITES
                    for n in (LIMITS if r in ("no", "channel-wise") else (2000,))]  # fmt: skip
    return planned


def compute(job: Job) -> dict[str, Any]:
    """Search with parts of the published algorithm switched off; states, transitions and CPU seconds of this thread."""
    graph = ew.operators.rewrite_graph(folded(SWIFTNET), REWRITES[job["rewrite"]])
    start = time.thread_time()
    limit = {"max_level_states": job["limit"]} if "limit" in job else {}
    done = ew.schedule(graph, method="serenity", divide=job["divide"], soft_budget=BUDGETS[job["budget"]], **limit)
    seconds, parts = time.thread_time() - start, done.details["parts"]
    if job["budget"] == "printed":
        steps = {key: sum(part[key] for part in parts) for key in ("states", "transitions")}
        return {**steps, "ends": all(part["ends"] for part in parts), "seconds": seconds}
    best = ew.schedule(graph)
    return {
        "states": done.states, "transitions": sum(part["transitions"] for part in parts), "seconds": seconds,
        "parts": [part["operators"] - (k > 0) for k, part in enumerate(parts)], "ends": True,
        "best_states": best.states, "optimal": done.peak_bytes == best.peak_bytes,
    }  # fmt: skip


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    parts = result.get("parts", [])
    nodes = f"{sum(parts)} = {{{', '.join(map(str, parts))}}}" if parts else ""
    return [{"limit": 0, **job, **result, "ms": 1e3 * result["seconds"], "nodes": nodes}]


FIGURES = [
    Figure(
        "serenity-search", "ahn-2020", "Table 2", "Table 2: the search with its parts switched off",
        "SwiftNet of the reference data, 62 nodes, 93 after channel-wise rewriting, 90 with additions absorbed too. "
        "States and CPU time of compiled code; a limit in states for the paper's limit in seconds a step. printed: "
        f"Algorithm 2 line by line, given up after {PRINTED_STEPS} budgets a part; ours: restarts from the least peak "
        "that was cut off.",
        jobs, compute, rows,
        (Table("Table 2: SwiftNet", ("rewrite", "divide", "budget", "limit"),
               ("nodes", "states", "transitions", "ms", "best_states", "ends")),),
        (0.2, 0.2), version=3,
    )
]  # fmt: skip
