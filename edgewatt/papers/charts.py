"""A figure's chart: medians with intervals over x, in panels, as a Vega-Lite specification in the report's grammar."""

from __future__ import annotations

from typing import Any

from edgewatt.papers.claims import Figure
from edgewatt.papers.measurements import ROLES, PanelGroup
from edgewatt.reporting.chart import PALETTE

Spec = dict[str, Any]
Row = dict[str, Any]

_TITLES = {"io": "I/Os per inference ÷ lower bound", "curve": "I/Os per inference"}


def chart_rows(figure: Figure, groups: list[PanelGroup]) -> list[Row]:
    """Return what the chart draws, one mark a row. I/Os are drawn against the bound of Theorem 1, which is at 1."""
    relative = figure.shows == "io"
    rows = []
    for group in groups:
        scale = 1.0 / group.lower if relative and group.lower else 1.0
        rows.append(
            {
                "panel": group.panel,
                "x": group.x,
                "method": group.method,
                "role": group.role,
                "value": group.median.median * scale,
                "low": group.median.low * scale,
                "high": group.median.high * scale,
                "median": group.median.median,
                "networks": group.median.n,
                "bound": 1.0 if relative else group.lower,
            }
        )
    return rows + (_level_ends(rows) if figure.shows == "curve" else [])


def _level_ends(rows: list[Row]) -> list[Row]:
    """Draw orders without iterations as level lines up to the last iteration."""
    last = max((row["x"] for row in rows), default=1.0)
    single = {(row["panel"], row["method"]) for row in rows if row["x"] == last}
    return [{**row, "x": last} for row in rows if (row["panel"], row["method"]) not in single and row["x"] == 1.0]


def chart(name: str, figure: Figure, rows: list[Row]) -> Spec:
    """Return the chart of a figure; its data set is called like the figure."""
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    methods = sorted(
        {row["method"]: ROLES.index(row["role"]) for row in rows}.items(), key=lambda item: (item[1], item[0])
    )
    order = [method for method, _ in methods]
    log = figure.x.scale == "log"
    numbers = "~s" if figure.shows == "curve" else ",.6~g"
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": figure.x.title,
        "scale": {**({"type": "log"} if log else {"zero": False}), "nice": False, "padding": 12},
        "axis": {"format": numbers, "values": _marks(figure, rows), "labelOverlap": "greedy"},
    }
    y: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": _TITLES[figure.shows],
        "scale": {"zero": False, "nice": False, "padding": 8},
        "axis": {"format": numbers},
    }
    colour: Spec = {
        "field": "method",
        "type": "nominal",
        "title": None,
        "sort": order,
        "scale": {"domain": order, "range": PALETTE[: len(order)]},
        "legend": {"symbolOpacity": 1},
    }
    tooltip = [
        {"field": "method", "type": "nominal"},
        {"field": "x", "type": "quantitative", "title": figure.x.title, "format": ",.6~g"},
        {"field": "median", "type": "quantitative", "format": ",.0f"},
        {"field": "low", "type": "quantitative", "format": ",.4~g"},
        {"field": "high", "type": "quantitative", "format": ",.4~g"},
        {"field": "networks", "type": "quantitative"},
    ]
    line: Spec = {"type": "line", "point": {"size": 36} if figure.shows != "curve" else False}
    spread: Spec = {"type": "area", "opacity": 0.2} if figure.shows == "curve" else {"type": "rule", "strokeWidth": 2}
    layers: list[Spec] = [
        {
            "mark": line,
            "encoding": {"x": x, "y": y, "color": colour, "shape": _shape(order), "tooltip": tooltip},
        },
        {"mark": spread, "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}},
    ]
    bound: Spec = {"type": "line", "strokeDash": [5, 4], "color": "#8C8C8C"}
    layers.insert(0, {"mark": bound, "encoding": {"x": x, "y": {**y, "field": "bound"}}})
    base: Spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "data": {"name": name}}
    if len(panels) == 1:
        return {**base, "width": 620, "height": 320, "layer": layers}
    return {
        **base,
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels},
        "columns": 3,
        "spec": {"width": 280, "height": 220, "layer": layers},
        "resolve": {"scale": {"y": "independent"}},
    }


def _marks(figure: Figure, rows: list[Row]) -> list[float]:
    """Return where the axis has its ticks: the values that were run, or powers of ten along a curve."""
    values = sorted({row["x"] for row in rows})
    if figure.shows != "curve":
        return values
    return [10.0**k for k in range(len(str(int(max(values)))))]


def _shape(order: list[str]) -> Spec:
    shapes = ["circle", "square", "triangle-up", "diamond", "cross"]
    return {
        "field": "method",
        "type": "nominal",
        "sort": order,
        "scale": {"domain": order, "range": shapes[: len(order)]},
    }
