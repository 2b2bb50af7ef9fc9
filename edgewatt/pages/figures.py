"""The report's charts elsewhere: in print (PDF, SVG, PNG), in a notebook, and with digitised figures on them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from edgewatt.pages.chart import CHARTS, LEGEND, Spec, datasets, quantity
from edgewatt.pages.data import gather
from edgewatt.results.record import Record
from traces.base.errors import InputError, MissingExtraError
from traces.base.files import whole_file


def themed(spec: Spec, *, dark: bool = False) -> Spec:
    """Return the specification with the colours of a light or dark page."""
    ink, grid = ("#e6e6e6", "#3a3f46") if dark else ("#1f2328", "#d8dce1")
    axis = {"labelColor": ink, "titleColor": ink, "gridColor": grid, "domainColor": grid, "tickColor": grid}
    legend = {"labelColor": ink, "titleColor": ink, "symbolBaseFillColor": ink, "symbolBaseStrokeColor": ink, **LEGEND}
    config = {
        "background": "transparent" if dark else "white",
        "font": "system-ui, sans-serif",
        "view": {"stroke": grid},
        "axis": axis,
        "axisY": {"labelLimit": 420},
        "legend": legend,
        "title": {"color": ink, "subtitleColor": ink, "fontSize": 14},
        "header": {"labelColor": ink, "titleColor": ink},
    }
    return {**spec, "config": config}


def save_figures(
    charts: Mapping[str, Spec], datasets: Mapping[str, Sequence[dict[str, Any]]], folder: str
) -> list[str]:
    """Write every chart as PDF, SVG and PNG into a folder; return the paths. Raises MissingExtraError, InputError."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report") from error
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{folder}: is a file: the figures need a folder") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror or error})") from error
    paths = []
    for name, spec in charts.items():
        data = spec["data"].get("name")  # a chart may bring values of its own
        full = themed({**spec, "datasets": {data: list(datasets[data])}} if data else spec)
        for suffix, content in (
            ("svg", vl_convert.vegalite_to_svg(full).encode()),
            ("pdf", vl_convert.vegalite_to_pdf(full)),
            ("png", vl_convert.vegalite_to_png(full, scale=2)),
        ):
            path = Path(folder) / f"{name}.{suffix}"
            with whole_file(path) as stream:
                stream.write(content)
            paths.append(str(path))
    return paths


class Plots:
    """Charts of some records. Each method returns an `altair.Chart`, to be shown, changed or saved.

    Raises InputError where the records cannot fill a chart, MissingExtraError without the extra `report`.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = list(records)
        if not self._records:
            raise InputError("there are no finished points to plot")

    def tradeoff(self) -> Any:
        """Energy against time, with the Pareto front."""
        return self.chart("energy_time")

    def energy(self) -> Any:
        """Energy row by row, in simple blocks and of the best order found."""
        return self.chart("three_columns")

    def io(self) -> Any:
        """I/Os against the size of the fast memory."""
        return self.chart("io_memory")

    def spread(self) -> Any:
        """Points that differ in their seed alone, their median and range."""
        return self.chart("spread")

    def wires(self) -> Any:
        """How often each wire toggles."""
        return self.chart("wires")

    def searches(self) -> Any:
        """Best objective of searches against their work."""
        return self.chart("convergence")

    def chart(self, name: str) -> Any:
        """Return any chart of `edgewatt list charts` by its name, a plug-in's, too."""
        draw = CHARTS[name].item.draw
        try:
            import altair
        except ImportError as error:
            raise MissingExtraError("altair", "report") from error
        data = gather(self._records, title="", baseline=None, failed={})
        spec = draw(data)
        if spec is None:
            raise InputError(f"chart {name!r} has nothing to show of these points")
        named = spec["data"].get("name")
        rows = list(datasets(data)[named]) if named else spec["data"]["values"]
        own = ("$schema", *(("width", "height") if "facet" in spec else ()))  # a grid's cells have the size
        spec = {key: value for key, value in spec.items() if key not in own}
        return altair.Chart.from_dict({**spec, "data": {"values": rows}})


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
