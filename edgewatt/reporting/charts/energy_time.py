"""Energy against time, with the Pareto front of the two."""

from __future__ import annotations

from edgewatt.reporting.chart import CHARTS, FIELDS, Spec, base, category, quantity, telling_fields, tooltip
from edgewatt.reporting.data import ReportData

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


@CHARTS.add("energy_time", summary="energy against time, with the Pareto front", place=10)
def energy_time(data: ReportData) -> Spec | None:
    """Return the chart, or None without its data."""
    if not any("energy_pj" in row for row in data.rows):
        return None
    varying = telling_fields(data)
    zero: Spec = {"scale": {"zero": False}}
    encoding: Spec = {
        "x": quantity("time_ns", "time (ns)", **zero),
        "y": quantity("energy_pj", "energy (pJ)", **zero),
    }
    marks: Spec = dict(encoding)
    if varying:
        marks["color"] = category(varying[0], FIELDS[varying[0]], data.rows)
    if len(varying) > 1 and len({row.get(varying[1]) for row in data.rows}) <= 8:
        shape = category(varying[1], FIELDS[varying[1]], data.rows)
        marks["shape"] = {key: value for key, value in shape.items() if key != "scale"}
    fields = _POINT if "io" in (data.rows or [{}])[0] else tuple(f for f in _POINT if f[0] != "io")
    front: Spec = {"transform": [{"filter": "datum.on_front"}]}
    spec = base(
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
                "encoding": {**marks, "tooltip": tooltip(*fields)},
            },
            {
                **front,
                "mark": {"type": "point", "filled": False, "size": 190, "color": "#8C8C8C", "shape": "circle"},
                "encoding": encoding,
            },
        ],
    )
    return spec
