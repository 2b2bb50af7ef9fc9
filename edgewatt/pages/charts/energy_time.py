"""Energy against time, with the Pareto front of the two."""

from __future__ import annotations

from statistics import median
from typing import Any

from edgewatt.pages.chart import (
    CHARTS,
    FADED,
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
    pooled = [] if many else _pooled(data)
    if pooled:
        marks["opacity"]["condition"]["value"] = 0.45
    front: Spec = {"transform": [{"filter": "datum.on_front"}]}
    line: Spec = {"type": "line", "interpolate": "step-after", "color": "#8C8C8C", "strokeDash": [4, 3]}
    ring: Spec = {"type": "point", "filled": False, "size": 190, "color": "#8C8C8C", "shape": "circle"}
    return base(
        "Energy against time",
        "rows",
        subtitle="line: Pareto front" + ("; cross: range over seeds" if pooled else ""),
        transform=transforms,
        layer=[
            {**front, "mark": line, "encoding": encoding},
            *_crosses(pooled, encoding, marks.get("color")),  # under the points, which answer the pointer
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


def _pooled(data: ReportData) -> list[dict[str, Any]]:
    found = []
    for ids in data.groups:
        rows = [data.rows[number] for number in ids]
        if any(row.get("energy_pj") is None for row in rows):
            continue
        cross = dict(sorted(rows, key=lambda row: float(row["energy_pj"]))[len(rows) // 2])
        for key in ("energy_pj", "time_ns"):
            values = [row[key] for row in rows]
            cross |= {key: median(values), f"low_{key}": min(values), f"high_{key}": max(values)}
        found.append(cross)
    return found


def _crosses(pooled: list[dict[str, Any]], encoding: Spec, color: Spec | None) -> list[Spec]:
    if not pooled:
        return []
    fields = {"id", "energy_pj", "time_ns", *([color["field"]] if color else [])}
    keys = fields | {f"{end}_{key}" for end in ("low", "high") for key in ("energy_pj", "time_ns")}
    values: Spec = {"values": [{key: row[key] for key in sorted(keys)} for row in pooled]}
    paint: Spec = {"opacity": FADED, **({"color": color} if color else {})}
    layers: list[Spec] = [
        {
            "data": values,
            "mark": {"type": "point", "filled": True, "shape": "cross", "size": 240},
            "encoding": {**encoding, **paint},
        }
    ]
    for own, key in (("x", "time_ns"), ("y", "energy_pj")):
        ends = {own: {**encoding[own], "field": f"low_{key}"}, f"{own}2": {"field": f"high_{key}"}}
        layers.append({"data": values, "mark": {"type": "rule"}, "encoding": {**encoding, **paint, **ends}})
    return layers
