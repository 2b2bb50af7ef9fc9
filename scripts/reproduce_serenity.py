"""Put the figures and tables of Ahn et al. 2020 beside ours: python scripts/reproduce_serenity.py [--json FILE].

Reads configs/papers/schedules/serenity.yaml. Rows from the reference data need EDGEWATT_REFERENCE. Times are of this
thread (time.thread_time), so other work on the machine hardly counts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from edgewatt.operators.orders import load_graph
from reorder.schedule import constructive
from reorder.schedule.arena import arena
from reorder.schedule.operator_problem import OperatorProblem
from reorder.schedule.rewrite import rewrite_graph
from reorder.schedule.schedule import schedule
from reorder.schedule.traffic import offchip_traffic
from traces.base.resources import config_root
from traces.work.opgraph import OpGraph


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the seconds of thread time it took."""
    started = time.thread_time()
    result = work()
    return result, time.thread_time() - started


def graph_of(entry: dict[str, Any]) -> OpGraph | None:
    """Return the graph of an entry, or None where its file is not there."""
    if "generate" in entry:
        return load_graph(entry["generate"])
    folder = os.environ.get("EDGEWATT_REFERENCE")
    path = Path(folder or ".") / "schedule" / entry["file"]
    if not folder or not path.is_file():
        return None
    from traces.readers.opgraph_json import from_dict

    value = json.loads(path.read_text())
    return from_dict({key: value[key] for key in ("name", "nodes", "outputs")}, source=str(path))


def cell_row(entry: dict[str, Any], config: dict[str, Any]) -> dict[str, Any] | None:
    """Figures 10, 11 and 13 for one graph: Kahn's order as it comes, scheduled, rewritten and scheduled."""
    given = graph_of(entry)
    if given is None:
        return None
    kahn = constructive.kahn(OperatorProblem(given))
    folded = rewrite_graph(given, "fold-concat")
    rewritten = rewrite_graph(folded, config["rewrite"])
    row: dict[str, Any] = {
        "name": entry["name"],
        "operators": [given.n_nodes, folded.n_nodes, rewritten.n_nodes],
        "kahn_peak": int(OperatorProblem(given).costs.peak(kahn)),
        "kahn_arena": arena(given, kahn).n_bytes,
    }
    for key, graph in (("scheduled", folded), ("rewritten", rewritten)):
        best, seconds = timed(lambda graph=graph: schedule(graph))
        _, faithful = timed(lambda graph=graph: schedule(graph, method="serenity"))
        placed = schedule(graph, objective="arena", evaluations=config["evaluations"])
        row[key] = {
            "peak": best.peak_bytes,
            "proved": best.proved,
            "arena": placed.arena_bytes,
            "states": best.states,
            "seconds": seconds,
            "serenity_seconds": faithful,
            "traffic": {},
        }
        for kib in config["onchip_kib"]:
            found = schedule(
                graph, objective="traffic", onchip_bytes=1024 * kib, block_bytes=config["block_bytes"],
                evaluations=config["evaluations"],
            )  # fmt: skip
            row[key]["traffic"][kib] = {
                "at_optimal_peak": offchip_traffic(
                    graph, best.order, onchip_bytes=1024 * kib, block_bytes=config["block_bytes"]
                ).total_bytes,
                "minimised": found.traffic_bytes,
            }
    row["kahn_traffic"] = {
        kib: offchip_traffic(given, kahn, onchip_bytes=1024 * kib, block_bytes=config["block_bytes"]).total_bytes
        for kib in config["onchip_kib"]
    }
    return row


