"""`edgewatt run`, `sweep`, `collect` and `rerun`: from a configuration to records."""

from __future__ import annotations

import typer

from edgewatt.cli.output import say

_OVERRIDE = typer.Option(
    None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the file, such as -s dram.part=lpddr4-3200."
)
_JSON = typer.Option(None, "--json", metavar="FILE", help="Write the table as JSON ('-': standard output).")


def run(
    file: str = typer.Argument(..., help="A run configuration (YAML)."),
    overrides: list[str] = _OVERRIDE,
    results: str = typer.Option("results", "-o", "--results", help="Folder for the records."),
    json_file: str = _JSON,
) -> None:
    """Compute every ordering x stride x format of a configuration and print one row for each.

    Example:  edgewatt run configs/examples/quickstart.yaml -s fast_memory.size=50
    """
    from pathlib import Path

    from edgewatt.cli.output import progress, write_json
    from edgewatt.cli.tables import row_of, show_records
    from edgewatt.results.store import Store
    from edgewatt.sweeps.plan import load_sweep
    from edgewatt.sweeps.sweep import run as run_plan

    plan = load_sweep(Path(file), overrides or ())
    with progress("run") as update:
        records = run_plan(plan, results=results, progress=update)
    paths = [Store(results).path(record.hash) for record in records]
    if write_json(
        [{**row_of(record), "record": str(path)} for record, path in zip(records, paths, strict=True)], json_file
    ):
        return
    show_records(records, title=plan.name or Path(file).name)
    say("\n".join(["records:", *(f"  {path}" for path in paths)]))


def sweep(
    file: str = typer.Argument(
        ...,
        help="A sweep file ('base', 'grid', ...), a run configuration, or a name of `edgewatt list sweeps`.",
    ),
    overrides: list[str] = _OVERRIDE,
    results: str = typer.Option(None, "-o", "--results", help="Results folder (default: results/FILE's name)."),
    executor: str = typer.Option("processes", help="processes, inline or dask."),
    workers: int = typer.Option(None, "-j", "--workers", help="Worker processes (default: one per core)."),
    scheduler: str = typer.Option(None, metavar="ADDRESS", help="Join this Dask scheduler, such as tcp://host:8786."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Compute points again that failed before."),
    resume: bool = typer.Option(True, help="Keep finished points; --no-resume computes all again."),
    fsync: bool = typer.Option(False, "--fsync", help="Make every record survive a power cut (slower)."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be computed and how long it may take."),
    json_file: str = _JSON,
) -> None:
    """Compute every point of a sweep; stop it when you like, the same command goes on where it was.

    Example:  edgewatt sweep memory-parts

    Example:  edgewatt sweep mine.yaml -j 4 -o results/mine
    """
    from pathlib import Path

    from edgewatt.cli.output import progress, resumable, write_json
    from edgewatt.sweeps.plan import load_sweep
    from edgewatt.sweeps.sweep import sweep as run_sweep

    plan = load_sweep(Path(file), overrides or ())
    folder = Path(results) if results else Path("results") / Path(file).stem
    if dry_run:
        from edgewatt.cli.tables import show_estimate
        from edgewatt.sweeps.estimate import estimate

        found = estimate(plan, folder, workers)
        if not write_json(found, json_file):
            show_estimate(found)
        return
    with resumable(), progress("sweep") as update:
        done = run_sweep(
            plan,
            results=folder,
            executor=executor,
            workers=workers,
            scheduler=scheduler,
            resume=resume,
            retry_failed=retry_failed,
            fsync=fsync,
            progress=update,
        )
    summary = {
        "results": str(folder),
        "points": len(done.points),
        "computed": done.computed,
        "reused": done.reused,
        "failed": {name: failure.get("error", "") for name, failure in sorted(done.failed.items())},
        "damaged": done.damaged,
    }
    if not write_json(summary, json_file):
        for path in done.damaged:
            say(f"damaged, computed again: {path}")
        for name, error in list(summary["failed"].items())[:10]:  # type: ignore[attr-defined]
            say(f"failed: {name}: {error}", err=True)
        say(
            f"{len(done.points)} points: {done.computed} computed, {done.reused} found finished, "
            f"{len(done.failed)} failed"
        )
        say(f"results: {folder}    next:  edgewatt report {folder} -o report.html")
    if done.failed:
        raise typer.Exit(1)


def collect(
    results: str = typer.Argument(..., help="Results folder."),
    output: str = typer.Option(..., "-o", "--output", help="Table to write: .parquet or .csv."),
) -> None:
    """Put all records of a results folder into one table, a row a point.

    Example:  edgewatt collect results/mine -o mine.parquet
    """
    from edgewatt.results.collection import collect as collect_to

    n_rows, n_columns = collect_to(results, output)
    say(f"{output}: {n_rows} rows, {n_columns} columns")


def rerun(
    record: str = typer.Argument(..., help="A record (records/HASH.json)."),
    json_file: str = _JSON,
) -> None:
    """Repeat the run behind a record and compare: exit status 1 if anything in its canonical part differs.

    Example:  edgewatt rerun results/mine/records/0123456789abcdef01234567.json
    """
    from edgewatt.cli.output import show_table, write_json
    from edgewatt.point.compute import rerun as repeat

    differences = repeat(record)
    if not write_json({"record": record, "differences": differences}, json_file):
        if differences:
            rows = [(d["key"], d["recorded"], d["repeated"]) for d in differences]
            show_table(("value", "recorded", "repeated"), rows, title=record)
        else:
            say(f"{record}: repeated, identical")
    if differences:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    for command in (run, sweep, collect, rerun):
        app.command()(command)
