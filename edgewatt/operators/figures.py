"""Pictures of an operator schedule: memory and addresses over time, random orders, the graph.

After Ahn et al. 2020, Figures 12 and 3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.operators.arena import of_schedule, write_figure
from edgewatt.pages.arena import arena_figure
from reorder.operators.schedule import constructive
from reorder.operators.schedule.operator_problem import OperatorProblem, footprint
from reorder.operators.schedule.schedule import Schedule
from traces.operators.opgraph import OpGraph

Spec = dict[str, Any]

BEFORE, AFTER, KAHN = "file's order", "scheduled", "Kahn's order"
COLOURS = {BEFORE: "#b45309", KAHN: "#6b7280", AFTER: "#1d4ed8"}
_TITLE = {"anchor": "start", "fontWeight": "normal", "frame": "group"}  # of each picture in the figure
RANDOM_ORDERS = 2000
MOST_DRAWN = 400  # operators in the drawing of the graph; beyond it is left out


def draw(original: OpGraph, result: Schedule, path: str | Path, *, seed: int = 0) -> None:
    """Write the figure of a schedule; see `write_figure`. original: the graph before rewriting."""
    write_figure(lambda: figure(original, result, seed=seed), result.graph.name, path)


def figure(original: OpGraph, result: Schedule, *, seed: int = 0) -> Spec:
    """Return the Vega-Lite specification of the whole figure."""
    arena = arena_figure(of_schedule(result))["vconcat"]
    parts = [_memory(original, result), *arena, _distribution(original, result, seed)]
    if result.graph.n_nodes <= MOST_DRAWN:
        parts.append(_graph(result))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": f"{result.graph.name}: {result.graph.n_nodes} operators", "anchor": "start", "fontSize": 15},
        "config": {"view": {"stroke": None}, "axis": {"grid": False}, "font": "sans-serif"},
        "vconcat": parts,
        "resolve": {"scale": {"color": "independent"}},
        "spacing": 28,
    }


def _colour(*shown: str) -> Spec:
    return {
        "field": "order",
        "type": "nominal",
        "scale": {"domain": list(shown), "range": [COLOURS[name] for name in shown]},
        "legend": {"title": None, "orient": "top"},
    }


def _number(field: str, title: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, **more}


def _memory(original: OpGraph, result: Schedule) -> Spec:
    """Live bytes while each operator runs, for the file's order and the schedule; the peak of each is named."""
    rows, peaks = [], []
    for label, graph, order in ((BEFORE, original, None), (AFTER, result.graph, result.order)):
        memory = footprint(graph, order)
        names = [graph.nodes[v].name for v in (range(graph.n_nodes) if order is None else order.tolist())]
        rows += [
            {"order": label, "step": k, "kilobytes": int(live) / 1000, "operator": names[k]}
            for k, live in enumerate(memory.during_bytes)
        ]
        at = int(memory.during_bytes.argmax())
        text = f"{memory.peak_bytes:,} B"
        peaks.append({"order": label, "step": at, "kilobytes": memory.peak_bytes / 1000, "text": text})
    x = _number("step", "step")
    y = _number("kilobytes", "live memory (1000 bytes)")
    return {
        "title": {**_TITLE, "text": "Memory while each operator runs"},
        "width": 620,
        "height": 210,
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": _colour(BEFORE, AFTER),
                    "tooltip": [{"field": f} for f in ("order", "step", "operator", "kilobytes")],
                },
            },
            {
                "data": {"values": peaks},
                "mark": {"type": "text", "align": "left", "dx": 4, "dy": -7, "fontWeight": "bold"},
                "encoding": {"x": x, "y": y, "text": {"field": "text"}, "color": _colour(BEFORE, AFTER)},
            },
        ],
    }


