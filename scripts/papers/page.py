"""The page: every figure that was run, and the papers' printed claims beside what we measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import log10
from pathlib import Path
from re import sub
from typing import Any

from edgewatt._version import COUNTS_VERSION
from edgewatt.pages.chart import LEGEND
from edgewatt.pages.html.page import Page, asset, text
from edgewatt.pages.report import columnar
from edgewatt.results.record import of_our_shape
from papers.charts import chart, chart_rows, study_chart
from papers.claims import Catalogue, Claim, Figure, cited, load_catalogue, short
from papers.measurements import Measurement, PanelGroup, measure, summarise
from papers.measures import MEASURES, NOT_RUN
from papers.reproduction import Reproduction
from papers.statistics import interval_words
from papers.study import STUDIES, Drawing, StudyRun, StudyTable
from traces.base.errors import InputError

VERDICTS = ("agrees", "agrees under a reading", "differs", "not measured")

Row = dict[str, Any]
Run = Reproduction | StudyRun


def compare_claims(reproductions: Sequence[Run]) -> list[Row]:
    """Return one row a claim of the papers that were run: what is printed, what we measured, how far they compare.

    `figures`: those of the claim that were run, as `python scripts/papers NAME` and the page's sections call them.
    `measured` is False where none of the claim's figures has been run, or the claim is none that can be measured here.
    """
    catalogue = load_catalogue()
    studies = {run.name: run for run in reproductions if isinstance(run, StudyRun)}
    papers = {(catalogue.figures | catalogue.studies)[run.name].paper for run in reproductions}
    with _read(reproductions):
        measured = _measurements(reproductions)
        shown = [claim for claim in catalogue.claims if claim.paper in papers]
        run = [run.name for run in reproductions if run.records]
        return [
            _claim_row(catalogue, claim, measured, studies) | {"figures": [f for f in claim.figures if f in run]}
            for claim in shown
        ]


def _read(reproductions: Sequence[Run]) -> AbstractContextManager[None]:
    return of_our_shape("results of " + ", ".join(run.name for run in reproductions))


def _claim_row(
    catalogue: Catalogue, claim: Claim, measured: Mapping[str, list[Measurement]], studies: Mapping[str, StudyRun]
) -> Row:
    row: Row = {
        "claim": claim.says,
        "paper": catalogue.papers[claim.paper].title,
        "where": f"{short(catalogue.papers[claim.paper])}, {claim.where}",
        "theirs": "",
        "ours": "",
        "verdict": claim.verdict,
        "because": claim.because,
        "measured": False,
    }
    if claim.measure is None:
        return row | {"theirs": "not measured", "ours": "not measured"}
    name, _, measure_ = claim.measure.partition(":")
    if measure_:
        done = studies[name].done if name in studies else []
        theirs, ours = STUDIES[name].item.measures[measure_](done) if done else (NOT_RUN, NOT_RUN)
        return row | {"theirs": theirs, "ours": ours, "measured": bool(done)}
    run = {name: measured[name] for name in claim.figures if measured.get(name)}
    row["measured"] = bool(run)
    missing = [name for name in claim.figures if name not in run]
    finding = MEASURES[claim.measure]
    note = f" (without {', '.join(missing)})" if run and missing else ""
    for role in ("theirs", "ours"):
        words = finding(run, role) if run else NOT_RUN
        row[role] = words + (note if words and words != NOT_RUN else "")
    return row


def paper_page(reproductions: Sequence[Run], output: str | Path, *, figures: str | Path | None = None) -> list[str]:
    """Write one self-contained page about figures that `reproduce` returned; return the paths written.

    figures: folder for every chart as PDF, SVG and PNG. Raises InputError if nothing is finished or a file cannot be
    written, MissingExtraError without the extra 'report'.
    """
    from edgewatt.pages.figures import save_figures
    from traces.base.files import whole_file

    with _read(reproductions):
        charts, rows = _charts(reproductions)
        page = render(reproductions)
    with whole_file(output) as stream:
        stream.write(page.encode("utf-8", "backslashreplace"))
    return [str(output), *(save_figures(charts, rows, str(figures)) if figures else [])]


def render(reproductions: Sequence[Run]) -> str:
    """Return the page as text."""
    charts, rows = _charts(reproductions)
    catalogue = load_catalogue()
    shown = [run for run in reproductions if run.records]
    links = (f'<a href="#{text(run.name)}">{text(run.name)}</a>' for run in shown)
    body = asset(__file__, "papers.html").format(
        links=" · ".join(links),
        claims=_claims_table(compare_claims(reproductions)),
        figures="".join(
            _study_section(catalogue, run)
            if isinstance(run, StudyRun)
            else _section(catalogue, run, catalogue.figures[run.name])
            for run in shown
        ),
        provenance=text(json.dumps(_provenance(reproductions), indent=2, ensure_ascii=False)),
    )
    data = {"charts": charts, "datasets": {name: columnar(drawn) for name, drawn in rows.items()}, "legend": LEGEND}
    style = asset(__file__, "papers.css")
    return Page("The papers' figures, repeated", body, style=style, data=data, charts=True).html()


def _heading(catalogue: Catalogue, run: Run) -> str:
    figure = (catalogue.figures | catalogue.studies)[run.name]
    return f"{text(cited(catalogue, figure))}: {text(figure.title)}"


def _charts(reproductions: Sequence[Run]) -> tuple[dict[str, Any], dict[str, list[Row]]]:
    """Return the chart of each figure that has finished points, and the rows it draws, by the figure's name.

    Charts of a study are called by its name and the figure, and bring their values.
    """
    figures = load_catalogue().figures
    measured = {name: measurements for name, measurements in _measurements(reproductions).items() if measurements}
    if not any(run.records for run in reproductions):
        raise InputError("no point of these figures is finished yet: run `python scripts/papers NAME` without --no-run")
    rows = {name: chart_rows(figures[name], summarise(measurements)) for name, measurements in measured.items()}
    drawn = {name: chart(name, figures[name], drawn) for name, drawn in rows.items()}
    for run in reproductions:
        if isinstance(run, StudyRun) and run.records:
            drawings = (table.drawn for table in STUDIES[run.name].item.tables(run.done))
            drawn |= {_chart_name(run, d): study_chart(d) for d in drawings if d is not None and d.marks}
    return drawn, rows


def _chart_name(run: StudyRun, drawing: Drawing) -> str:
    return f"{run.name}-{drawing.figure}"


def _measurements(reproductions: Sequence[Run]) -> dict[str, list[Measurement]]:
    figures = load_catalogue().figures
    return {r.name: measure(figures[r.name], r.records) for r in reproductions if isinstance(r, Reproduction)}


CLAIM_HEADS = ("printed, in our words", "the paper's method, as we ran it", "our method", "verdict")


def _claims_table(rows: list[Row]) -> str:
    """One table, paper by paper; claims whose figures were not run come last."""
    papers: dict[str, list[Row]] = {}
    for row in rows:
        papers.setdefault(row["paper"], []).append(row)
    body = "".join(
        f'<tr class="paper"><th colspan="4">{text(title)}<br><small>{text(_tally(claims))}</small></th></tr>'
        + "".join(_claim_line(row) for row in sorted(claims, key=lambda row: not row["measured"]))
        for title, claims in papers.items()
    )
    head = "".join(f"<th>{h}</th>" for h in CLAIM_HEADS)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _claim_line(row: Row) -> str:
    links = "".join(f' <a href="#{text(name)}">{text(name)}</a>' for name in row["figures"])
    cells = (
        f"{text(row['claim'])}<br><small>{text(row['where'])}{links}</small>",
        _list(row["theirs"]),
        _list(row["ours"]),
        f"<b>{text(row['verdict'])}</b><br><small>{_code(row['because'])}</small>",
    )
    body = "".join(f'<td data-head="{text(h)}">{cell}</td>' for h, cell in zip(CLAIM_HEADS, cells, strict=True))
    muted = "" if row["measured"] else ' class="muted"'
    return f"<tr{muted}>{body}</tr>"


def _code(words: str) -> str:
    """What stands between backticks is code, as in the guide."""
    return sub(r"`([^`]+)`", r"<code>\1</code>", text(words))


def _tally(claims: list[Row]) -> str:
    """How many claims have which verdict."""
    counts = {verdict: sum(c["verdict"] == verdict for c in claims) for verdict in VERDICTS}
    return f"{len(claims)} claims; " + ", ".join(f"{verdict}: {count}" for verdict, count in counts.items() if count)


def _section(catalogue: Catalogue, run: Reproduction, figure: Figure) -> str:
    groups = summarise(measure(figure, run.records))
    networks = max(group.median.n for group in groups)
    state = ("" if run.complete else f" {len(run.records)} of {len(run.plan.points)} points are finished.") + _age(run)
    return (
        f'<section class="figure" id="{text(run.name)}"><h2>{_heading(catalogue, run)}</h2>'
        f"<p>{text(figure.setting)}. Medians; {text(interval_words(networks))}.{state} {text(_iterations(run))}</p>"
        f'<p class="hint">{text(figure.reading)}</p>'
        f'<figure id="chart-{text(run.name)}" class="chart"></figure>'
        f"<details><summary>Numbers</summary>{_numbers(figure, groups)}</details></section>"
    )


def _study_section(catalogue: Catalogue, run: StudyRun) -> str:
    """A study's text and tables; cells may hold several values with commas, which stay in one line."""
    study = catalogue.studies[run.name]
    state = ("" if run.complete else f" {len(run.records)} of {len(run.jobs)} jobs are finished.") + _age(run)
    tables = "".join(_figure(run, table) + _details(table) for table in STUDIES[run.name].item.tables(run.done))
    return (
        f'<section class="figure" id="{text(run.name)}"><h2>{_heading(catalogue, run)}</h2>'
        f'<p>{text(study.setting)}{state}</p><p class="hint">{text(study.reading)}</p>{tables}</section>'
    )


