"""What searches found, against the work they spent."""

from __future__ import annotations

from edgewatt.pages.chart import CHARTS, FADED, Spec, base, category, quantity, tooltip
from edgewatt.pages.data import ReportData


@CHARTS.add("convergence", summary="best objective of searches against their work", place=50)
def convergence(data: ReportData) -> Spec | None:
    """Return the chart, or None without its data."""
    if not data.convergence:
        return None
    return base(
        "Searches",
        "curves",
        subtitle="best objective so far against work",
        mark={"type": "line", "interpolate": "step-after", "point": {"size": 15}},
        encoding={
            "opacity": FADED,
            "x": {**quantity("work", "search steps"), "scale": {"type": "log", "nice": False}},
            "y": {**quantity("objective", "objective"), "scale": {"zero": False}},
            "color": category("series", "search", data.convergence),
            "tooltip": tooltip(
                ("series", "search", ""), ("work", "search steps", ",d"), ("objective", "objective", ",.0f")
            ),
        },
    )  # fmt: skip
