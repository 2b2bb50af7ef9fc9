"""The report's charts elsewhere: in print (PDF, SVG, PNG), and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewatt.pages.chart import CHARTS, LEGEND, Spec, datasets
from edgewatt.pages.data import gather
from edgewatt.results.record import Record
from traces.base.errors import InputError, MissingExtraError
from traces.base.files import whole_file


def themed(spec: Spec) -> Spec:
    ink, grid = "#1f2328", "#d8dce1"
    axis = {"labelColor": ink, "titleColor": ink, "gridColor": grid, "domainColor": grid, "tickColor": grid}
    legend = {"labelColor": ink, "titleColor": ink, "symbolBaseFillColor": ink, "symbolBaseStrokeColor": ink, **LEGEND}
    config = {
        "background": "white",
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
        return self.chart("energy_time")

    def energy(self) -> Any:
        return self.chart("three_columns")

    def io(self) -> Any:
        return self.chart("io_memory")

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
