"""The page: one HTML file with data, charts and scripts inside, which asks nothing of the network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from edgewatt._version import COUNTS_VERSION
from edgewatt.reporting.chart import LEGEND, charts, datasets
from edgewatt.reporting.data import ReportData, gather
from edgewatt.reporting.escaping import script_json, text
from edgewatt.reporting.figures import save_figures
from edgewatt.reporting.words import summary
from edgewatt.results.comparison import load_records
from edgewatt.results.record import Record
from traces.base.errors import MissingExtraError

_COLUMNS = (  # key, head, digits after the point (None: text)
    ("network", "network", None), ("trace", "trace", None), ("ordering", "ordering", None), ("stride", "stride", None),
    ("format", "format", None), ("memory", "M", 0), ("policy", "policy", None), ("encoder", "encoder", None),
    ("onchip", "on-chip memory", None), ("lanes", "lanes", 0), ("engines", "engines", 0), ("layout", "layout", None),
    ("part", "part", None), ("timing", "timing", None), ("seed", "seed", 0), ("runs", "runs", 0), ("reads", "reads", 0),
    ("writes", "writes", 0), ("io", "I/Os", 0), ("gap", "gap %", -1),
    ("gap_to_bound", "to best bound %", -1), ("bound", "best bound", None), ("hit_rate", "hit %", -1),
    ("cache_misses", "misses", 0), ("bytes", "bytes moved", 0),
    ("neuron_bytes", "bytes of rows", 0), ("ones", "ones", 0), ("toggles", "toggles", 0), ("io_energy_pj", "IO pJ", 0),
    ("dram_energy_pj", "DRAM pJ", 0), ("onchip_energy_pj", "chip pJ", 0),
    ("compute_energy_pj", "MAC pJ", 0), ("energy_pj", "energy pJ", 0), ("energy_low_pj", "energy pJ, low end", 0),
    ("energy_high_pj", "energy pJ, high end", 0), ("energy_change", "energy ± %", -1),
    ("time_ns", "time ns", 0), ("time_change", "time ± %", -1), ("accuracy", "right %", -1),
    ("agreement", "as float64 %", -1), ("relative_error", "relative error", 4), ("hash", "record", None),
)  # fmt: skip
_QUIET = (
    *("network", "memory", "policy", "encoder", "onchip", "lanes", "engines", "layout", "part", "timing", "seed"),
)  # columns shown only where they vary
_SIGNIFICANT = 7


def report(
    results: str | Path, output: str | Path, *, figures: str | Path | None = None, title: str | None = None
) -> list[str]:
    """Write the report of a results folder (or of one record) to an HTML file; return the paths written.

    figures: folder for every chart as PDF, SVG and PNG. Raises InputError if there is nothing to show or a file cannot
    be written, MissingExtraError without the extra 'report'.
    """
    from traces.base.files import whole_file

    records, data = read_results(results, title)
    page = render(records, data)
    with whole_file(output) as stream:
        stream.write(page.encode("utf-8", "backslashreplace"))
    return [str(output), *(save_figures(charts(data), datasets(data), str(figures)) if figures else [])]


def read_results(results: str | Path, title: str | None = None) -> tuple[list[Record], ReportData]:
    """Return the records of a results folder or record file, and what a report shows of them."""
    from edgewatt.results.store import Store

    records = load_records(results)
    name = ""
    planned: list[str] = []
    failed: dict[str, str] = {}
    if Path(results).is_dir():
        store = Store(results)
        name, planned = store.plan()
        failed = {key: str(value.get("error", "")) for key, value in store.failed().items()}
    heading = title or name or str(records[0].provenance.get("name") or Path(results).name)
    return records, gather(records, title=heading, baseline=planned[0] if planned else None, failed=failed)


def render(records: Sequence[Record], data: ReportData) -> str:
    """Return the page as text."""
    named = datasets(data)
    payload: dict[str, Any] = {
        "charts": charts(data),
        "datasets": {key: columnar(rows) for key, rows in named.items() if rows},
        "columns": _columns(data),
        "baseline": data.baseline,
        "legend": LEGEND,
    }
    words = "".join(f"<p>{text(line)}</p>" for line in [*summary(data), *_older(records)])
    figures = "".join(f'<figure id="chart-{text(name)}" class="chart"></figure>' for name in payload["charts"])
    return _template().format(
        title=text(data.title),
        style=asset("page.css"),
        words=words,
        figures=figures,
        failed=_failed(data),
        config=text(_config_text(records)),
        provenance=text(_pretty(_common_provenance(records))),
        data=script_json(payload),
        libraries=libraries(),
        script=asset("charts.js") + asset("table.js"),
    )


def _older(records: Sequence[Record]) -> list[str]:
    """Return a warning where points were counted by an older version."""
    older = sum(record.counts_version < COUNTS_VERSION for record in records)
    if not older:
        return []
    return [f"{older} of {len(records)} points were counted by an older version: the same sweep computes them again."]


def _columns(data: ReportData) -> list[list[Any]]:
    found = []
    for key, head, digits in _COLUMNS:
        values = {row.get(key) for row in data.rows}
        if values == {None} or (key in _QUIET and len(values) == 1 and len(data.rows) > 1):
            continue
        found.append([key, head, digits])
    return found


def columnar(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn rows into columns, floats to seven digits: a third of the size."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    short = lambda v: float(f"{v:.{_SIGNIFICANT}g}") if isinstance(v, float) else v  # noqa: E731
    columns: dict[str, Any] = {}
    for key in keys:
        values = [short(row.get(key)) for row in rows]
        texts = {v for v in values if isinstance(v, str)}
        if len(values) > 50 and texts and len(texts) < len(values) // 3 and all(isinstance(v, str) for v in values):
            levels = sorted(texts)
            place = {text: i for i, text in enumerate(levels)}
            columns[key] = {"levels": levels, "codes": [place[str(v)] for v in values]}
        else:
            columns[key] = values
    return columns


def _config_text(records: Sequence[Record]) -> str:
    """Return the configuration shared by all points, and what varies."""
    first = dict(records[0].config)
    common = {key: value for key, value in first.items() if all(r.config.get(key) == value for r in records)}
    varying = {}
    for key in sorted({k for r in records for k in r.config} - common.keys()):
        values = list(dict.fromkeys(json.dumps(r.config.get(key), sort_keys=True, ensure_ascii=False) for r in records))
        varying[key] = [json.loads(v) for v in values[:50]] + (["..."] if len(values) > 50 else [])
    return _pretty({"all points": common, "varying": varying} if varying else common)


def _common_provenance(records: Sequence[Record]) -> dict[str, Any]:
    first = dict(records[0].provenance)
    same = {key: value for key, value in first.items() if all(r.provenance.get(key) == value for r in records)}
    total = sum(float(r.provenance.get("duration_s") or 0.0) for r in records)
    return {**same, "computing time of all points (s)": round(total, 3)}


def _failed(data: ReportData) -> str:
    if not data.failed:
        return ""
    items = "".join(
        f"<li><code>{text(name)}</code> {text(error[:300])}</li>" for name, error in list(data.failed.items())[:200]
    )
    return f"<details><summary>{len(data.failed)} failed points</summary><ul>{items}</ul></details>"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


def drawing(title: str, spec: Any) -> str:
    """Return one chart as a self-contained page."""
    return asset("drawing.html").format(
        title=text(title), style=asset("page.css"), data=script_json(spec), libraries=libraries()
    )


def asset(name: str) -> str:
    """Return the text of a file beside this module."""
    return (Path(__file__).parent / name).read_text("utf-8")


def _template() -> str:
    return asset("page.html")


@cache
def libraries() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError("vl-convert-python", "report") from error
    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
