"""Ahn et al. 2020, Table 2: what dividing the graph and budgeting the memory save of the search."""

from __future__ import annotations

import time
from typing import Any

import edgewatt as ew
from edgewatt.papers.serenity_graphs import available, graph_of, settings
from edgewatt.papers.study import STUDIES, Done, Job, Study, Table


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a row of the table; none without the reference data, which holds SwiftNet."""
    table = settings()["table2"]
    return [{"row": k} for k in range(len(table["rows"]))] if available(table) else []


def compute(job: Job) -> dict[str, Any]:
    """The published algorithm with parts of it switched off, and best-first search beside it."""
    table = settings()["table2"]
    row = table["rows"][job["row"]]
    graph = ew.rewrite_graph(graph_of(table), row["rewrite"])
    start = time.thread_time()
    found = ew.schedule(graph, method="serenity", divide=row["divide"], budget=row["budget"])
    seconds = time.thread_time() - start
    best = ew.schedule(graph)
    parts = [part["operators"] - (k > 0) for k, part in enumerate(found.details["parts"])]
    return {
        "nodes": f"{graph.n_nodes} = {{{', '.join(map(str, parts))}}}",
        "states": found.states, "seconds": seconds, "proved": found.proved,
        "best_states": best.states, "best_seconds": time.thread_time() - start - seconds,
        "optimal": found.peak_bytes == best.peak_bytes,
    }  # fmt: skip


def tables(done: Done) -> list[Table]:
    """Return Table 2 with the paper's columns."""
    rows = []
    for job, result in done:
        row = settings()["table2"]["rows"][job["row"]]
        marks = ("yes" if row[key] else "no" for key in ("rewrite", "divide", "budget"))
        theirs = "no end seen" if row["paper_seconds"] is None else f"{row['paper_seconds']:,} s"
        rows.append((
            *marks, row["paper_nodes"], theirs, result["nodes"], f"{1e3 * result['seconds']:.1f} ms", result["states"],
            f"{1e3 * result['best_seconds']:.1f} ms", result["best_states"],
        ))  # fmt: skip
    heads = (
        "rewritten", "divided", "budgeted", "nodes, paper", "paper", "nodes, ours", "the same here", "states",
        "best-first, whole", "states",
    )  # fmt: skip
    return [Table("Table 2: SwiftNet", heads, rows)]


def _row(done: Done, rewrite: bool, divide: bool, budget: bool) -> Any:
    for job, result in done:
        row = settings()["table2"]["rows"][job["row"]]
        if (bool(row["rewrite"]), row["divide"], row["budget"]) == (rewrite, divide, budget):
            return result
    return None


def _budget_saves(rewrite: bool) -> Any:
    def words(done: Done) -> tuple[str, str]:
        without, with_ = _row(done, rewrite, True, False), _row(done, rewrite, True, True)
        if without is None or with_ is None:
            return "needs the reference data", ""
        ratio = without["states"] / with_["states"]
        ours = f"best-first on the whole graph: {with_['best_states']:,} states, {1e3 * with_['best_seconds']:.1f} ms"
        return f"{ratio:.1f} times fewer states ({without['states']:,} and {with_['states']:,})", ours

    return words


STUDIES.register("serenity-search", summary="Table 2: the search for a schedule, with its parts switched off")(
    Study(jobs, compute, tables, {"budget": _budget_saves(False), "budget-rewritten": _budget_saves(True)})
)
