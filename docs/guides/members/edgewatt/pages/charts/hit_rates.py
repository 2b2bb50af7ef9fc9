"""Hit rate of the first cache level, one bar a point."""

from __future__ import annotations

from edgewatt.pages.chart import CHARTS, Spec, base, quantity, tooltip
from edgewatt.pages.data import ReportData


@CHARTS.add("hit_rates", summary="hit rate of the first cache level", place=60)
def hit_rates(data: ReportData) -> Spec | None:
    """Draw the bars, or nothing where no point has a cache."""
    if not any(row.get("hit_rate") is not None for row in data.rows):
        return None
    return base(
        "Hit rates",
        "rows",
        mark="bar",
        encoding={
            "x": quantity("hit_rate", "hits of the first level"),
            "y": {"field": "label", "type": "nominal", "title": None},
            "tooltip": tooltip(("label", "point", ""), ("hit_rate", "hits", ".1%")),
        },
    )