def _age(run: Run) -> str:
    count = older(run)
    return f" Counted by an older edgewatt: {count} of {len(run.records)}." if count else ""


def older(run: Run) -> int:
    """Return how many of a run's records an older edgewatt counted; computing its figure again replaces them."""
    return sum(record.counts_version < COUNTS_VERSION for record in run.records)


def _details(table: StudyTable) -> str:
    """A table to open; open where no chart tells the same."""
    if not table.rows:
        return ""
    state = " open" if table.drawn is None else ""
    return f"<details{state}><summary>{text(table.title)}</summary>{_table(table)}</details>"


def _figure(run: StudyRun, table: StudyTable) -> str:
    """The place of a table's chart, with the figure's number above it."""
    if table.drawn is None or not table.drawn.marks:
        return ""
    name = _chart_name(run, table.drawn)
    return f'<h3>Figure {text(table.drawn.figure)}</h3><figure id="chart-{text(name)}" class="chart"></figure>'


def _table(table: StudyTable) -> str:
    def cell(value: Any) -> str:
        return f"<td>{text(f'{value:,}' if isinstance(value, int) else str(value))}</td>"

    heads = "".join(f"<th>{text(head)}</th>" for head in table.heads)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in table.rows)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _iterations(run: Reproduction) -> str:
    counts = sorted({r.config["ordering"]["iterations"] for r in run.records if "iterations" in r.config["ordering"]})
    return f"Iterations of the search: {', '.join(f'{n:,}' for n in counts)}." if counts else ""


