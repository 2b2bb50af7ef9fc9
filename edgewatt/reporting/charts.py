"""The charts, as Vega-Lite specifications: the same for the page and, with data put in, for PDF, SVG and PNG.

Colours are Okabe and Ito's eight, which people with any colour vision can tell apart; shape or position says the same.
"""

from __future__ import annotations

from typing import Any

from edgewatt.reporting.data import ReportData

Spec = dict[str, Any]

PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#B5A800"]
_FORMATS = ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4"]
_BARS = ("stride", "format")
_WIDTH, _HEIGHT = 470, 300  # in print; the page fits charts into its columns (charts.js)
MAX_BARS = 6
LEGEND = {"labelLimit": 260, "orient": "bottom", "columns": 2, "layout": {"bottom": {"direction": "vertical"}}}
"""Several legends stand one below the other, so that they are no wider than the chart."""


def charts(data: ReportData) -> dict[str, Spec]:
    """Return the charts that the data can fill, by name. Their data sets are named 'rows', 'io', 'wires', 'curves'."""
    played = any("energy_pj" in row for row in data.rows)
    found = {"energy_time": _energy_time(data)} if played else {}
    if played and "stride" in data.rows[0] and len(data.rows) > 1:
        found["energy_bars"] = _energy_bars(data)
    if len({(mark["series"], mark["memory"]) for mark in data.io_curves}) > 1:
        found["io_memory"] = _io_memory(data)
    if data.wires:
        found["wires"] = _wires(data)
    if data.convergence:
        found["convergence"] = _convergence(data)
    return found


