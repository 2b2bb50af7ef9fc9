"""What a chart of the report is: a Vega-Lite specification made from the report's data, and the registry of charts.

Colours are Okabe and Ito's eight, which people with any colour vision can tell apart; shape or position says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgewatt.pages.data import ReportData
from edgewatt.results.record_rows import column_title, distinct, telling
from traces.base.registry import Registry
from traces.base.units import SCALES

Spec = dict[str, Any]

PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#B5A800"]
WIDTH, HEIGHT = 470, 300
"""In print; the page fits charts into its columns (charts.js)."""
CHOSEN: Spec = {"name": "chosen", "value": None}
"""The points that the reader chose on the page, by number; None: all. In print nothing is chosen."""
IS_CHOSEN = "chosen === null || chosen[datum.id]"
FADED = {"condition": {"test": IS_CHOSEN, "value": 0.85}, "value": 0.06}
"""Opacity of marks that stay where they are while others are chosen."""
MANY_POINTS = 1000
"""Beyond it points are small and translucent, so that dense places show, and the page draws them itself (many.js)."""
LONG_NAME = 30
"""Characters beyond which the names at an axis want more than half of the page."""
LEGEND = {"labelLimit": 260, "orient": "bottom", "columns": 2, "layout": {"bottom": {"direction": "vertical"}}}
"""Several legends stand one below the other, so that they are no wider than the chart."""


@dataclass(frozen=True)
class Chart:
    """One chart.

    draw: ReportData -> a specification, or None where the data cannot fill it. Its `data` is ``{"name": SET}``, a set
    of `datasets`, or ``{"values": [...]}`` of its own. place: charts stand on the page by it, lower first.
    """

    draw: Callable[[ReportData], Spec | None]
    place: float = 100.0


class Charts(Registry[Chart]):
    def add(self, name: str, *, summary: str, place: float = 100.0) -> Callable[[Any], Any]:
        """Return a decorator that adds a function as the chart `name` and leaves it as it is. Fields as in Chart."""

        def register(draw: Callable[[ReportData], Spec | None]) -> Callable[[ReportData], Spec | None]:
            self.register(name, summary=summary, module=draw.__module__)(Chart(draw, place))
            return draw

        return register


CHARTS = Charts("chart", "edgewatt.charts", folder="edgewatt.pages.charts")


def charts(data: ReportData) -> dict[str, Spec]:
    """Return the charts that the data can fill, by name. A plug-in that cannot be loaded is left out."""
    members = sorted(CHARTS.loadable().values(), key=lambda entry: entry.item.place)
    drawn = {entry.name: entry.item.draw(data) for entry in members}
    return {name: spec for name, spec in drawn.items() if spec is not None}


def datasets(data: ReportData) -> dict[str, Sequence[dict[str, Any]]]:
    return {"rows": data.rows, "io": data.io_curves}


def base(title: str, name: str, *, subtitle: str = "", **parts: Any) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": title, "anchor": "start", **({"subtitle": subtitle} if subtitle else {})},
        "data": {"name": name},
        "params": [CHOSEN],
        "width": WIDTH,
        "height": HEIGHT,
        **parts,
    }


def in_order(values: Iterable[Any]) -> list[Any]:
    found = list(dict.fromkeys(values))
    return sorted(found) if all(isinstance(v, (int, float)) for v in found) else found


def category(field: str, title: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> Spec:
    order = in_order(distinct(rows, field))
    short = {"legend": {"columns": 6}} if max((len(str(value)) for value in order), default=0) < 10 else {}
    return (
        {"field": field, "type": "nominal", "title": title, "sort": order, "scale": {"range": PALETTE}} | short | more
    )


def named(field: str, names: list[str]) -> Spec:
    """Return an axis of names in this order; how much of a long name shows depends on the width (charts.js)."""
    return {"field": field, "type": "nominal", "title": None, "sort": names}


def room_for(names: Iterable[str]) -> Spec:
    return {"usermeta": {"wide": max(map(len, names), default=0) > LONG_NAME}}


def quantity(field: str, title: str, **more: Any) -> Spec:
    """Return an axis of numbers; energies, times and bytes in engineering notation, whatever unit the field has."""
    scale = SCALES.get(field.rpartition("_")[2])
    if scale is None:
        return {"field": field, "type": "quantitative", "title": title, "axis": {"format": "~s"}, **more}
    axis = {"labelExpr": f"{engineering_expression('datum.value', *scale)}"}
    return {"field": field, "type": "quantitative", "title": title.partition(" (")[0], "axis": axis, **more}


def engineering_expression(value: str, factor: float, unit: str, digits: str = "") -> str:
    return f"replace(format({value} * {factor!r}, '{digits}~s'), /([^0-9.−-]*)$/, ' $1') + '{unit}'"


def written_tooltips(*fields: tuple[str, str, str]) -> tuple[list[Spec], list[Spec]]:
    """Return transforms and tooltips of (field, title, number format): quantities are written with their units."""
    transforms, tips = [], []
    for field, title, form in fields:
        scale = SCALES.get(field.rpartition("_")[2])
        if scale is None:
            tips += tooltip((field, title, form))
        else:
            expression = engineering_expression(f"datum.{field}", *scale, digits=".4")
            transforms.append({"calculate": expression, "as": f"{field}_text"})
            tips += tooltip((f"{field}_text", title.partition(" (")[0], ""))
    return transforms, tips


def tooltip(*fields: tuple[str, str, str]) -> list[Spec]:
    return [
        {
            "field": field,
            "title": title,
            "type": "quantitative" if form else "nominal",
            **({"format": form} if form else {}),
        }
        for field, title, form in fields
    ]


FIELDS = (
    *("sweep", "ordering", "stride", "format", "onchip", "part", "encoder", "lanes", "engines", "policy", "timing"),
    "network",
)
"""What may tell points apart beside what else was swept."""


def titles(data: ReportData) -> dict[str, str]:
    """Return the columns that may tell points apart and their titles; M last, as on-chip memory and lanes decide it."""
    named = {**{key: column_title(key) for key in FIELDS}, **{axis.key: axis.title for axis in data.axes}}
    return {**named, "memory": column_title("memory")}


def varying_fields(data: ReportData) -> list[str]:
    """Return the fields of `titles` in which points differ; one that tells points apart as an earlier one does, and
    seeds, are left out."""
    parts = sum(axis.key.startswith(("caches_", "scratchpad_")) for axis in data.axes) > 1
    fields = (f for f in titles(data) if not f.endswith("_seed") and not (f == "onchip" and parts))  # by its parts
    return telling(data.rows, (f for f in fields if len(distinct(data.rows, f)) > 1), range(len(data.rows)))


def telling_fields(data: ReportData) -> list[str]:
    """Return what varies, first what decides most of the energies or the times (share of variance between groups)."""

    def share(field: str, metric: str) -> float:
        groups: dict[Any, list[float]] = {}
        for name, value in zip(data.rows.values(field), data.rows.values(metric), strict=True):
            if value is not None:
                groups.setdefault(name, []).append(value)
        count = sum(map(len, groups.values()))
        mean = sum(map(sum, groups.values())) / count
        total = sum((value - mean) ** 2 for group in groups.values() for value in group)
        between = sum(len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups.values())
        return between / total if total else 0.0

    return sorted(varying_fields(data), key=lambda f: -max(share(f, "energy_pj"), share(f, "time_ns")))
