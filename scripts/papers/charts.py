"""A figure's charts and tables from its rows: medians and their intervals, as Vega-Lite, as CSV and as tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from edgewatt.pages.chart import PALETTE
from papers.claim import by, pick
from papers.figure import Chart, Row, Table

Spec = dict[str, Any]


@dataclass(frozen=True)
class Median:
    """Median of n values and an interval that holds the population's median with probability `coverage`."""

    median: float
    low: float
    high: float
    n: int
    coverage: float


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Median:
    """Return the median and its narrowest symmetric order-statistic interval of at least the given confidence.

    The interval from the k-th smallest to the k-th largest of n independent values holds the median with probability
    1 - 2 P(Bin(n, 1/2) < k), whatever their (continuous) distribution. Below six values no interval reaches 95 %: then
    the extremes are returned with the coverage they have, 1 - 2^(1 - n), which is 93.75 % for five.
    """
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        raise ValueError("no values")
    k, tail = 1, 2.0**-n  # tail = P(Bin(n, 1/2) < k)
    while 2 * (k + 1) <= n and 1 - 2 * (tail + comb(n, k) * 2.0**-n) >= confidence:
        tail += comb(n, k) * 2.0**-n
        k += 1
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return Median(middle, ordered[k - 1], ordered[n - k], n, max(0.0, 1 - 2 * tail))


def interval_words(n: int, confidence: float = 0.95) -> str:
    """Say what the interval of n values is and what it covers."""
    interval = median_interval(range(n), confidence)
    if n == 1:
        return "one network: no interval"
    covers = f"coverage {100 * interval.coverage:.4g} %"
    if interval.coverage >= confidence:
        return f"intervals: order statistics {interval.low + 1:g} to {interval.high + 1:g} of {n}, {covers}"
    return f"intervals: least to greatest of {n} networks, {covers} (95 % would take six)"


def drawn(chart: Chart, rows: Sequence[Row]) -> list[Row]:
    """Return what a chart draws, a mark a row: the median over the networks and its interval, by panel, x and line."""
    marks = []
    for group in by(pick(list(rows), **chart.where), chart.panel, chart.series, chart.x):
        first = group[0]
        for y in chart.y:
            values = [r[y] / (r[chart.over] if chart.over else 1) for r in group if r.get(y) is not None]
            if not values or first.get(chart.x) is None:
                continue
            m = median_interval(values)
            line = [str(first[chart.series])] if chart.series else []
            line += [y] if len(chart.y) > 1 or not chart.series else []
            marks.append({
                "panel": f"{chart.panel.replace('_', ' ')} {first[chart.panel]}" if chart.panel else "",
                "x": first[chart.x], "line": ", ".join(line), "value": m.median, "low": m.low, "high": m.high, "n": m.n,
            })  # fmt: skip
    return marks