def datasets(data: ReportData) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that the charts draw, by data set name."""
    return {"rows": data.rows, "io": data.io_curves, "wires": data.wires, "curves": data.convergence}


def _base(title: str, name: str, *, subtitle: str = "", **parts: Any) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": title, "anchor": "start", **({"subtitle": subtitle} if subtitle else {})},
        "data": {"name": name},
        "width": _WIDTH,
        "height": _HEIGHT,
        **parts,
    }


def _category(field: str, title: str, rows: list[dict[str, Any]], **more: Any) -> Spec:
    """Colour by a field, in the order of first appearance."""
    order = list(dict.fromkeys(row[field] for row in rows if field in row))
    short = {"legend": {"columns": 6}} if max((len(str(value)) for value in order), default=0) < 10 else {}
    return (
        {"field": field, "type": "nominal", "title": title, "sort": order, "scale": {"range": PALETTE}} | short | more
    )


def _quantity(field: str, title: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "axis": {"format": "~s"}, **more}


def _tooltip(*fields: tuple[str, str, str]) -> list[Spec]:
    return [
        {
            "field": field,
            "title": title,
            "type": "quantitative" if form else "nominal",
            **({"format": form} if form else {}),
        }
        for field, title, form in fields
    ]


_POINT = (
    ("label", "point", ""),
    ("energy_pj", "energy (pJ)", ",.0f"),
    ("energy_change", "energy against baseline", "+.1%"),
    ("time_ns", "time (ns)", ",.0f"),
    ("time_change", "time against baseline", "+.1%"),
    ("ones", "ones", ","),
    ("toggles", "toggles", ","),
    ("io", "I/Os", ","),
    ("hash", "record", ""),
)


_FIELDS = {
    "ordering": "ordering",
    "stride": "tuple order and stride",
    "format": "format",
    "encoder": "encoder",
    "part": "memory part",
    "memory": "fast memory M (values)",
    "policy": "policy",
    "timing": "timing",
    "network": "network",
}
"""What may tell points apart, and its title."""


def _varying(data: ReportData) -> list[str]:
    return [f for f in _FIELDS if len({row[f] for row in data.rows if f in row}) > 1]


def _telling(data: ReportData) -> list[str]:
    """Return what varies, first what decides most of the energies or the times (share of variance between groups)."""

    def share(field: str, metric: str) -> float:
        groups: dict[Any, list[float]] = {}
        for row in data.rows:
            if metric in row:
                groups.setdefault(row.get(field), []).append(row[metric])
        values = [value for group in groups.values() for value in group]
        mean = sum(values) / len(values)
        total = sum((value - mean) ** 2 for value in values)
        between = sum(len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups.values())
        return between / total if total else 0.0

    return sorted(_varying(data), key=lambda f: -max(share(f, "energy_pj"), share(f, "time_ns")))


def _energy_time(data: ReportData) -> Spec:
    varying = _telling(data)
    zero: Spec = {"scale": {"zero": False}}
    encoding: Spec = {
        "x": _quantity("time_ns", "time (ns)", **zero),
        "y": _quantity("energy_pj", "energy (pJ)", **zero),
    }
    marks: Spec = dict(encoding)
    if varying:
        marks["color"] = _category(varying[0], _FIELDS[varying[0]], data.rows)
    if len(varying) > 1 and len({row.get(varying[1]) for row in data.rows}) <= 8:
        shape = _category(varying[1], _FIELDS[varying[1]], data.rows)
        marks["shape"] = {key: value for key, value in shape.items() if key != "scale"}
    fields = _POINT if "io" in (data.rows or [{}])[0] else tuple(f for f in _POINT if f[0] != "io")
    front: Spec = {"transform": [{"filter": "datum.on_front"}]}
    spec = _base(
        "Energy against time",
        "rows",
        subtitle="the line is the Pareto front",
        layer=[
            {
                **front,
                "mark": {"type": "line", "interpolate": "step-after", "color": "#8C8C8C", "strokeDash": [4, 3]},
                "encoding": encoding,
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.8},
                "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
                "encoding": {**marks, "tooltip": _tooltip(*fields)},
            },
            {
                **front,
                "mark": {"type": "point", "filled": False, "size": 190, "color": "#8C8C8C", "shape": "circle"},
                "encoding": encoding,
            },
        ],
    )
    return spec


def _energy_bars(data: ReportData) -> Spec:
    """Stride and format where they vary, else what does."""
    varying = [field for field in _varying(data) if field != "ordering"]
    wanted = sorted(dict.fromkeys([*varying, "stride", "format"]), key=lambda f: (f not in varying, f not in _BARS))
    x, colour = wanted[0], wanted[1]
    orderings = list(dict.fromkeys(row["ordering"] for row in data.rows))
    shown = orderings[:MAX_BARS]
    places, colours = (
        sorted(dict.fromkeys(row[field] for row in data.rows), key=lambda v: _FORMATS.index(v) if v in _FORMATS else 99)
        for field in (x, colour)
    )
    columns = min(len(shown), 2)
    width = max(120, (_WIDTH - 40) // columns)
    return {
        **_base(f"Energy by {x} and {colour}", "rows", subtitle="median where several points share both"),
        "transform": [{"filter": {"field": "ordering", "oneOf": shown}}] if len(orderings) > len(shown) else [],
        "facet": {
            "field": "ordering",
            "type": "nominal",
            "title": "ordering",
            "sort": shown,
            "header": {"titleOrient": "top", "labelFontWeight": "bold", "labelLimit": width},
        },
        "columns": columns,
        "spacing": 20,
        "spec": {
            "width": width,
            "height": 230 if len(shown) <= columns else 150,
            "mark": {"type": "bar", "cornerRadiusEnd": 2},
            "encoding": {
                "x": {"field": x, "type": "nominal", "title": _FIELDS[x], "sort": places,
                      "axis": {"labelAngle": -30 if len(places) > 2 else 0}},
                "xOffset": {"field": colour, "type": "nominal", "sort": colours},
                "y": {**_quantity("energy_pj", "energy (pJ)"), "aggregate": "median"},
                "color": _category(colour, _FIELDS[colour], data.rows, sort=colours),
                "tooltip": [
                    {"field": "ordering", "type": "nominal"},
                    {"field": x, "type": "nominal"},
                    {"field": colour, "type": "nominal"},
                    {"field": "energy_pj", "aggregate": "median", "title": "energy (pJ)", "format": ",.0f"},
                    {"field": "io_energy_pj", "aggregate": "median", "title": "IO energy (pJ)", "format": ",.0f"},
                    {"field": "dram_energy_pj", "aggregate": "median", "title": "DRAM energy (pJ)", "format": ",.0f"},
                    {"aggregate": "count", "title": "points"},
                ],
            },
        },
    }  # fmt: skip


def _io_memory(data: ReportData) -> Spec:
    sizes = {mark["memory"] for mark in data.io_curves}
    networks = {mark["network"] for mark in data.io_curves}
    x = {"field": "memory", "type": "quantitative", "title": "fast memory M (values)",
         "scale": {"type": "log", "nice": False, "padding": 15} if len(sizes) > 2 else {"zero": False, "padding": 30},
    }  # fmt: skip
    y = {**_quantity("io", "I/Os per inference"), "scale": {"zero": False}}
    bound: Spec = {"mark": {"type": "line", "strokeDash": [5, 4], "color": "#8C8C8C", "point": len(sizes) < 2}}
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "point": {"size": 45}},
            "encoding": {
                "x": x,
                "y": y,
                "color": _category("series", "ordering", data.io_curves),
                "tooltip": _tooltip(
                    ("series", "ordering", ""), ("policy", "policy", ""), ("memory", "M", ",d"), ("io", "I/Os", ",d"),
                    ("lower", "lower bound", ",d"), ("upper", "upper bound", ",d"),
                ),
            },
        },
        *(
            {
                **bound,
                "encoding": {"x": x, "y": {**y, "field": field}, "tooltip": _tooltip((field, f"{field} bound", ",d"))},
            }
            for field in ("lower", "upper")
        ),
    ]  # fmt: skip
    if len({mark["policy"] for mark in data.io_curves}) > 1:
        layers[0]["encoding"]["strokeDash"] = {"field": "policy", "type": "nominal"}
    base = _base("I/Os against fast memory", "io", subtitle="dashed: bounds of Theorem 1")
    if len(networks) == 1:
        return {**base, "layer": layers}
    return {
        **base,
        "facet": {"field": "network", "type": "nominal", "title": None},
        "columns": 2,
        "spec": {"width": 260, "height": 220, "layer": layers},
        "resolve": {"scale": {"y": "independent"}},
    }


def _wires(data: ReportData) -> Spec:
    points = list(dict.fromkeys(mark["point"] for mark in data.wires))
    return {
        **_base("Wires", "wires", subtitle="share of beats in which each one toggles"),
        "width": 310,
        "height": {"step": 22},
        "mark": {"type": "rect"},
        "encoding": {
            "x": {"field": "wire", "type": "nominal", "title": "wire", "sort": {"field": "position"},
                  "axis": {"labelAngle": -60, "labelOverlap": True}},
            "y": {"field": "point", "type": "nominal", "title": None, "sort": points, "axis": {"labelLimit": 300}},
            "color": {"field": "toggle_share", "type": "quantitative", "title": "toggles per beat",
                      "scale": {"scheme": "cividis"}, "legend": {"format": ".0%", "gradientLength": 200}},
            "tooltip": _tooltip(
                ("point", "point", ""), ("wire", "wire", ""), ("toggles", "toggles", ",d"), ("ones", "ones", ",d"),
                ("toggle_share", "toggles per beat", ".1%"), ("ones_share", "ones per beat", ".1%"),
            ),
        },
    }  # fmt: skip


def _convergence(data: ReportData) -> Spec:
    return _base(
        "Searches",
        "curves",
        subtitle="best objective so far against work",
        mark={"type": "line", "interpolate": "step-after", "point": {"size": 15}},
        encoding={
            "x": {**_quantity("work", "work units"), "scale": {"type": "log", "nice": False}},
            "y": {**_quantity("objective", "objective"), "scale": {"zero": False}},
            "color": _category("series", "search", data.convergence),
            "tooltip": _tooltip(
                ("series", "search", ""), ("work", "work units", ",d"), ("objective", "objective", ",.0f")
            ),
        },
    )  # fmt: skip
