"""Energy against time, with the Pareto front of the two."""

from __future__ import annotations

from edgewatt.pages.chart import (
    CHARTS,
    IS_CHOSEN,
    MANY_POINTS,
    Spec,
    base,
    category,
    quantity,
    telling_fields,
    titles,
    written_tooltips,
)
from edgewatt.pages.data import ReportData

_POINT = (
    ("label", "point", ""),
    ("energy_pj", "energy", ""),
    ("energy_change", "energy against baseline", "+.1%"),
    ("time_ns", "time", ""),
    ("time_change", "time against baseline", "+.1%"),
    ("ones", "ones", ","),
    ("toggles", "toggles", ","),
    ("io", "I/Os", ","),
)
# The page chooses points with the brush, moves with the shift key and zooms with the wheel.
_BRUSH = "[pointerdown[!event.shiftKey], window:pointerup] > window:pointermove!"
_MOVE = "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!"


@CHARTS.add("energy_time", summary="energy against time, with the Pareto front", place=10)
def energy_time(data: ReportData) -> Spec | None:
    """Return the chart, or None without its data."""
    if not data.played:
        return None
    names, varying = titles(data), telling_fields(data)
    varying.sort(key=lambda field: field != "ordering")  # the order is the question; what decides most is the shape
    zero: Spec = {"scale": {"zero": False}}
    encoding: Spec = {"x": quantity("time_ns", "time", **zero), "y": quantity("energy_pj", "energy", **zero)}
    many = len(data.rows) > MANY_POINTS
    marks: Spec = {
        **encoding,
        "opacity": {"condition": {"test": IS_CHOSEN, "value": 0.35 if many else 0.85}, "value": 0.02 if many else 0.08},
    }
    if varying:
        marks["color"] = category(varying[0], names[varying[0]], data.rows)
    if not many and len(varying) > 1 and len(set(data.rows.values(varying[1]))) <= 8:
        shape = category(varying[1], names[varying[1]], data.rows)
        marks["shape"] = {key: value for key, value in shape.items() if key != "scale"}
    swept = tuple((axis.key, axis.title, "") for axis in data.axes)
    transforms, tips = written_tooltips(*(f for f in (*_POINT, *swept) if f[0] in data.rows.columns))
    point: Spec = {"type": "point", "filled": True, "size": 22 if many else 70}
    if many:  # the page writes tooltips itself when one is shown, not ten thousand at every change
        transforms, point["tooltip"] = [], {"content": "data"}
    else:
        marks["tooltip"] = tips
    front: Spec = {"transform": [{"filter": "datum.on_front"}]}
    line: Spec = {"type": "line", "interpolate": "step-after", "color": "#8C8C8C", "strokeDash": [4, 3]}
    ring: Spec = {"type": "point", "filled": False, "size": 190, "color": "#8C8C8C", "shape": "circle"}
    return base(
        "Energy against time",
        "rows",
        subtitle="the line is the Pareto front",
        transform=transforms,
        layer=[
            {**front, "mark": line, "encoding": encoding},
            {
                "mark": point,
                "params": [
                    {"name": "brush", "select": {"type": "interval", "on": _BRUSH, "zoom": False, "translate": False}},
                    {
                        "name": "zoom",
                        "select": {"type": "interval", "on": _MOVE, "translate": _MOVE, "zoom": "wheel!"},
                        "bind": "scales",
                    },
                ],
                "encoding": marks,
            },
            {**front, "mark": ring, "encoding": encoding},
        ],
    )
