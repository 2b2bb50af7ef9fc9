"""Ahn et al. 2020, Table 2: what dividing the graph and budgeting the memory save of the search.

The paper limits each search step by wall-clock time and does not print the limit; here it is a number of states, and
all of them from 10 to 100,000 are tried.
"""

from __future__ import annotations

import time
from typing import Any

import edgewatt as ew
from papers.stand_ins.serenity_graphs import available, graph_of, settings
from papers.study import STUDIES, Done, Job, Study, StudyTable

PATTERNS = (("channel-wise", "absorb-add"), ("channel-wise", "kernel-wise"))  # other readings of the rewritten graph
LIMITS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 20_000, 100_000)


def jobs(full: bool) -> list[dict[str, Any]]:
    """One job a row of the table; none without the reference data, which holds SwiftNet."""
    table = settings()["table2"]
    if not available(table):
        return []
    limits = [{"limit": limit, "rewrite": rewrite} for rewrite in (False, True) for limit in LIMITS]
    patterns = [{"patterns": list(names)} for names in PATTERNS]
    return [*({"row": k} for k in range(len(table["rows"]))), *limits, *patterns]


def compute(job: Job) -> dict[str, Any]:
    """The published algorithm with parts of it switched off, and best-first search beside it; or with another limit."""
    table = settings()["table2"]
    if "limit" in job:
        return _limited(table, job)
    if "patterns" in job:
        return _patterns(table, job)
    row = table["rows"][job["row"]]
    graph = ew.rewrite_graph(graph_of(table), row["rewrite"])
    start = time.thread_time()
    published = ew.schedule(graph, method="serenity", divide=row["divide"], budget=row["budget"])
    seconds = time.thread_time() - start
    best = ew.schedule(graph)
    return {
        "nodes": _nodes(published),
        "states": published.states, "seconds": seconds,
        "transitions": sum(part["transitions"] for part in published.details["parts"]), "proved": published.proved,
        "best_states": best.states, "best_seconds": time.thread_time() - start - seconds,
        "optimal": published.peak_bytes == best.peak_bytes,
    }  # fmt: skip


def _limited(table: Any, job: Job) -> dict[str, Any]:
    """Divide the graph, without budgets and with them; a step of more states than the limit is out of time."""
    rewrite = next(row["rewrite"] for row in table["rows"] if bool(row["rewrite"]) == job["rewrite"])
    graph = ew.rewrite_graph(graph_of(table), rewrite)
    plain = ew.schedule(graph, method="serenity", divide=True, budget=False)
    budgeted = ew.schedule(graph, method="serenity", divide=True, budget=True, max_level_states=job["limit"])
    totals: dict[str, Any] = {"states": [plain.states, budgeted.states]}
    for what in ("transitions", "seconds"):
        totals[what] = [sum(part[what] for part in run.details["parts"]) for run in (plain, budgeted)]
    totals["last_transitions"] = sum(part["last_transitions"] for part in budgeted.details["parts"])
    return totals


def _patterns(table: Any, job: Job) -> dict[str, Any]:
    """Divided, without budgets and with them, of the graph that other patterns leave."""
    graph = ew.rewrite_graph(graph_of(table), job["patterns"])
    runs = [ew.schedule(graph, method="serenity", divide=True, budget=budget) for budget in (False, True)]
    return {"nodes": _nodes(runs[0]), "states": [run.states for run in runs]}


def _nodes(scheduled: Any) -> str:
    """Operators in all and part by part, each counted once."""
    parts = [part["operators"] - (k > 0) for k, part in enumerate(scheduled.details["parts"])]
    return f"{sum(parts)} = {{{', '.join(map(str, parts))}}}"


def _times(pair: list[float]) -> float:
    return pair[0] / pair[1]


