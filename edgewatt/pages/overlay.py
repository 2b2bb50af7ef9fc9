"""Digitised figures of papers, as CSV, drawn on the charts that have the same axes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from edgewatt.pages.chart import Spec, quantity
from traces.base.errors import InputError

MOST_POINTS = 100_000
MOST_CHARACTERS = 1 << 24
_COLOUR = "#8C8C8C"


def read_overlay(path: str | Path) -> tuple[str, str, list[dict[str, Any]]]:
    """Return (x, y, points) of a CSV file: a head of two columns named as in `edgewatt collect`, perhaps a third,
    ``series``; then a point a line. Raises InputError naming file and line.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            text = stream.read(MOST_CHARACTERS + 1)
        if len(text) > MOST_CHARACTERS:
            raise InputError(f"{path}: more than {MOST_CHARACTERS:,} characters are no digitised figure")
        reader = csv.reader(io.StringIO(text, newline=""))
        filled = ((reader.line_num, line) for line in reader if any(cell.strip() for cell in line))
        lines = list(islice(filled, MOST_POINTS + 2))
    except InputError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV ({getattr(error, 'strerror', None) or error})") from error
    if len(lines) < 2 or len(lines[0][1]) not in (2, 3):
        raise InputError(f"{path}: expected a head such as 'memory,io,series' and a point a line")
    if len(lines) > MOST_POINTS + 1:
        raise InputError(f"{path}: more than {MOST_POINTS} points")
    x, y = (cell.strip() for cell in lines[0][1][:2])
    points = []
    for number, cells in lines[1:]:
        try:
            first, second = (float(cell) for cell in cells[:2])
        except ValueError:
            raise InputError(f"{path}:{number}: expected two numbers, not {', '.join(cells)[:60]!r}") from None
        if not (math.isfinite(first) and math.isfinite(second)):
            raise InputError(f"{path}:{number}: {first}, {second}: not finite")
        series = cells[2].strip() if len(cells) > 2 else Path(path).stem
        points.append({x: first, y: second, "overlay": series})
    return x, y, points


def overlaid(charts: Mapping[str, Spec], paths: Sequence[str | Path]) -> dict[str, Spec]:
    """Return the charts with the points of CSV files on those that have their axes. Raises InputError if none has."""
    drawn = dict(charts)
    for number, path in enumerate(paths):
        x, y, points = read_overlay(path)
        fitting = [name for name, spec in drawn.items() if (x, y) in set(_axes(spec))]
        if not fitting:
            known = sorted({" and ".join(axes) for spec in drawn.values() for axes in _axes(spec)})
            raise InputError(f"{path}: no chart has {x} and {y} as its axes: name the columns {' or '.join(known)}")
        for name in fitting:
            drawn[name] = {**drawn[name], "layer": [*drawn[name]["layer"], *_layers(x, y, points, f"overlay{number}")]}
    return drawn


def _axes(spec: Spec) -> Iterator[tuple[str, str]]:
    for layer in spec.get("layer", ()):
        encoding = layer.get("encoding", {})
        if "field" in encoding.get("x", {}) and "field" in encoding.get("y", {}):
            yield encoding["x"]["field"], encoding["y"]["field"]


def _layers(x: str, y: str, points: list[dict[str, Any]], name: str) -> list[Spec]:
    encoding: Spec = {
        "x": quantity(x, ""), "y": quantity(y, ""), "detail": {"field": "overlay", "type": "nominal"},
        "tooltip": [{"field": "overlay", "title": "digitised", "type": "nominal"}, {"field": x}, {"field": y}],
    }  # fmt: skip
    for axis in ("x", "y"):
        encoding[axis].pop("title"), encoding[axis].pop("axis")  # the chart's own stay
    last = {point["overlay"]: point for point in points}
    data = {"values": points}
    line: Spec = {"type": "line", "color": _COLOUR, "strokeDash": [2, 2]}
    mark: Spec = {"type": "point", "shape": "diamond", "color": _COLOUR, "size": 45}
    return [
        {"name": f"{name}-line", "data": data, "mark": line, "encoding": encoding},
        {"name": f"{name}-points", "data": data, "mark": mark, "encoding": encoding},
        {
            "name": f"{name}-text",
            "data": {"values": list(last.values())},
            "mark": {"type": "text", "align": "left", "dx": 7, "color": _COLOUR, "limit": 140},
            "encoding": {**{k: encoding[k] for k in ("x", "y")}, "text": {"field": "overlay", "type": "nominal"}},
        },
    ]
