"""The page: one HTML file with data, charts and scripts inside, which loads nothing from elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from edgewatt.config.kinds import AS_GIVEN
from edgewatt.pages.card import card_html
from edgewatt.pages.chart import (
    LEGEND,
    MANY_POINTS,
    Spec,
    charts,
    datasets,
    in_order,
    telling_fields,
    titles,
    varying_fields,
)
from edgewatt.pages.data import SIGNIFICANT, ReportData, gather, rounded
from edgewatt.pages.figures import save_figures
from edgewatt.pages.html.page import Page, asset, text
from edgewatt.results.record import Record, of_our_shape
from edgewatt.results.record_rows import COLUMNS, NAMING, Table, column, column_title, distinct, format_value
from edgewatt.results.store import Store, open_records
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.units import SCALES, prefixed

_DIGITS = {"text": None, "count": 0, "share": -1, "quantity": 0, "decimal": 4}  # after the point, by kind of column


def report(
    results: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    figures: str | Path | None = None,
    title: str | None = None,
) -> list[str]:
    """Write the report of results folders or records to an HTML file; return the paths written.

    results: one folder or record, or several, which then stand side by side and are told apart as `sweep`.
    output: the HTML file. title: of the page. figures: folder for every chart as PDF, SVG and PNG. Raises InputError if
    there is nothing to show or a file cannot be read or written, MissingExtraError without the extra 'report'.
    """
    data = read_results(results, title)
    with of_our_shape("a record"):
        drawn = charts(data)
    with whole_file(output) as stream, of_our_shape("a record"):
        stream.write(rendered(data, drawn).encode("utf-8", "backslashreplace"))
    return [str(output), *(save_figures(drawn, datasets(data), str(figures)) if figures else [])]


def read_results(results: str | Path | Sequence[str | Path], title: str | None = None) -> ReportData:
    folders = [Path(results)] if isinstance(results, (str, Path)) else [Path(each) for each in results]
    if not folders:
        raise InputError("a report needs at least one results folder or record")
    names = _distinct(folders)
    opened: list[Sequence[Record]] = []
    sweeps: list[str] = []
    headings: list[str] = []
    failed: dict[str, str] = {}
    baseline: str | None = None
    earlier = 0
    for number, (folder, name) in enumerate(zip(folders, names, strict=True)):
        folder_records = open_records(folder)
        opened.append(folder_records)
        sweeps += [name] * len(folder_records)
        heading = str(folder_records[0].provenance.get("name") or folder.name)
        if folder.is_dir():
            store = Store(folder)
            named, planned = store.plan()
            heading = named or heading
            earlier += len(store.hashes()) - len(folder_records)
            baseline = planned[0] if planned and number == 0 else baseline
            for key, failure in store.failed().items():
                failed[key] = f"{failure.get('point') or ''}: {failure.get('error', '')}".removeprefix(": ")
        headings.append(heading)
    several = sweeps if len(folders) > 1 else None
    heading = title or " | ".join(dict.fromkeys(headings))
    with of_our_shape("a record"):
        data = gather(chain(*opened), title=heading, baseline=baseline, failed=failed, sweeps=several)
    return replace(data, earlier=earlier)


def _distinct(folders: Sequence[Path]) -> list[str]:
    resolved = [Path(os.path.realpath(folder)) for folder in folders]
    if len(set(resolved)) < len(resolved):
        raise InputError("a results folder is named twice")
    for depth in range(1, 64):
        names = ["/".join(folder.parts[-depth:]) for folder in resolved]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in resolved]


def rendered(data: ReportData, drawn: Mapping[str, Spec] | None = None) -> str:
    drawn = charts(data) if drawn is None else drawn
    payload: dict[str, Any] = {
        "charts": drawn,
        "datasets": {key: _columns_of(rows) for key, rows in datasets(data).items() if rows},
        "columns": _columns(data),
        "spoken": [*NAMING, "sweep", *(axis.key for axis in data.axes)],  # what a point's name says where it varies
        "baseline": data.baseline,
        "legend": LEGEND,
        "many": MANY_POINTS,
        **_choosers(data),
        "records": data.about.whole,
    }
    words = "".join(f"<p>{text(line)}</p>" for line in summary(data))
    figures = "".join(
        f'<figure id="chart-{text(name)}" class="chart{" wide" if name in _wide(drawn) else ""}"></figure>'
        for name in drawn
    )
    body = asset(__file__, "report.html").format(
        card=card_html(data.verdict),
        words=words,
        figures=figures,
        failed=_failed(data),
        config=text(_pretty(data.about.configuration())),
        provenance=text(_pretty(data.about.provenance())),
    )
    script = "\n".join(asset(__file__, f"scripts/{name}.js") for name in _SCRIPTS)
    style = asset(__file__, "report.css")
    return Page(data.title, body, style=style, data=payload, script=script, charts=True).html()


def _wide(drawn: Mapping[str, Spec]) -> set[str]:
    wide = {name for name, spec in drawn.items() if spec.get("usermeta", {}).get("wide")}
    narrow = [name for name in drawn if name not in wide]
    return wide | ({narrow[-1]} if len(narrow) % 2 else set())


_SCRIPTS = ("many", "choice", "tradeoff", "parallel", "table", "record")
_NUMBERS = (  # what an axis may show
    *("time_ns", "energy_pj", "io_energy_pj", "dram_energy_pj", "onchip_energy_pj", "bytes", "ones", "toggles", "io"),
    *("runs", "cache_misses", "accuracy_loss"),
)
MOST_AXES = 10  # of the parallel coordinates


def _choosers(data: ReportData) -> dict[str, Any]:
    rows = data.rows
    numeric = [(key, column_title(key)) for key in _NUMBERS if len(set(rows.values(key))) > 1]
    numeric += [(a.key, a.title) for a in data.axes if a.numeric]
    if len(set(rows.values("memory"))) > 1:
        numeric.append(("memory", "M"))
    named, varying = titles(data), varying_fields(data)
    shown = [key for key in _NUMBERS[:2] if any(key == number for number, _ in numeric)] or ["io"]
    return {
        "numbers": [
            [key, title, *(SCALES.get(key.rpartition("_")[2]) or (1, ""))] for key, title in dict(numeric).items()
        ],
        "fields": [[key, named[key]] for key in varying],
        "parallel": [*varying[: MOST_AXES - len(shown)], *shown] if len(varying) > 1 else [],
        "telling": ["ordering"]
        if "ordering" in varying
        else telling_fields(data)[:1]
        if varying and data.played
        else [],
    }


def _columns(data: ReportData) -> list[list[Any]]:
    """Return the columns of the table: key, head, digits after the point (None: text; negative: per cent), factor."""
    columns: list[list[Any]] = [["label", "point", None, 1]]
    own = [(each.key, each.head, each.kind) for each in COLUMNS.values() if each.listed]
    swept = [(a.key, a.title, "count" if a.numeric else "text") for a in data.axes if a.key not in COLUMNS]
    settings = [each for each in own if each[0] in NAMING]
    costs = sorted((each for each in own if each[0] not in NAMING), key=lambda each: _FIRST.get(each[0], len(_FIRST)))
    shown = {*varying_fields(data), "seed", *(axis.key for axis in data.axes if axis.key.endswith("_seed"))}
    for key, head, kind in [("sweep", "sweep", "text"), *costs, *settings, *swept]:
        distinct = set(data.rows.values(key))
        constant = len(distinct) == 1 and len(data.rows) > 1
        setting = key in NAMING or any(key == each[0] for each in swept)
        if distinct == {None} or (setting and (constant or key not in shown)):
            continue
        if key.endswith("_bytes") and setting:
            columns.append([key, head.replace("(bytes)", "(KiB)"), 2, 1 / 1024])
            continue
        scale = SCALES[key.rpartition("_")[2]] if kind == "quantity" else None
        if scale is None:
            whole = kind != "count" or all(v is None or float(v).is_integer() for v in distinct)
            columns.append([key, head, _DIGITS[kind] if whole else _decimals(distinct), 1])
            continue
        power, unit = prefixed([None if v is None else v * scale[0] for v in distinct], scale[1])
        columns.append([key, f"{head} {unit}", 2, scale[0] / power])
    return columns


def _decimals(values: Iterable[Any]) -> int:
    """Return how many of three digits after the point the page has of all values."""
    largest = max((abs(value) for value in values if value is not None), default=0)
    return max(0, min(3, SIGNIFICANT - len(str(int(largest)))))


_FIRST = {key: k for k, key in enumerate(("energy_pj", "energy_change", "time_ns", "time_change", "bytes", "io"))}
"""Costs with which the table begins."""


Values = list[Any] | dict[str, list[Any]]


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Values]:
    keys = rows.columns if isinstance(rows, Table) else dict.fromkeys(key for row in rows for key in row)
    return {key: _column(column(rows, key)) for key in keys}


def _column(given: Iterable[Any]) -> Values:
    values = [rounded(v) for v in given]
    texts = {v for v in values if isinstance(v, str)}
    if len(values) > 50 and texts and len(texts) < len(values) // 3 and all(isinstance(v, str) for v in values):
        levels = sorted(texts)
        code = {text: i for i, text in enumerate(levels)}
        return {"levels": levels, "codes": [code[str(v)] for v in values]}
    return values


def _failed(data: ReportData) -> str:
    if not data.failed:
        return ""
    items = "".join(
        f"<li><code>{text(name)}</code> {text(error[:300])}</li>" for name, error in list(data.failed.items())[:200]
    )
    return f"<details><summary>{len(data.failed)} failed points</summary><ul>{items}</ul></details>"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


def summary(data: ReportData) -> list[str]:
    played = data.played
    if not played:
        counted = f"{len(data.rows)} points, counted with the I/O model alone."
        return [counted, *describe_swept(data), *_describe_work(data)]
    lanes = distinct(data.rows, "lanes")
    many = "" if lanes == [1] else f", {' or '.join(map(str, sorted(lanes)))} inputs at a time"
    per = f"; energy and time per inference{many}" if any(distinct(data.rows, "ordering")) else ""
    lines = [f"{len(played)} points{per}.", *describe_swept(data)]
    if idle := ", ".join(distinct(data.rows, "idle")):
        lines.append(f"Of the DRAM's static energy is billed: {idle}.")
    if data.verdict.proxies:
        rho = ", ".join(f"{name} {value:.2f}" for name, value in data.verdict.proxies.items())
        lines.append(f"Rank correlation with energy over the points: {rho}.")
    return lines + _describe_work(data)


_MOST_VALUES = 6


def describe_swept(data: ReportData) -> list[str]:
    parts, named = [], titles(data)
    for key in varying_fields(data):
        title = named[key]
        name, given = title.partition(" (")[0], in_order(distinct(data.rows, key))
        values = [format_value(title, value).removeprefix(f"{name} ") for value in given]
        more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
        parts.append(f"{name} ({', '.join(values[:_MOST_VALUES])}{more})")
    seeds = distinct(data.rows, "seed")
    parts += [f"seed ({len(seeds)} of them)"] if len(seeds) > 1 else []
    return [f"What differs: {'; '.join(parts)}."] if parts else []


def _describe_work(data: ReportData) -> list[str]:
    lines = []
    io, bound = list(data.rows.values("io")), list(data.rows.values("io_bound"))
    counted = [i for i, number in enumerate(io) if number]
    if counted:
        labels = list(data.rows.values("label"))
        low = data.rows[min(counted, key=lambda i: (io[i] / bound[i], labels[i]))]
        above = low["io"] / low["io_bound"] - 1
        argument = "Theorem 1" if low["bound"] == "theorem-1" else low["bound"]
        text = (
            "exactly its lower bound"
            if above == 0
            else f"{100 * above:.1f} % above its lower bound of {low['io_bound']:,} ({argument})"
        )
        name = ", ".join(
            [low["ordering"], *([] if low["stride"] == AS_GIVEN else [low["stride"]]), f"M = {low['memory']}"]
        )
        lines.append(f"Fewest I/Os for its network: {name} with {low['io']:,}, {text}.")
    zeroed: dict[str, int] = {}
    for number, name, count in zip(io, *map(data.rows.values, ("format", "zeroed_weights")), strict=True):
        if number and count:
            zeroed[name] = max(count, zeroed.get(name, 0))
    many = "At most, i" if len(distinct(data.rows, "network")) > 1 else "I"
    for name, count in zeroed.items():
        lines.append(f"{many}n {name}, {count:,} stored non-zero weights become zero.")
    if data.earlier:
        lines.append(
            f"{data.earlier} records of earlier sweeps in this folder are not shown; `edgewatt collect` has them."
        )
    if data.failed:
        lines.append(f"{len(data.failed)} points failed and are not shown; see the end of the page.")
    if older := data.about.older:
        count = data.about.count
        lines.append(f"{older} of {count} points were counted by an older version: the same sweep computes them again.")
    return lines
