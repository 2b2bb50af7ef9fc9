"""How far points that differ only in their seed lie apart."""

from __future__ import annotations

from edgewatt.pages.chart import (
    CHARTS,
    HEIGHT,
    IS_CHOSEN,
    PALETTE,
    Spec,
    base,
    in_order,
    named,
    quantity,
    room_for,
    written_tooltips,
)
from edgewatt.pages.data import ReportData


@CHARTS.add("spread", summary="points of several seeds, their median and their range", place=25)
def spread(data: ReportData) -> Spec | None:
    """Return the chart, or None where no point was repeated with another seed."""
    if not data.spread:
        return None
    metric, title = data.spread[0]["metric"], data.spread[0]["title"]
    marks = [{**mark, metric: mark["value"], f"median_{metric}": mark["median"]} for mark in data.spread]
    groups = in_order(mark["group"] for mark in marks)
    x = {**quantity(metric, title), "scale": {"zero": False}}
    y = named("group", groups)
    transforms, tips = written_tooltips(
        ("group", "point", ""), ("seed", "seed", ",d"), (metric, title, ",.0f"), (f"median_{metric}", "median", ",.0f")
    )
    frame = base(f"Spread of {title} over seeds", "spread", subtitle="a point a seed; bar: least to most; tick: median")
    return {
        **frame,
        **room_for(groups),
        "data": {"values": marks},
        "height": {"step": max(14, HEIGHT // len(groups))},
        "transform": transforms,
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 8, "opacity": 0.25, "color": PALETTE[0]},
                "encoding": {
                    "x": {**x, "field": "low", "aggregate": "min"}, "x2": {"field": "high", "aggregate": "max"}, "y": y,
                },
            },
            {
                "mark": {"type": "tick", "thickness": 2.5, "size": 20, "color": PALETTE[5]},
                "encoding": {"x": {**x, "field": "median", "aggregate": "max"}, "y": y},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 45, "color": PALETTE[0]},
                "encoding": {
                    "x": x, "y": y, "tooltip": tips,
                    "opacity": {"condition": {"test": IS_CHOSEN, "value": 0.8}, "value": 0.08},
                },
            },
        ],
    }  # fmt: skip