def table2(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Table 2: the published algorithm with each part switched on or off, and best-first, unpartitioned, beside it."""
    base = graph_of(config["table2"])
    if base is None:
        return []
    rows = []
    for row in config["table2"]["rows"]:
        graph = rewrite_graph(base, row["rewrite"])
        found, seconds = timed(
            lambda graph=graph, row=row: schedule(graph, method="serenity", divide=row["divide"], budget=row["budget"])
        )
        best, best_seconds = timed(lambda graph=graph: schedule(graph))
        assert found.peak_bytes == best.peak_bytes
        sizes = [part["operators"] - (k > 0) for k, part in enumerate(found.details["parts"])]
        rows.append(
            {
                **row,
                "nodes": f"{graph.n_nodes}={{{','.join(map(str, sizes))}}}",
                "states": found.states,
                "seconds": seconds,
                "best_first_states": best.states,
                "best_first_seconds": best_seconds,
                "peak": found.peak_bytes,
            }
        )
    return rows


def mean(values: list[float]) -> float:
    """Geometric mean of ratios."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def report(cells: list[dict[str, Any]], table: list[dict[str, Any]], config: dict[str, Any]) -> str:
    """Everything as Markdown."""
    paper = config["paper"]
    lines = [f"# {config['title']}", "", "## Figure 10: peak memory with the linear arena, bytes", ""]
    lines += [
        "| graph | operators | Kahn | scheduled | rewritten | reduction | rewritten |",
        "|---|---|---|---|---|---|---|",
    ]
    for c in cells:
        ratios = [c["kahn_arena"] / c[key]["arena"] for key in ("scheduled", "rewritten")]
        lines.append(
            f"| {c['name']} | {c['operators'][1]} -> {c['operators'][2]} | {c['kahn_arena']:,} | "
            f"{c['scheduled']['arena']:,} | {c['rewritten']['arena']:,} | {ratios[0]:.2f} | {ratios[1]:.2f} |"
        )
    ours = [mean([c["kahn_arena"] / c[key]["arena"] for c in cells]) for key in ("scheduled", "rewritten")]
    given = paper["figure10"]
    lines.append(
        f"| geometric mean (paper: mean over its cells) | | | | | {ours[0]:.2f} ({given['reduction_scheduler']}) | "
        f"{ours[1]:.2f} ({given['reduction_rewritten']}) |"
    )
    lines += ["", f"## Figure 11: off-chip traffic in blocks of {config['block_bytes']} bytes", ""]
    lines += [
        "| graph | on-chip KiB | Kahn | least peak | traffic minimised | rewritten, minimised |",
        "|---|---|---|---|---|---|",
    ]
    for c in cells:
        for kib in config["onchip_kib"]:
            before = c["kahn_traffic"][kib]
            if before:
                plain, again = c["scheduled"]["traffic"][kib], c["rewritten"]["traffic"][kib]
                lines.append(
                    f"| {c['name']} | {kib} | {before:,} | {plain['at_optimal_peak']:,} | {plain['minimised']:,} | "
                    f"{again['minimised']:,} |"
                )
    at = config["onchip_kib"][-1]
    some = [(c["kahn_traffic"][at], c["scheduled"]["traffic"][at]["at_optimal_peak"]) for c in cells]
    both = [before / after for before, after in some if before and after]
    gone = sum(1 for before, after in some if before and not after)
    lines += ["", f"At {at} KiB: reduction {mean(both):.2f} over {len(both)} graphs with traffic left (paper "
              f"{paper['figure11']['reduction_at_256_kib']}), removed altogether in {gone}."]  # fmt: skip
    lines += ["", "## Figure 12: SwiftNet cell A", ""]
    cell_a = next((c for c in cells if c["name"] == "SwiftNet cell A"), None)
    if cell_a:
        twelve = paper["figure12"]
        lines += ["| | paper, KB | ours, bytes |", "|---|---|---|"]
        for text, theirs, mine in (
            ("arena, TensorFlow Lite / Kahn", twelve["allocator_kb"]["tensorflow_lite"], cell_a["kahn_arena"]),
            ("arena, scheduled", twelve["allocator_kb"]["scheduler"], cell_a["scheduled"]["arena"]),
            ("arena, rewritten", twelve["allocator_kb"]["rewritten"], cell_a["rewritten"]["arena"]),
            ("footprint, scheduled", twelve["footprint_kb"]["scheduler"], cell_a["scheduled"]["peak"]),
            ("footprint, rewritten", twelve["footprint_kb"]["rewritten"], cell_a["rewritten"]["peak"]),
        ):
            lines.append(f"| {text} | {theirs} | {mine:,} |")
    lines += ["", "## Figure 13: scheduling time, milliseconds of thread time", ""]
    lines += ["| graph | best-first | states | SERENITY's algorithm | rewritten: best-first | states | SERENITY's |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for c in cells:
        a, b = c["scheduled"], c["rewritten"]
        lines.append(
            f"| {c['name']} | {1000 * a['seconds']:.1f} | {a['states']:,} | {1000 * a['serenity_seconds']:.1f} | "
            f"{1000 * b['seconds']:.1f} | {b['states']:,} | {1000 * b['serenity_seconds']:.1f} |"
        )
    thirteen = paper["figure13"]
    lines.append(
        f"\nPaper's means: {thirteen['mean_seconds_scheduler']} s; rewritten {thirteen['mean_seconds_rewritten']} s."
    )
    lines += ["", "## Table 2: SwiftNet", ""]
    lines += [
        "| rewritten | divide | budget | nodes, paper | paper | nodes, ours | SERENITY's | states | best-first, whole |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for row in table:
        theirs = "N/A" if row["paper_seconds"] is None else f"{row['paper_seconds']:,} s"
        marks = ["yes" if value else "no" for value in (row["rewrite"], row["divide"], row["budget"])]
        lines.append(
            f"| {marks[0]} | {marks[1]} | {marks[2]} | {row['paper_nodes']} | {theirs} | {row['nodes']} | "
            f"{1000 * row['seconds']:.1f} ms | {row['states']:,} | {1000 * row['best_first_seconds']:.1f} ms, "
            f"{row['best_first_states']} states |"
        )
    lines += ["", "## What is comparable", "", *(f"- {text}" for text in config["comparable"])]
    lines += ["", "## What is not", "", *(f"- {text}" for text in config["not_comparable"])]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the report; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="also write all numbers as JSON")
    options = parser.parse_args()
    config = yaml.safe_load((config_root() / "papers" / "schedules" / "serenity.yaml").read_text(encoding="utf-8"))
    schedule(load_graph("darts_v2"), method="large")  # load kernels and libraries before the clock runs
    cells = []
    for entry in config["graphs"]:
        row = cell_row(entry, config)
        if row is None:
            sys.stderr.write(f"left out: {entry['name']} (set EDGEWATT_REFERENCE)\n")
        else:
            cells.append(row)
    table = table2(config)
    sys.stdout.write(report(cells, table, config))
    if options.json:
        Path(options.json).write_text(json.dumps({"cells": cells, "table2": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
