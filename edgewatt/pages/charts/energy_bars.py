"""Energy by the two things that vary most, one panel an ordering."""

from __future__ import annotations

from edgewatt.pages.chart import (
    CHARTS,
    IS_CHOSEN,
    WIDTH,
    Spec,
    base,
    category,
    in_order,
    quantity,
    titles,
    varying_fields,
    written_tooltips,
)
from edgewatt.pages.data import ReportData
from edgewatt.results.record_rows import distinct

_FORMATS = ["fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4"]
_BARS = ("stride", "format")
_MEDIANS = (("energy_pj", "energy", ""), ("io_energy_pj", "IO energy", ""), ("dram_energy_pj", "DRAM energy", ""))
MAX_BARS = 6


@CHARTS.add("energy_bars", summary="energy by stride and format, or by what varies", place=20)
def energy_bars(data: ReportData) -> Spec | None:
    """Stride and format where they vary, else what does."""
    if "stride" not in data.rows[0] or len(data.rows) < 2 or not data.played:
        return None
    varying = [field for field in varying_fields(data) if field != "ordering"]
    wanted = sorted(dict.fromkeys([*varying, "stride", "format"]), key=lambda f: (f not in varying, f not in _BARS))
    x, colour = wanted[0], wanted[1]
    named = titles(data)
    orderings = distinct(data.rows, "ordering")
    shown = orderings[:MAX_BARS]
    places, colours = (
        sorted(
            in_order(distinct(data.rows, field)),
            key=lambda v: _FORMATS.index(v) if v in _FORMATS else 99,
        )
        for field in (x, colour)
    )
    alone = {"legend": None} if len(colours) == 1 else {}
    by = named[x] if alone else f"{named[x]} and {named[colour]}"
    columns = min(len(shown), 2)
    names = dict.fromkeys(["ordering", x, colour])
    written, tips = written_tooltips(*((f, named[f], "") for f in names), *_MEDIANS, ("points", "points", ",d"))
    width = max(120, (WIDTH - 40) // columns)
    return {
        **base(f"Energy by {by}", "rows", subtitle="median where several points share both"),
        "transform": [
            {"filter": IS_CHOSEN},
            *([{"filter": {"field": "ordering", "oneOf": shown}}] if len(orderings) > len(shown) else []),
            {
                "aggregate": [{"op": "count", "as": "points"}]
                + [{"op": "median", "field": field, "as": field} for field, _, _ in _MEDIANS],
                "groupby": list(dict.fromkeys(["ordering", x, colour])),
            },
            *written,
        ],
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
                "x": {"field": x, "type": "nominal", "title": named[x], "sort": places,
                      "axis": {"labelAngle": -30 if len(places) > 2 else 0}},
                "xOffset": {"field": colour, "type": "nominal", "sort": colours},
                "y": {**quantity("energy_pj", "energy"), "stack": None},
                "color": category(colour, named[colour], data.rows, sort=colours) | alone,
                "tooltip": tips,
            },
        },
    }  # fmt: skip
