"""Feinberg et al. 2020, Figure 11 and section IV-C: what the search takes, and whether metaheuristics beat descent.

Rows of the synthetic fc7 layer, 369 tuples each. The paper gives every metaheuristic a day; here each stops after a
number of improvements, so that the result is the same on every machine.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import papers.stand_ins.routing  # noqa: F401 (registers the paper's methods)
from papers.stand_ins.cdr_layers import STRIDES, change, layer, ordered
from papers.study import STUDIES, Done, Drawing, Job, Study, StudyTable

SEARCHES = ("guided-local-search", "simulated-annealing", "tabu-search")
ROWS, SOLUTIONS = 8, 60


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a stride, and one a row for the metaheuristics."""
    rows = range(8 if full else 5)
    solutions = 20 * SOLUTIONS if full else SOLUTIONS
    return [{"stride": s} for s in STRIDES] + [{"row": k, "solutions": solutions} for k in rows]


def compute(job: Job) -> dict[str, Any]:
    """Time the searches of a stride, or compare the metaheuristics on a row."""
    matrix = layer("synthetic fc7").matrix
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


def tables(done: Done) -> list[StudyTable]:
    """Return the figure and the comparison."""
    timed = [(job["stride"], r) for job, r in done if "stride" in job]
    rows = [(s, f"{1e3 * r['ours_s'] / ROWS:.1f}", f"{1e3 * r['or_tools_s'] / ROWS:.1f}", r["ours"], r["or_tools"])
            for s, r in timed]  # fmt: skip
    compared = [
        (job["row"], r["greedy-descent"], *(change(r[s], r["greedy-descent"]) for s in (*SEARCHES, "ours")))
        for job, r in done if "row" in job
    ]  # fmt: skip
    return [
        StudyTable(
            f"Figure 11: milliseconds of CPU time a row, and the ones of {ROWS} rows",
            ("stride", "ours", "OR-Tools", "ones, ours", "ones, OR-Tools"),
            rows,
            Drawing(
                "11",
                "stride",
                "milliseconds a row",
                [
                    ("", s, name, 1e3 * r[key] / ROWS)
                    for s, r in timed
                    for name, key in (("OR-Tools", "or_tools_s"), ("ours", "ours_s"))
                    if r[key]
                ],
                log="xy",
            ),
        ),
        StudyTable(
            "Section IV-C: ones of OR-Tools' metaheuristics against its greedy descent, stride 128",
            ("row", "greedy descent", *SEARCHES, "ours"),
            compared,
        ),
    ]


def _metaheuristics(done: Done) -> tuple[str, str]:
    rows = [r for job, r in done if "row" in job]
    if not rows:
        return "not run", ""
    words = []
    for search in SEARCHES:
        gains = [100 * (1 - r[search] / r["greedy-descent"]) for r in rows]
        words.append(f"{search} {np.mean(gains):.2f} % on average, {max(gains):.2f} % at most")
    ours = [100 * (1 - r["ours"] / r["greedy-descent"]) for r in rows]
    return "; ".join(words), f"{np.mean(ours):.2f} % on average, {max(ours):.2f} % at most"


def _time(done: Done) -> tuple[str, str]:
    rows = {job["stride"]: r for job, r in done if "stride" in job}
    if not rows:
        return "not run", ""
    last = rows[max(rows)]
    return f"{last['or_tools_s'] / ROWS:.2f} s a row at stride {max(rows)}", f"{last['ours_s'] / ROWS:.3f} s"


STUDIES.register("cdr-search", summary="Figure 11 and section IV-C: time of the search, and metaheuristics")(
    Study(jobs, compute, tables, {"metaheuristics": _metaheuristics, "time": _time})
)
