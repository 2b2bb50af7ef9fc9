"""A figure's chart: medians with intervals over x, in panels, as a Vega-Lite specification in the report's grammar."""

from __future__ import annotations

from typing import Any

from edgewatt.pages.chart import PALETTE
from papers.claims import Figure
from papers.measurements import ROLES, PanelGroup
from papers.study import Drawing

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


def study_chart(drawing: Drawing) -> Spec:
    """Return the chart of a study's figure; it brings its values."""
    panels = list(dict.fromkeys(panel for panel, *_ in drawing.marks))
    series = list(dict.fromkeys(name for _, _, name, _ in drawing.marks))
    places = list(dict.fromkeys(x for _, x, _, _ in drawing.marks))
    numbers = sorted(x for x in places if not isinstance(x, str))
    value: Spec = {
        "field": "y",
        "type": "quantitative",
        "title": drawing.y,
        "scale": {"type": "log", "nice": False} if "y" in drawing.log else {"zero": drawing.bars},
        "axis": {"format": "~s" if max((abs(y) for *_, y in drawing.marks), default=0) >= 1e4 else ",.6~g"},
    }
    colour: Spec = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "sort": series,
        "scale": {"domain": series, "range": [PALETTE[k % len(PALETTE)] for k in range(len(series))]},
        "legend": {"symbolOpacity": 1},
    }
    tooltip = [
        *({"field": field, "type": "nominal"} for field in ("panel", "series") if field == "series" or len(panels) > 1),
        {"field": "x", "type": "quantitative" if numbers and not drawing.bars else "nominal", "title": drawing.x},
        {"field": "y", "type": "quantitative", "title": drawing.y, "format": ",.4~g"},
    ]
    if drawing.bars:
        names = {"field": "x", "type": "nominal", "title": None, "sort": places}
        encoding = {"y": names, "x": value, "color": colour, "tooltip": tooltip}
        step: Spec = {"step": 20}
        if series == places:
            colour["legend"] = None
        else:
            encoding["yOffset"] = {"field": "series", "sort": series}
            step = {"step": max(8, 24 // len(series)), "for": "offset"}
        # A bar has no beginning on a logarithmic scale.
        mark: Spec = {"type": "point", "filled": True, "size": 80} if "y" in drawing.log else {"type": "bar"}
        view: Spec = {"mark": mark, "encoding": encoding, "height": step}
    else:
        log = {"type": "log"} if "x" in drawing.log else {"zero": False}
        along: Spec = {"field": "x", "type": "ordinal", "title": drawing.x, "sort": places, "axis": {"labelAngle": 0}}
        if numbers:
            axis: Spec = {
                "values": numbers,
                "labelOverlap": "greedy",
                "format": "~s" if numbers[-1] >= 1e4 else ",.6~g",
            }
            scale = {**log, "nice": False, "padding": 12}
            along = {"field": "x", "type": "quantitative", "title": drawing.x, "scale": scale, "axis": axis}
            if len(places) > 20:
                del axis["values"]
        view = {
            "mark": {"type": "line", "point": {"size": 36} if len(places) <= 20 else False},
            "encoding": {
                "x": along,
                "y": value,
                "color": colour,
                "shape": _shape(series, "series"),
                "tooltip": tooltip,
            },
            "height": 220 if len(panels) > 1 else 320,
        }
    rows = [dict(zip(("panel", "x", "series", "y"), mark, strict=True)) for mark in drawing.marks]
    base: Spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "data": {"values": rows}}
    if len(panels) == 1:
        return {**base, "width": 620, **view}
    return {
        **base,
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels},
        "columns": 3,
        "spec": {"width": 280, **view},
        "resolve": {"scale": {} if drawing.bars else {"x": "independent", "y": "independent"}},
    }


def _marks(figure: Figure, rows: list[Row]) -> list[float]:
    """Return where the axis has its ticks: the values that were run, or powers of ten along a curve."""
    values = sorted({row["x"] for row in rows})
    if figure.shows != "curve":
        return values
    return [10.0**k for k in range(len(str(int(max(values)))))]


def _shape(order: list[str], field: str = "method") -> Spec:
    shapes = ["circle", "square", "triangle-up", "diamond", "cross"]
    chosen = [shapes[k % len(shapes)] for k in range(len(order))]
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": order,
        "scale": {"domain": order, "range": chosen},
    }
