"""The command: the papers' figures computed again, their printed claims beside what was found."""

from __future__ import annotations

from typing import Any

import typer

from edgewatt.cli.parts.arguments import CommandGroup, json_option, named, written

app = CommandGroup(name="python scripts/papers", add_completion=False, pretty_exceptions_enable=False)


@app.command()
def papers(
    names: list[str] = typer.Argument(
        None, metavar="[NAME]...", help="Names of figures, what several names begin with, or 'all'."
    ),
    full: bool = typer.Option(False, "--full", help="All points, long searches, one network a point: takes hours."),
    iterations: int = typer.Option(None, help="Another number of iterations (default: 10,000)."),
    seeds: int = typer.Option(None, help="The first so many of the five networks (default: 5, with --full 1)."),
    results: str = typer.Option(
        "results/papers", "-r", "--results", parser=named, metavar="DIR", help="Folder for the records."
    ),
    output: str = typer.Option(
        None, "-o", "--output", parser=written, metavar="FILE", help="The page (default: DIR/papers.html)."
    ),
    figures: str = typer.Option(
        None, parser=written, metavar="DIR", help="Write every chart as PDF, SVG and PNG, and its data as CSV."
    ),
    overrides: list[str] = typer.Option(None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the jobs."),
    run: bool = typer.Option(True, "--run/--no-run", help="--no-run: write the page from what is finished."),
    workers: int = typer.Option(None, "-j", "--workers", help="Worker processes (default: one per core; 0: this one)."),
    record: bool = typer.Option(False, "--record", help="Keep the verdicts of this run beside later ones."),
    json_file: str = json_option("the claims"),
) -> None:
    """Repeat the papers' figures and put their claims beside ours.

    Without a name, list the figures.

    Stop it when you like, the same command continues where it was.

      python scripts/papers gleinig-2a

      python scripts/papers gleinig-2c --seeds 1 -s density=[0.05,0.2] -o page.html
    """
    from pathlib import Path

    from edgewatt.cli.parts.output import progress, resumable, say, show_table, write_json
    from edgewatt.pages.html.page import need_charts
    from papers.catalogue import FIGURES, chosen, keep
    from papers.figure import MEASURED_ON, planned, run_figure, seconds_left
    from papers.page import compare_claims, found_words, older, paper_page, verdict_words
    from traces.base.checks import whole_number
    from traces.base.files import check_writable

    if not names:
        known = [{"name": name, "what": figure.title} for name, figure in FIGURES.items()]
        if not write_json(known, json_file):
            show_table(("name", "figure"), [(figure["name"], figure["what"]) for figure in known])
        return
    settings: dict[str, Any] = {"full": full, "iterations": iterations, "seeds": seeds, "overrides": overrides or ()}
    wanted = [FIGURES[name] for name in chosen(names)]
    if workers is not None:
        whole_number(workers, "workers", least=0)
    for figure in wanted:  # a mistake shows before hours of work
        planned(figure, **settings)
    need_charts()
    page_path = output or Path(results) / "papers.html"
    check_writable(output, json_file)
    if run and (minutes := round(seconds_left(wanted, results, **settings) / 60)):
        say(f"about {minutes} min of CPU time to go (as measured on {MEASURED_ON})", err=True)
    done = []
    for figure in wanted:
        with resumable(), progress(figure.name) as update:
            done.append(run_figure(figure, results=results, run=run, workers=workers, progress=update, **settings))
    failed = [f"{one.name}: {why}" for one in done for why in one.failed]
    written_ = paper_page(done, page_path, figures=figures) if any(one.records for one in done) or not failed else []
    claims = compare_claims(done)
    if record:
        keep(claims, " ".join(names) + (" --full" if full else ""), done)
    if not write_json({"written": written_, "claims": claims}, json_file):
        heads = ("printed, in our words", "found now", "verdict")
        for paper in dict.fromkeys(c["paper"] for c in claims):
            rows = [c for c in claims if c["paper"] == paper]
            show_table(heads, [(c["claim"], found_words(c), verdict_words(c)) for c in rows], title=paper)
        for one in done:
            age = f", {count} of them counted by an older edgewatt" if (count := older(one)) else ""
            say(f"{one.name}: {len(one.records)} of {len(one.jobs)} jobs finished{age}: {one.caption}")
        for line in written_:
            say(line)
    if failed:
        say("failed:\n" + "\n".join(failed), err=True)
        raise typer.Exit(1)
