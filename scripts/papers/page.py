"""A page for each paper: the figures that were asked for, then the paper's claims beside what this run measured."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from re import sub
from typing import Any

from edgewatt._version import COUNTS_VERSION, __version__
from edgewatt.pages.chart import LEGEND
from edgewatt.pages.html.page import Page, asset, table, text
from edgewatt.results.record import of_our_shape
from papers.catalogue import CLAIMS, PAPERS
from papers.charts import csv_of, drawn, interval_words, spec, table_of
from papers.claim import NOT_RUN, OTHER, Claim, Finding, judge, recorded, shown
from papers.figure import Chart, Run
from traces.base.errors import InputError
from traces.base.files import whole_file

OURS = f"@software{{edgewatt,\n  title = {{edgewatt}},\n  version = {{{__version__}}},\n}}"
REST = "<details><summary>Other claims of the paper, not run</summary>{}</details>"
HEADS = ("printed, in our words", "its method, as run now", "ours", "verdict")


def compare_claims(runs: Sequence[Run], *, all_claims: bool = False) -> list[dict[str, Any]]:
    """Return one row a claim that needs a figure of these runs; all_claims: every claim of their papers."""
    by_name, kept = {run.name: run for run in runs}, recorded()
    papers = dict.fromkeys(run.figure.paper for run in runs)
    with of_our_shape("results of " + ", ".join(by_name)):
        return [
            _row(paper, claim, judge(claim, by_name), kept.get(f"{paper}/{claim.key}"))
            for paper in papers
            for claim in CLAIMS[paper]
            if all_claims or by_name.keys() & set(claim.figures)
        ]


def _row(paper: str, claim: Claim, found: Finding, kept: dict[str, Any] | None) -> dict[str, Any]:
    beside = None if found.verdict.startswith(OTHER) else kept  # other parameters are not the recorded ones
    before = f"{beside['date']}, {beside['commit']}: {beside['verdict']}" if beside else ""
    return {
        "claim": claim.says, "key": f"{paper}/{claim.key}", "paper": PAPERS[paper].title,
        "where": f"{PAPERS[paper].short}, {claim.where}", "figures": list(claim.figures),
        "decided_by": claim.relation.text.format(claim.unit).strip().replace(" ,", ","),
        "theirs": [f"{shown(values, claim.unit)}{f' ({name})' if name else ''}"
                   for name, values in found.readings.items()],
        "ours": shown(found.ours, claim.unit), "verdict": found.verdict, "recorded": before,
        "recorded_numbers": beside["readings"] if beside else {}, "because": claim.note,
        "readings": found.readings, "ours_numbers": found.ours,
    }  # fmt: skip


def verdict_words(row: dict[str, Any]) -> str:
    """Return the verdict of this run, and beside it that of the recorded one."""
    return f"{row['verdict']}; {row['recorded']}" if row["recorded"] else str(row["verdict"])


def found_words(row: dict[str, Any]) -> str:
    """Return what this run found, and what of it decides."""
    ours = [f"our method: {row['ours']}"] if row["ours"] else []
    return "; ".join([*row["theirs"], *ours, f"decides: {row['decided_by']}"])


def paper_page(runs: Sequence[Run], output: str | Path, *, figures: str | Path | None = None) -> list[str]:
    """Write one self-contained page for each paper of these runs; return the paths written.

    output: the page; of several papers, PAPER is put before its suffix. figures: folder for every chart as PDF, SVG,
    PNG and CSV. Raises InputError if nothing is finished or a file cannot be written, MissingExtraError.
    """
    from edgewatt.pages.figures import save_figures

    papers, path = list(dict.fromkeys(run.figure.paper for run in runs)), Path(output)
    if not any(run.records for run in runs):
        raise InputError("no job of these figures is finished yet: run `python scripts/papers NAME` without --no-run")
    files = {
        path if len(papers) == 1 else path.with_name(f"{path.stem}-{paper}{path.suffix}"):
        render([run for run in runs if run.figure.paper == paper]) for paper in papers
    }  # fmt: skip
    charts = [chart for run in runs for chart in _charts(run)] if figures else []
    saved = save_figures({name: spec for name, spec, _ in charts}, {}, str(figures)) if figures else []
    files |= {Path(figures or "") / f"{name}.csv": csv_of(marks) for name, _, marks in charts}
    for file, content in files.items():
        with whole_file(file) as stream:
            stream.write(content.encode("utf-8", "backslashreplace"))
    return [*map(str, files), *saved]


def render(runs: Sequence[Run]) -> str:
    """Return the page of one paper's runs as text: what was asked for first, then what its claims need."""
    with of_our_shape("results of " + ", ".join(run.name for run in runs)):
        done = [run for run in runs if run.records]
        paper, rows = PAPERS[runs[0].figure.paper], compare_claims(runs, all_claims=True)
        asked = {run.name for run in runs}
        mine = [row for row in rows if asked & set(row["figures"])]
        others = [row for row in rows if row not in mine]
        body = asset(__file__, "papers.html").format(
            figures="".join(map(_section, done)), claims=_claims(mine), tally=text(_tally(mine)),
            others=REST.format(_claims(others)) if others else "", cite=text(f"{paper.bibtex}\n\n{OURS}"),
            provenance=text(json.dumps(_provenance(done), indent=2, ensure_ascii=False)),
        )  # fmt: skip
        charts = {name: chart for run in done for name, chart, _ in _charts(run)}
    data = {"charts": charts, "datasets": {}, "legend": LEGEND}
    style, title = asset(__file__, "papers.css"), f"{paper.short}: {paper.title}"
    return Page(title, body, style=style, data=data, charts=True).html()


