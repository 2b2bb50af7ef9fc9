"""Row by row, best simple blocking and the best order found: a line each over the size on chip, or bars by hardware."""

from __future__ import annotations

from edgewatt.pages.chart import CHARTS, PALETTE, Spec, base, named, quantity, room_for, written_tooltips
from edgewatt.pages.data import ReportData

COLUMNS = ("row by row", "blocking", "found")
MOST_BARS = 24


@CHARTS.add("three_columns", summary="energy row by row, in simple blocks and of the best order found", place=12)
def three_columns(data: ReportData) -> Spec | None:
    cards = data.verdict.cards[:MOST_BARS]
    names = [name for name in COLUMNS if any(name == each[0] for card in cards for each in card.columns)]
    if len(names) < 2:
        return None
    axis = next((a for a in data.axes if a.key in ("scratchpad_size_bytes", "caches_0_size_bytes")), None)
    sizes = None if axis is None else [axis.values[card.row] for card in cards]
    marks = [
        {"id": card.row, "hardware": card.hardware, "column": name, "order": order, "layout": layout, "energy_pj": pj,
         "time_ns": ns, "kib": None if sizes is None or sizes[k] is None else sizes[k] / 1024}
        for k, card in enumerate(cards) for name, order, layout, pj, ns in card.columns
    ]  # fmt: skip
    written, tips = written_tooltips(
        ("hardware", "hardware", ""), ("order", "order", ""), ("layout", "layout", ""), ("energy_pj", "energy", ""),
        ("time_ns", "time", ""),
    )  # fmt: skip
    colour = {"field": "column", "type": "nominal", "title": None, "sort": names,
              "scale": {"domain": list(COLUMNS), "range": PALETTE}}  # fmt: skip
    frame = {
        **base("Energy of an inference by order", "columns", subtitle="with the stride and format to take"),
        "data": {"values": marks},
        "transform": written,
    }
    if sizes is not None and None not in sizes and len(set(sizes)) == len(sizes) > 2:
        x = {"field": "kib", "type": "quantitative", "title": "on-chip memory (KiB)",
             "scale": {"type": "log", "base": 2, "nice": False, "padding": 15},
             "axis": {"values": sorted(size / 1024 for size in sizes)}}  # fmt: skip
        y = {**quantity("energy_pj", "energy"), "scale": {"zero": True}}
        mark = {"type": "line", "point": {"size": 55}}
        return {**frame, "layer": [{"mark": mark, "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips}}]}
    labels = [card.hardware for card in cards]
    return {
        **frame,
        **room_for(labels),
        "height": max(26 * len(names) * len(cards) // 2, 90),
        "mark": {"type": "bar"},
        "encoding": {
            "y": named("hardware", labels), "yOffset": {"field": "column", "type": "nominal", "sort": names},
            "x": quantity("energy_pj", "energy"), "color": colour, "tooltip": tips,
        },
    }  # fmt: skip
