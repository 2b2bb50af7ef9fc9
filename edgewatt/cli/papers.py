"""`edgewatt papers`: the papers' figures as sweeps, their printed claims beside ours."""

from __future__ import annotations

from typing import Any

import typer

from edgewatt.cli.parts.guard import json_option, written
from edgewatt.cli.parts.output import say


def papers(
    names: list[str] = typer.Argument(None, metavar="[NAME]...", help="Figures, the beginning of several, or 'all'."),
    full: bool = typer.Option(False, "--full", help="All points and jobs, 1,000,000 iterations: takes hours."),
    iterations: int = typer.Option(None, help="Another number of iterations (default: 10,000)."),
    seeds: int = typer.Option(None, help="Only the first so many of the five networks."),
    results: str = typer.Option("results/papers", "-r", "--results", metavar="DIR", help="Folder for the records."),
    output: str = typer.Option(
        None, "-o", "--output", parser=written, metavar="FILE", help="The page (default: DIR/papers.html)."
    ),
    figures: str = typer.Option(
        None, parser=written, metavar="DIR", help="Write every chart as PDF, SVG and PNG, too."
    ),
    overrides: list[str] = typer.Option(None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the sweep."),
    run: bool = typer.Option(True, "--run/--no-run", help="--no-run: the page from what is finished already."),
    executor: str = typer.Option("processes", help="processes, inline or dask."),
    workers: int = typer.Option(None, "-j", "--workers", help="Worker processes (default: one per core)."),
    json_file: str = json_option("the claims"),
) -> None:
    """Repeat the papers' figures and put their claims beside ours.

    Without a name, list the figures.

    Stop it when you like, the same command goes on where it was.

      edgewatt papers gleinig-2a

      edgewatt papers gleinig --seeds 2 --iterations 1000 -o page.html
    """
    from pathlib import Path

    from edgewatt.cli.parts.output import progress, resumable, show_table, write_json
    from edgewatt.papers.claims import chosen, paper_figures
    from edgewatt.papers.page import compare_claims, paper_page
    from edgewatt.papers.reproduction import figure_plan, reproduce
    from edgewatt.papers.study import STUDIES, StudyRun
    from edgewatt.reporting.frame import need_charts
    from traces.base.errors import InputError

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
    if run:
        _say_how_long(wanted, results, settings, 1 if executor == "inline" else workers)
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
    page, *charts = paper_page(done, output or Path(results) / "papers.html", figures=figures)
    claims = compare_claims(done)
    if not write_json({"page": page, "figures": charts, "claims": claims}, json_file):
        heads = ("printed, in our words", "the paper's method", "our method", "verdict")
        shown = [c for c in claims if c["measured"]]
        for paper in dict.fromkeys(c["paper"] for c in shown):
            rows = [c for c in shown if c["paper"] == paper]
            lines = [(c["claim"], _lines(c["theirs"]), _lines(c["ours"]), c["verdict"]) for c in rows]
            show_table(heads, lines, title=paper)
        for r in done:
            of, what = (len(r.jobs), "jobs") if isinstance(r, StudyRun) else (len(r.plan.points), "points")
            say(f"{r.name}: {len(r.records)} of {of} {what} finished")
        say(f"page: {page}")
        if charts:
            say(f"figures: {len(charts)} files in {figures}")
    if failed:
        say("failed:\n" + "\n".join(failed), err=True)
        raise typer.Exit(1)


def _say_how_long(names: list[str], results: str, settings: dict[str, Any], workers: int | None) -> None:
    """Print about how long it will take, where that is more than half a minute."""
    from edgewatt.papers.estimate import MEASURED_ON, cpu_seconds_left, words
    from edgewatt.papers.study import STUDIES
    from edgewatt.sweeps.executors import available_cores

    cores = workers or available_cores()
    left = {name: cpu_seconds_left(name, results=results, **settings) for name in names}
    alone = sum(seconds for name, seconds in left.items() if name in STUDIES and STUDIES[name].item.alone)
    total = sum(left.values())
    if total > 30:
        shared = f", {words(alone + (total - alone) / cores)} with {cores} workers" if cores > 1 else ""
        say(f"about {words(total)} of CPU time to go{shared} (as measured on {MEASURED_ON})", err=True)


def _lines(words: str) -> str:
    return words.replace("; ", "\n")


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(papers)