def _distribution(original: OpGraph, result: Schedule, seed: int) -> Spec:
    """Share of random topological orders that need at most so much memory."""
    problem = OperatorProblem(original)
    # 40 million operator steps at most: enough for a smooth curve, a second or two
    count = max(50, min(RANDOM_ORDERS, 40_000_000 // max(1, problem.graph.n_nodes) ** 2))
    peaks = np.sort(constructive.random_peaks(problem, count, seed))
    values = np.unique(peaks)
    last = np.searchsorted(peaks, values, side="right")
    rows = [{"kilobytes": int(p) / 1000, "share": int(k) / count} for p, k in zip(values, last, strict=True)]
    marks = [
        {"order": BEFORE, "kilobytes": footprint(problem).peak_bytes / 1000},
        {"order": KAHN, "kilobytes": int(problem.costs.peak(constructive.kahn(problem))) / 1000},
        {"order": AFTER, "kilobytes": result.peak_bytes / 1000},
    ]
    x = _number("kilobytes", "peak memory (1000 bytes)", scale={"zero": False})
    return {
        "title": {**_TITLE, "text": f"Peaks of {count} random orders"},
        "width": 620,
        "height": 150,
        "layer": [
            {
                "data": {"values": rows},
                "mark": {"type": "line", "interpolate": "step-after", "color": "#6b7280"},
                "encoding": {
                    "x": x,
                    "y": _number("share", "share of orders", axis={"format": "%"}, scale={"domain": [0, 1]}),
                },
            },
            {
                "data": {"values": marks},
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "color": _colour(BEFORE, KAHN, AFTER),
                    "tooltip": [{"field": "order"}, {"field": "kilobytes"}],
                },
            },
        ],
    }


def _graph(result: Schedule) -> Spec:
    """The graph from left to right by depth, the numbers saying when each operator runs."""
    graph = result.graph
    depth = [0] * graph.n_nodes
    for v, before in enumerate(graph.predecessors):
        depth[v] = 1 + max((depth[u] for u in before), default=-1)
    when = np.argsort(result.order)
    rows_of: dict[int, list[int]] = {}
    for v in range(graph.n_nodes):
        rows_of.setdefault(depth[v], []).append(v)
    height: dict[int, float] = {}
    for column in sorted(rows_of):  # each operator near the middle of those it reads, then spread evenly
        members = sorted(
            rows_of[column],
            key=lambda v: sum(height[u] for u in graph.predecessors[v]) / max(1, len(graph.predecessors[v])),
        )
        for k, v in enumerate(members):
            height[v] = k - (len(members) - 1) / 2
    edges = [
        {"x": depth[u], "y": height[u], "x2": depth[v], "y2": height[v]}
        for v, before in enumerate(graph.predecessors)
        for u in before
    ]
    nodes = [
        {"x": depth[v], "y": height[v], "operator": node.name, "kind": node.op.lower().replace("_", " "),
         "when": int(when[v]), "bytes": sum(t.n_bytes for t in node.outputs)}
        for v, node in enumerate(graph.nodes)
    ]  # fmt: skip
    blank = {"type": "quantitative", "axis": None}
    widest = max(len(members) for members in rows_of.values())
    spot = {"x": {"field": "x", **blank}, "y": {"field": "y", **blank}}
    return {
        "title": {**_TITLE, "text": "The graph", "subtitle": "area: bytes written; number: when it runs"},
        "width": max(620, 18 * len(rows_of)),
        "height": max(120, 26 * widest),
        "layer": [
            {
                "data": {"values": edges},
                "mark": {"type": "rule", "color": "#d1d5db"},
                "encoding": {**spot, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
            },
            {
                "data": {"values": nodes},
                "mark": {"type": "circle", "opacity": 1},
                "encoding": {
                    **spot,
                    "size": {
                        "field": "bytes",
                        "type": "quantitative",
                        "scale": {"range": [120, 700]},
                        "legend": None,
                    },
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "legend": {"title": "operator", "orient": "bottom", "columns": 2},
                    },
                    "tooltip": [{"field": f} for f in ("operator", "kind", "when", "bytes")],
                },
            },
            {
                "data": {"values": nodes},
                "mark": {"type": "text", "fontSize": 8, "color": "#111827"},
                "encoding": {**spot, "text": {"field": "when"}},
            },
        ],
        "resolve": {"scale": {"color": "independent"}},
    }
