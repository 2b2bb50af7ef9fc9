"""What the energy of a point is made of: DRAM, wires, on-chip memory and arithmetic, one stacked bar a point."""

from __future__ import annotations

from typing import Any

from edgewatt.pages.chart import CHARTS, PALETTE, Spec, base, named, quantity, room_for, tooltip, written_tooltips
from edgewatt.pages.data import ReportData

PARTS = ("DRAM", "data wires", "strobes, clock, commands", "on-chip memory", "compute")
MOST_BARS = 16


@CHARTS.add("energy_parts", summary="what energy is made of, by point", place=15)
def energy_parts(data: ReportData) -> Spec | None:
    """Bars of the baseline, the front and then the points of least energy; a line from the low to the high end of what
    they are estimated to take."""
    played = data.played
    if not played:
        return None
    seeds = data.rows.values("seed")  # of several the baseline's stands for all
    played = [i for i in played if seeds[i] == seeds[data.baseline]] or played
    first = [i for i in (data.baseline, *data.front) if i in played]
    by_energy = sorted(played, key=list(data.rows.values("energy_pj")).__getitem__)
    rows = [data.rows[i] for i in list(dict.fromkeys([*first, *by_energy]))[:MOST_BARS]]
    bars = [bar for row in rows for bar in _bars(row)]
    ranges = [
        {"point": row["label"], "low_pj": row["energy_low_pj"], "high_pj": row["energy_high_pj"]}
        for row in rows
        if row.get("energy_low_pj") is not None
    ]
    labels = [row["label"] for row in rows]
    y = named("point", labels)
    written, tips = written_tooltips(("point", "point", ""), ("part", "part", ""), ("pj", "energy", ""))
    ends_written, ends_tips = written_tooltips(("point", "point", ""), ("low_pj", "low", ""), ("high_pj", "high", ""))
    stacks: dict[str, Any] = {
        "transform": written,
        "mark": {"type": "bar"},
        "encoding": {
            "y": y,
            "x": {**quantity("pj", "energy"), "stack": "zero"},
            "color": {"field": "part", "type": "nominal", "title": None, "sort": list(PARTS),
                      "scale": {"domain": list(PARTS), "range": PALETTE}},
            "order": {"field": "order"},
            "tooltip": [*tips, *tooltip(("share", "share", ".1%"))],
        },
    }  # fmt: skip
    ends: dict[str, Any] = {
        "data": {"values": ranges},
        "transform": ends_written,
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {
            "y": y,
            "x": quantity("low_pj", "energy"),
            "x2": {"field": "high_pj"},
            "tooltip": ends_tips,
        },
    }
    subtitle = "line: range of all estimates" if ranges else ""
    return {
        **base("What energy is made of", "rows", subtitle=subtitle),
        **room_for(labels),
        "data": {"values": bars},
        "height": max(22 * len(rows), 60),
        "layer": [stacks, *([ends] if ranges else [])],
    }


def _bars(row: dict[str, Any]) -> list[dict[str, Any]]:
    wires = row["memory_energy_pj"] - row["dram_energy_pj"]
    each = (
        row["dram_energy_pj"],
        row["io_energy_pj"],
        wires - row["io_energy_pj"],
        row.get("onchip_energy_pj"),
        row.get("compute_energy_pj"),
    )
    total = row["energy_pj"]
    return [
        {"point": row["label"], "part": part, "order": k, "pj": pj, "share": pj / total if total else 0.0}
        for k, (part, pj) in enumerate(zip(PARTS, each, strict=True))
        if pj
    ]