def tables(done: Done) -> list[StudyTable]:
    """Return Table 2 with the paper's columns, and the sweep of the limit."""
    rows = []
    for job, result in done:
        if "row" not in job:
            continue
        row = settings()["table2"]["rows"][job["row"]]
        marks = ("yes" if row[key] else "no" for key in ("rewrite", "divide", "budget"))
        theirs = "no end seen" if row["paper_seconds"] is None else f"{row['paper_seconds']:,} s"
        rows.append((
            *marks, row["paper_nodes"], theirs, result["nodes"], f"{1e3 * result['seconds']:.1f} ms", result["states"],
            result["transitions"],
            f"{1e3 * result['best_seconds']:.1f} ms", result["best_states"],
        ))  # fmt: skip
    heads = (
        "rewritten", "divided", "budgeted", "nodes, paper", "paper", "nodes, ours", "the same here", "states",
        "transitions", "best-first, whole", "states",
    )  # fmt: skip
    swept = [
        ("yes" if job["rewrite"] else "no", job["limit"], r["states"][1], r["transitions"][1],
         f"{1e3 * r['seconds'][1]:.1f} ms", *(f"{_times(r[w]):.1f}" for w in ("states", "transitions", "seconds")),
         f"{r['transitions'][0] / r['last_transitions']:.1f}")
        for job, r in done if "limit" in job
    ]  # fmt: skip
    swept_heads = (
        "rewritten", "limit, states a step", "states", "transitions", "time", "times fewer states", "transitions",
        "time", "transitions of the last budget alone",
    )  # fmt: skip
    return [
        StudyTable("Table 2: SwiftNet", heads, rows),
        StudyTable("Budgets by the limit on a step, against the divided search without them", swept_heads, swept),
        StudyTable(
            "SwiftNet rewritten by other patterns, divided",
            ("patterns", "nodes", "states", "budgeted", "times fewer"),
            [
                (" and ".join(job["patterns"]), r["nodes"], *r["states"], f"{_times(r['states']):.1f}")
                for job, r in done
                if "patterns" in job
            ],
        ),
    ]


def _row(done: Done, rewrite: bool, divide: bool, budget: bool) -> Any:
    for job, result in done:
        if "row" not in job:
            continue
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
        swept = [r for job, r in done if job.get("rewrite") == rewrite]
        other = [(_times(r["states"]), job["patterns"]) for job, r in done if "patterns" in job and rewrite]
        most = [(max(map(_times, (r[w] for r in swept)), default=0.0), w) for w in ("transitions", "seconds")]
        ours = f"best-first on the whole graph: {with_['best_states']:,} states, {1e3 * with_['best_seconds']:.1f} ms"
        words = f"{ratio:.1f} times fewer states ({without['states']:,} and {with_['states']:,})"
        limits = "; ".join(f"{times:.1f} times less in {what}" for times, what in most)
        words += f"; by the limit on a step up to {limits}" if swept else ""
        return words + "".join(
            f"; {times:.1f} times fewer states by {' and '.join(names)}" for times, names in other
        ), ours

    return words


def _whole(done: Done) -> tuple[str, str]:
    """Dynamic programming alone, on the whole graph."""
    parts = [
        f"{result['states']:,} states in {result['seconds']:.1f} s{', rewritten' if rewrite else ''}"
        for rewrite in (False, True)
        if (result := _row(done, rewrite, False, False))
    ]
    return "; ".join(parts) or "needs the reference data", ""


def _parts(done: Done) -> tuple[str, str]:
    parts = [result["nodes"] for rewrite in (False, True) if (result := _row(done, rewrite, True, True))]
    parts += [f"{r['nodes']} by {' and '.join(job['patterns'])}" for job, r in done if "patterns" in job]
    return "; ".join(parts) or "needs the reference data", ""


STUDIES.register("serenity-search", summary="Table 2: the search for a schedule, with its parts switched off")(
    Study(
        jobs,
        compute,
        tables,
        {
            "whole": _whole,
            "parts": _parts,
            "budget": _budget_saves(False),
            "budget-rewritten": _budget_saves(True),
        },
        version=2,
    )
)
