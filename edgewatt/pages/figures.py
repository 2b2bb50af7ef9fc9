"""The page's charts in print: the same specifications with data and theme put in, as PDF, SVG and PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewatt.pages.chart import LEGEND, Spec
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
