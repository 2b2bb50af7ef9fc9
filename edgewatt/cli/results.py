"""`edgewatt report`, `compare` and `optimize`: what the records say."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from edgewatt.cli.parts.arguments import CONFIGURATIONS, json_option, named, reads, writes
from edgewatt.cli.parts.output import progress, resumable, say, write_json

_RECORDS = reads("a record or a folder of results", "record", "results")


def report(
    results: list[str] = typer.Argument(..., parser=_RECORDS, help="Results folders or records; several side by side."),
    output: str = writes("The page to write.", "-o", "--output", default="report.html"),
    figures: str = writes("Write every chart as PDF, SVG and PNG, too.", metavar="DIR"),
    title: str = typer.Option(None, help="Heading of the page."),
) -> None:
    """Write one self-contained page about a results folder.

    Example:  edgewatt report results/mine -o report.html --figures figures

    Example:  edgewatt report results/before results/after
    """
    from edgewatt.pages.report import report as write

    for path in write(results, output, figures=figures, title=title):
        say(path)


def compare(
    a: str = typer.Argument(..., parser=_RECORDS, help="Record or results folder."),
    b: str = typer.Argument(..., parser=_RECORDS, help="Record or results folder."),
    json_file: str = json_option(),
) -> None:
    """Say what changed from A to B, and which counts explain it.

    Example:  edgewatt compare results/before results/after
    """
    from edgewatt.cli.parts.tables import show_comparison
    from edgewatt.results.comparison import compare as find

    pairs = find(a, b)
    if not write_json(iter(pairs), json_file):
        show_comparison(pairs)


def optimize(
    file: str = typer.Argument(
        ...,
        parser=reads("a sweep file", *CONFIGURATIONS),
        help="A sweep file; a section `optimize` gives objectives, constraints and trials.",
    ),
    overrides: list[str] = typer.Option(None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the file."),
    results: str = typer.Option(
        None, "-o", "--results", parser=named, metavar="DIR", help="Results folder (default: results/FILE's name)."
    ),
    executor: str = typer.Option("processes", help="processes, inline or dask."),
    workers: int = typer.Option(None, "-j", "--workers", help="Worker processes (default: one per core)."),
    json_file: str = json_option(),
) -> None:
    """Search a sweep's space for the Pareto front.

    Run the same command again to continue where it stopped.

    Example:  edgewatt optimize configs/examples/optimize.yaml -s optimize.trials=40
    """
    from edgewatt.cli.parts.tables import show_front
    from edgewatt.runs.optimization import optimize as search

    folder = Path(results) if results else Path("results") / Path(file).stem
    with resumable(), progress("optimize") as update:
        optimization = search(
            Path(file), results=folder, overrides=overrides or (), executor=executor, workers=workers, progress=update
        )
    if not write_json(optimization.as_json(), json_file):
        show_front(optimization)
        say(f"results: {folder}    next:  edgewatt report {shlex.quote(str(folder))} -o report.html")


def add_to(app: typer.Typer) -> None:
    for command in (report, compare, optimize):
        app.command()(command)
