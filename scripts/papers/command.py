"""The command: the papers' figures as sweeps, their printed claims beside ours."""

from __future__ import annotations

from typing import Any

import typer

from edgewatt.cli.parts.arguments import CommandGroup, json_option, named, written
from edgewatt.cli.parts.output import say

app = CommandGroup(name="python scripts/papers", add_completion=False, pretty_exceptions_enable=False)


@app.command()
def papers(
    names: list[str] = typer.Argument(
        None, metavar="[NAME]...", help="Names of figures, what several names begin with, or 'all'."
    ),
    full: bool = typer.Option(
        False, "--full", help="All points, 1,000,000 iterations, one network a point: takes hours."
    ),
    iterations: int = typer.Option(None, help="Another number of iterations (default: 10,000)."),
    seeds: int = typer.Option(None, help="The first so many of the five networks (default: 5, with --full 1)."),
    results: str = typer.Option(
        "results/papers", "-r", "--results", parser=named, metavar="DIR", help="Folder for the records."
    ),
    output: str = typer.Option(
        None, "-o", "--output", parser=written, metavar="FILE", help="The page (default: DIR/papers.html)."
    ),
    figures: str = typer.Option(
        None, parser=written, metavar="DIR", help="Write every chart as PDF, SVG and PNG, too."
    ),
    overrides: list[str] = typer.Option(None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the sweep."),
    run: bool = typer.Option(True, "--run/--no-run", help="--no-run: write the page from what is finished."),
    executor: str = typer.Option("processes", help="processes, inline or dask."),
    workers: int = typer.Option(None, "-j", "--workers", help="Worker processes (default: one per core)."),
    json_file: str = json_option("the claims"),
) -> None:
    """Repeat the papers' figures and put their claims beside ours.

    Without a name, list the figures.

    Stop it when you like, the same command goes on where it was.

      python scripts/papers gleinig-2a

      python scripts/papers gleinig --seeds 2 --iterations 1000 -o page.html
    """
    from pathlib import Path

    from edgewatt.cli.parts.output import progress, resumable, show_table, write_json
    from edgewatt.pages.html.page import need_charts
    from papers.claims import chosen, paper_figures
    from papers.estimate import time_left
    from papers.page import compare_claims, paper_page
    from papers.reproduction import figure_plan, reproduce
    from papers.study import STUDIES, StudyRun
    from traces.base.errors import InputError
    from traces.base.files import check_writable

    if not names:
        known = [{"name": name, "what": what} for name, what in paper_figures().items()]
        if not write_json(known, json_file):
            show_table(("name", "figure"), [(figure["name"], figure["what"]) for figure in known])
        return
    wanted = chosen(names)
    settings: dict[str, Any] = {"full": full, "iterations": iterations, "seeds": seeds, "overrides": overrides or ()}
    execution: dict[str, Any] = {"run": run, "executor": executor, "workers": workers}
    for name in wanted:  # a mistake shows before hours of work
        if name not in STUDIES:
            figure_plan(name, **settings)
        elif overrides:
            raise InputError(f"{name} is a study: it has no values to replace (-s {overrides[0]})")
    need_charts()
    page_path = output or Path(results) / "papers.html"
    check_writable(output, json_file)
    if run:
        left = time_left(wanted, results=results, workers=1 if executor == "inline" else workers, **settings)
        if left:
            say(left, err=True)
    done: list[Any] = []
    failed: list[str] = []
    for name in wanted:
        with resumable(), progress(name) as update:
            done.append(reproduce(name, results=results, progress=update, **execution, **settings))
        last = done[-1]
        if isinstance(last, StudyRun):
            failed += [f"{name}: {why}" for why in last.failed]
        elif last.results is not None and last.results.failed:
            failed.append(f"{name}: {len(last.results.failed)} points, see: edgewatt report {results}/{name}")
    page, *charts = paper_page(done, page_path, figures=figures)
    claims = compare_claims(done)
    if not write_json({"page": page, "figures": charts, "claims": claims}, json_file):
        _print(done, claims, [f"page: {page}", *([f"figures: {len(charts)} files in {figures}"] if charts else [])])
    if failed:
        say("failed:\n" + "\n".join(failed), err=True)
        raise typer.Exit(1)


def _print(done: list[Any], claims: list[dict[str, Any]], written: list[str]) -> None:
    """Print each paper's claims beside ours, what is finished, and what was written."""
    from edgewatt.cli.parts.output import show_table
    from papers.page import older
    from papers.study import StudyRun

    heads = ("printed, in our words", "the paper's method", "our method", "verdict")
    shown = [c for c in claims if c["measured"]]
    for paper in dict.fromkeys(c["paper"] for c in shown):
        rows = [c for c in shown if c["paper"] == paper]
        lines = [(c["claim"], _lines(c["theirs"]), _lines(c["ours"]), c["verdict"]) for c in rows]
        show_table(heads, lines, title=paper)
    for r in done:
        of, what = (len(r.jobs), "jobs") if isinstance(r, StudyRun) else (len(r.plan.points), "points")
        age = f", {count} of them counted by an older edgewatt" if (count := older(r)) else ""
        say(f"{r.name}: {len(r.records)} of {of} {what} finished{age}")
    for line in written:
        say(line)


def _lines(words: str) -> str:
    return words.replace("; ", "\n")
