"""How often each wire of the bus toggles."""

from __future__ import annotations

from edgewatt.pages.chart import CHARTS, IS_CHOSEN, Spec, base, named, room_for, tooltip
from edgewatt.pages.data import ReportData


@CHARTS.add("wires", summary="share of beats in which each wire toggles", place=40)
def wires(data: ReportData) -> Spec | None:
    """Return the chart, or None without its data."""
    if not data.wires:
        return None
    points = list(dict.fromkeys(mark["point"] for mark in data.wires))
    return {
        **base("Wires", "wires", subtitle="share of beats in which each one toggles"),
        **room_for(points),
        "width": 310,
        "height": {"step": 22},
        "mark": {"type": "rect"},
        "encoding": {
            "opacity": {"condition": {"test": IS_CHOSEN, "value": 1}, "value": 0.15},
            "x": {"field": "wire", "type": "nominal", "title": "wire", "sort": {"field": "position"},
                  "axis": {"labelAngle": -60, "labelOverlap": True}},
            "y": named("point", points),
            "color": {"field": "toggle_share", "type": "quantitative", "title": "toggles per beat",
                      "scale": {"scheme": "cividis"}, "legend": {"format": ".0%"}},
            "tooltip": tooltip(
                ("point", "point", ""), ("wire", "wire", ""), ("toggles", "toggles", ",d"), ("ones", "ones", ",d"),
                ("toggle_share", "toggles per beat", ".1%"), ("ones_share", "ones per beat", ".1%"),
            ),
        },
    }  # fmt: skip
