"""A figure's charts and tables from its rows: medians and their intervals, as Vega-Lite, as CSV and as tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from scipy.stats import binom

from edgewatt.pages.chart import PALETTE, tooltip
from papers.claim import by, pick
from papers.figure import Chart, Row, Table

Spec = dict[str, Any]


class Median(NamedTuple):
    """Median of values, and an interval that holds the population's median with probability `coverage`."""

    median: float
    low: float
    high: float
    coverage: float


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Median:
    """Return the median and its narrowest symmetric order-statistic interval of at least the given confidence.

    The interval from the k-th smallest to the k-th largest of n independent values holds the median with probability
    1 - 2 P(Bin(n, 1/2) < k), whatever their (continuous) distribution. Below six values no interval reaches 95 %: then
    the extremes are returned with the coverage they have, 1 - 2^(1 - n), which is 93.75 % for five.
    """
    ordered, n = sorted(values), len(values)
    k = max(1, int(binom.ppf((1 - confidence) / 2, n, 0.5)))
    coverage = max(0.0, float(1 - 2 * binom.cdf(k - 1, n, 0.5)))
    return Median(float(median(ordered)), ordered[k - 1], ordered[n - k], coverage)


def interval_words(n: int) -> str:
    """Say what the interval of n values is and what it covers."""
    _, low, high, coverage = median_interval(range(n))
    return f"intervals: order statistics {low + 1:g} to {high + 1:g} of {n}, coverage {100 * coverage:.4g} %"


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
                "x": first[chart.x], "line": ", ".join(line), "value": m.median, "low": m.low, "high": m.high,
                "n": len(values),
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
    colour: Spec = {
        "field": "line", "type": "nominal", "title": None, "sort": lines, "legend": {"symbolOpacity": 1},
        "scale": {"domain": lines, "range": [PALETTE[k % len(PALETTE)] for k in range(len(lines))]},
    }  # fmt: skip
    x_title = chart.x.replace("_", " ")
    numbers = [(field, field, ",.4~g") for field in ("value", "low", "high")]
    tip = tooltip(("line", "line", ""), ("x", x_title, ",.6~g" if numeric else ""), *numbers, ("n", "networks", "d"))
    if chart.bars:
        # A bar has no beginning on a logarithmic scale.
        mark: Spec = {"type": "point", "filled": True, "size": 80} if "y" in chart.log else {"type": "bar"}
        encoding: Spec = {
            "y": {"field": "x", "type": "nominal", "title": None, "sort": places}, "x": value, "tooltip": tip,
            "yOffset": {"field": "line", "sort": lines}, "color": colour if len(lines) > 1 else {"value": PALETTE[0]},
        }  # fmt: skip
        step = {"step": max(8, 24 // len(lines)), "for": "offset"}
        view: Spec = {"mark": mark, "encoding": encoding, "height": step}
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
                 "encoding": {**base, "y": value, "tooltip": tip}},
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
        keys = [key for key in ("panel", "x", "line") if any(mark[key] != "" for mark in marks)]
        heads = [shown.x.replace("_", " ") if key == "x" else key for key in keys]
        numbers = ("value", "low", "high")
        return [*heads, *numbers], [[*(m[key] for key in keys), *(_cell(m[key]) for key in numbers)] for m in marks]
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
