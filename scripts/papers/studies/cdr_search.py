"""Feinberg et al. 2020, Figure 11 and section IV-C: what the search takes, and whether metaheuristics beat descent.

Rows of the fc7 layer of AlexNet, 369 tuples each. The paper gives every metaheuristic a day; here each stops after a
number of improvements, so that the result is the same on every machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import papers.routing  # noqa: F401 (registers the paper's method)
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies.cdr_strides import STRIDES, layer, ordered

SEARCHES = ("guided-local-search", "simulated-annealing", "tabu-search")
ROWS, SOLUTIONS = 8, 60


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a stride, and one a row for the metaheuristics."""
    rows, solutions = (range(8), 20 * SOLUTIONS) if full else (range(4), SOLUTIONS)
    return [{"stride": s} for s in STRIDES] + [{"row": k, "solutions": solutions} for k in rows]


def compute(job: Job) -> dict[str, Any]:
    """Time the searches of a stride, or compare the metaheuristics on a row."""
    matrix = layer("an_ip fc7", 32).matrix
    if "stride" in job:
        ours, ones = _timed(matrix[:ROWS], job["stride"])
        theirs, routed = _timed(matrix[:ROWS], job["stride"], method="or-tools-cvrp")
        return {"ours_s": ours, "ours": ones, "or_tools_s": theirs, "or_tools": routed}
    row = matrix[job["row"] : job["row"] + 1]
    ones_by_search = {"greedy-descent": _timed(row, 128, method="or-tools-cvrp")[1], "ours": _timed(row, 128)[1]}
    for search in SEARCHES:
        options = {"method": "or-tools-cvrp", "search": search, "solutions": job["solutions"]}
        ones_by_search[search] = _timed(row, 128, **options)[1]
    return ones_by_search


def _timed(matrix: Any, stride: int, **options: Any) -> tuple[float, int]:
    if "method" in options:
        options["effort"] = 1.0  # belongs to the local search alone
    start = time.process_time()
    order = ordered(matrix, stride, "fp16", **options)
    return time.process_time() - start, int(order.ones)


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row a stride: milliseconds and ones of a row; a row a matrix row: per cent of ones below greedy descent."""
    if "stride" in job:
        each = {"ours": result["ours_s"], "OR-Tools": result["or_tools_s"]}
        ones = {"ones, ours": result["ours"], "ones, OR-Tools": result["or_tools"]}
        return [{**job, **{name: 1e3 * seconds / ROWS for name, seconds in each.items()}, **ones}]
    greedy = result["greedy-descent"]
    return [{**job, "greedy descent": greedy, **{s: 100 * (1 - result[s] / greedy) for s in (*SEARCHES, "ours")}}]


FIGURES = [
    Figure(
        "cdr-search", "feinberg-2020", "11", "Figure 11: time of the search, and section IV-C's metaheuristics",
        "Rows of a layer in fc7's shape, 369 tuples each, fp16. Another OR-Tools version and processor; metaheuristics "
        f"stop after {SOLUTIONS} improvements a row (--full: {20 * SOLUTIONS}), not after a day.",
        jobs, compute, rows,
        (Chart("11", "stride", ("OR-Tools", "ours"), "milliseconds of CPU time a row", log="xy"),
         Table("Ones of the rows", ("stride",), ("ones, ours", "ones, OR-Tools")),
         Table("Section IV-C: % of ones below greedy descent, stride 128", ("row",), (*SEARCHES, "ours"),
               {"stride": None})),
        (3.1, 84), version=2,
    )
]  # fmt: skip