def _charts(run: Run) -> list[tuple[str, Any, list[Any]]]:
    """Return name, specification and marks of each chart that has any."""
    rows = run.rows
    found = ((chart, drawn(chart, rows)) for chart in run.figure.shows if isinstance(chart, Chart))
    return [(_name(run, chart), spec(chart, marks), marks) for chart, marks in found if marks]


def _name(run: Run, chart: Chart) -> str:
    return run.name if run.name.endswith(f"-{chart.number}") else f"{run.name}-{chart.number}"


def _section(run: Run) -> str:
    figure, marks = run.figure, {name: marks for name, _, marks in _charts(run)}
    state = "" if run.complete else f" {len(run.records)} of {len(run.jobs)} jobs are finished."
    state += f" Counted by an older edgewatt: {n} of {len(run.records)}." if (n := older(run)) else ""
    networks = len({record.config["job"].get("seed") for record in run.records})
    spread = f" Medians; {interval_words(networks)}." if networks > 1 else ""
    parts = []
    for one in figure.shows:
        title = f"Numbers of Figure {one.number}" if isinstance(one, Chart) else one.title
        heads, body = table_of(one, run.rows)
        if not body:
            continue
        if isinstance(one, Chart):
            name = _name(run, one)
            data = base64.b64encode(csv_of(marks[name]).encode("utf-8", "backslashreplace")).decode()
            parts.append(
                f'<h3>Figure {text(one.number)} <small><a download="{text(name)}.csv" '
                f'href="data:text/csv;base64,{data}">CSV</a></small></h3>'
                f'<figure id="chart-{text(name)}" class="chart"></figure>'
            )
        opened = "" if isinstance(one, Chart) else " open"
        parts.append(f"<details{opened}><summary>{text(title)}</summary>{table(heads, body)}</details>")
    return (
        f'<section class="figure" id="{text(run.name)}"><h2>{text(figure.title)}</h2>'
        f"<p>{text(run.caption)}.{text(spread + state)}</p>"
        f'<p class="hint">{text(figure.reading)}</p>{"".join(parts)}</section>'
    )


def _claims(rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{h}</th>" for h in HEADS)
    body = "".join(map(_line, rows))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _line(row: dict[str, Any]) -> str:
    links = "".join(f' <a href="#{text(name)}">{text(name)}</a>' for name in row["figures"])
    because = sub(r"`([^`]+)`", r"<code>\1</code>", text(row["because"]))  # backticks are code, as in the guide
    why = f"<details><summary>why</summary>{because}</details>" if because else ""
    before = f"<br><small>{text(row['recorded'])}</small>" if row["recorded"] else ""
    cells = (
        f"{text(row['claim'])}<br><small>{text(row['where'])}{links}</small>",
        "<br>".join(map(text, row["theirs"])) + f"<br><small>decides: {text(row['decided_by'])}</small>",
        text(row["ours"]), f"<b>{text(row['verdict'])}</b>{before}{why}",
    )  # fmt: skip
    body = "".join(f'<td data-head="{text(h)}">{cell}</td>' for h, cell in zip(HEADS, cells, strict=True))
    return f"<tr{' class=muted' if row['verdict'] == NOT_RUN else ''}>{body}</tr>"


def _tally(rows: list[dict[str, Any]]) -> str:
    counts = Counter(row["verdict"].split(":")[0] for row in rows)
    return f"{len(rows)} claims; " + ", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items()))


def older(run: Run) -> int:
    """Return how many of a run's records an older edgewatt counted; computing its figure again replaces them."""
    return sum(record.counts_version < COUNTS_VERSION for record in run.records)


def _provenance(runs: Sequence[Run]) -> dict[str, Any]:
    once = {record.hash: record for run in runs for record in run.records}.values()
    first = dict(next(iter(once)).provenance)
    same = {k: v for k, v in first.items() if all(r.provenance.get(k) == v for r in once)}
    finished = sorted(str(r.provenance.get("finished", "")) for r in once)
    cpu = sum(float(r.provenance.get("cpu_s") or 0.0) for r in once)
    return {**same, "jobs": len(once), "cpu_s of all jobs": round(cpu, 1), "finished": [finished[0], finished[-1]]}