def _numbers(figure: Figure, groups: list[PanelGroup]) -> str:
    """A table with a line per panel and x and three columns per method: median, interval, change from the baseline."""
    methods = list(dict.fromkeys(group.method for group in sorted(groups, key=lambda g: g.role != "baseline")))
    lines: dict[tuple[str, float], dict[str, PanelGroup]] = {}
    for group in groups:
        lines.setdefault((group.panel, group.x), {})[group.method] = group
    last = {panel: x for panel, x in sorted(lines)}
    body = []
    for (panel, x), by_method in lines.items():
        if figure.shows == "curve" and x != last[panel] and x != 10.0 ** round(log10(x)):
            continue  # a curve is told by its powers of ten
        base = next((g.median.median for g in by_method.values() if g.role == "baseline"), None)
        lower = next((g.lower for g in by_method.values()), None)
        cells = [panel, f"{x:,g}", "" if lower is None else f"{lower:,.0f}"]
        for method in methods:
            if method not in by_method:
                cells += ["", "", ""]
                continue
            m = by_method[method].median
            change = "" if not base or by_method[method].role == "baseline" else f"{100 * (m.median / base - 1):+.1f} %"
            cells += [f"{m.median:,.0f}", f"{m.low:,.0f} – {m.high:,.0f}" if m.n > 1 else "", change]
        body.append("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in cells) + "</tr>")
    heads = "".join(f"<th>{text(method)}</th><th>interval</th><th>change</th>" for method in methods)
    top = f"<tr><th></th><th>{text(figure.x.title)}</th><th>bound</th>{heads}</tr>"
    return f'<div class="scroll"><table><thead>{top}</thead><tbody>{"".join(body)}</tbody></table></div>'


def _provenance(reproductions: Sequence[Run]) -> dict[str, Any]:
    records = [record for run in reproductions for record in run.records]
    first = dict(records[0].provenance)
    same = {k: v for k, v in first.items() if k != "name" and all(r.provenance.get(k) == v for r in records)}
    once = {record.hash: record for record in records}.values()  # figures share points
    cpu = sum(float(r.provenance.get("cpu_s") or 0.0) for r in once)
    finished = sorted(str(r.provenance.get("finished", "")) for r in records)
    return {
        **same,
        "points": len(once),
        "cpu_s of all points": round(cpu, 1),
        "finished": [finished[0], finished[-1]],
    }


def _list(words: str) -> str:
    """Show findings of several panels one below the other."""
    return "<br>".join(text(part) for part in words.split("; "))
