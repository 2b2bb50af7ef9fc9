"""I/Os against the size of the fast memory, with the bounds of Theorem 1."""

from __future__ import annotations

from edgewatt.pages.chart import CHARTS, Spec, base, category, quantity, tooltip
from edgewatt.pages.data import ReportData


@CHARTS.add("io_memory", summary="I/Os against the size of the fast memory", place=30)
def io_memory(data: ReportData) -> Spec | None:
    sizes = {mark["memory"] for mark in data.io_curves}
    if len(sizes) < 2:
        return None
    networks = {mark["network"] for mark in data.io_curves}
    x = {"field": "memory", "type": "quantitative", "title": "fast memory M (values)",
         "scale": {"type": "log", "nice": False, "padding": 15} if len(sizes) > 2 else {"zero": False, "padding": 30},
    }  # fmt: skip
    y = {**quantity("io", "I/Os per inference"), "scale": {"zero": False}}
    bound: Spec = {"mark": {"type": "line", "strokeDash": [5, 4], "color": "#8C8C8C", "point": len(sizes) < 2}}
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "point": {"size": 45}},
            "encoding": {
                "x": x,
                "y": y,
                "color": category("series", "ordering", data.io_curves),
                "tooltip": tooltip(
                    ("series", "ordering", ""), ("policy", "policy", ""), ("memory", "M", ",d"), ("io", "I/Os", ",d"),
                    ("lower", "lower bound", ",d"), ("upper", "upper bound", ",d"),
                ),
            },
        },
        *(
            {
                **bound,
                "encoding": {"x": x, "y": {**y, "field": field}, "tooltip": tooltip((field, f"{field} bound", ",d"))},
            }
            for field in ("lower", "upper")
        ),
    ]  # fmt: skip
    if len({mark["policy"] for mark in data.io_curves}) > 1:
        layers[0]["encoding"]["strokeDash"] = {"field": "policy", "type": "nominal"}
    frame = base("I/Os against fast memory", "io", subtitle="dashed: bounds of Theorem 1")
    if len(networks) == 1:
        return {**frame, "layer": layers}
    return {
        **frame,
        "facet": {"field": "network", "type": "nominal", "title": None},
        "columns": 2,
        "spec": {"width": 260, "height": 220, "layer": layers},
        "resolve": {"scale": {"y": "independent"}},
    }