def csv_of(marks: Sequence[Row]) -> str:
    """Return the marks as a file of comma-separated values."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(marks[0]) if marks else [])
    writer.writeheader()
    writer.writerows(marks)
    return text.getvalue()


def spec(chart: Chart, marks: Sequence[Row]) -> Spec:
    """Return the chart of some marks, which it brings along."""
    panels, lines = (list(dict.fromkeys(mark[key] for mark in marks)) for key in ("panel", "line"))
    names = [mark["x"] for mark in marks]
    numeric = not chart.bars and all(isinstance(x, (int, float)) for x in names)
    places = sorted(set(names)) if numeric else list(dict.fromkeys(names))
    top = max((abs(mark["value"]) for mark in marks), default=0)
    value: Spec = {
        "field": "value", "type": "quantitative", "title": chart.title,
        "scale": {"type": "log", "nice": False} if "y" in chart.log else {"zero": chart.bars},
        "axis": {"format": "~s" if top >= 1e4 else ",.6~g"},
    }  # fmt: skip
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(lines))]
    colour: Spec = {
        "field": "line", "type": "nominal", "title": None, "sort": lines, "legend": {"symbolOpacity": 1},
        "scale": {"domain": lines, "range": colours},
    }  # fmt: skip
    x_title = chart.x.replace("_", " ")
    tooltip = [
        {"field": "line", "type": "nominal"},
        {"field": "x", "type": "quantitative" if numeric else "nominal", "title": x_title},
        *({"field": f, "type": "quantitative", "format": ",.4~g"} for f in ("value", "low", "high")),
        {"field": "n", "type": "quantitative", "title": "networks"},
    ]
    if chart.bars:
        encoding = {"y": {"field": "x", "type": "nominal", "title": None, "sort": places}, "x": value}
        step: Spec = {"step": 20}
        if len(lines) > 1:
            encoding["yOffset"] = {"field": "line", "sort": lines}
            step = {"step": max(8, 24 // len(lines)), "for": "offset"}
        else:
            colour["legend"] = None
        # A bar has no beginning on a logarithmic scale.
        mark: Spec = {"type": "point", "filled": True, "size": 80} if "y" in chart.log else {"type": "bar"}
        view: Spec = {"mark": mark, "encoding": {**encoding, "color": colour, "tooltip": tooltip}, "height": step}
    else:
        few = len(places) <= 20
        along: Spec = {"field": "x", "type": "ordinal", "title": x_title, "sort": places, "axis": {"labelAngle": 0}}
        if numeric:
            scale: Spec = {"type": "log"} if "x" in chart.log and places[0] > 0 else {"zero": False}
            axis: Spec = {"labelOverlap": "greedy", "format": "~s" if places[-1] >= 1e4 else ",.6~g"}
            along = {"field": "x", "type": "quantitative", "title": x_title, "axis": axis,
                     "scale": {**scale, "nice": False, "padding": 12}}  # fmt: skip
            if few:
                axis["values"] = places
        base: Spec = {"x": along, "color": colour}
        view = {
            "layer": [
                {"mark": {"type": "line", "point": {"size": 36} if few else False},
                 "encoding": {**base, "y": value, "tooltip": tooltip}},
                {"mark": {"type": "rule", "strokeWidth": 2} if few else {"type": "area", "opacity": 0.2},
                 "encoding": {**base, "y": {**value, "field": "low"}, "y2": {"field": "high"}}},
            ],
            "height": 220 if len(panels) > 1 else 320,
        }  # fmt: skip
    whole: Spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "data": {"values": list(marks)}}
    if len(panels) == 1:
        return {**whole, "width": 620, **view}
    return {
        **whole, "columns": 3, "spec": {"width": 280, **view},
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": panels},
        "resolve": {"scale": {} if chart.bars else {"x": "independent", "y": "independent"}},
    }  # fmt: skip


def table_of(shown: Chart | Table, rows: Sequence[Row]) -> tuple[list[str], list[list[Any]]]:
    """Return heads and rows of the table that says what a chart or table shows."""
    if isinstance(shown, Chart):
        marks = drawn(shown, rows)
        lines = list(dict.fromkeys(mark["line"] for mark in marks))
        cells = {(m["panel"], m["x"], m["line"]): m for m in marks}
        places = list(dict.fromkeys((m["panel"], m["x"]) for m in marks))
        body = [
            [*p, *(_cell(cells[*p, line]["value"]) if (*p, line) in cells else "" for line in lines)] for p in places
        ]
        keep = slice(0 if any(p for p, _ in places) else 1, None)
        return ["", shown.x.replace("_", " "), *lines][keep], [line[keep] for line in body]
    body = []
    listed = [row for row in pick(list(rows), **shown.where) if any(row.get(v) is not None for v in shown.values)]
    kept = [v for v in shown.values if any(row.get(v) is not None for row in listed)]
    for group in by(listed, *shown.by):
        values = ([r[v] for r in group if r.get(v) is not None] for v in kept)
        body.append([*(group[0].get(k, "") for k in shown.by), *map(_typical, values)])
    return [head.replace("_", " ") for head in (*shown.by, *kept)], body


def _typical(values: list[Any]) -> Any:
    if values and all(isinstance(v, (int, float)) for v in values):
        return _cell(median_interval(values).median)
    return values[0] if values else ""


def _cell(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
