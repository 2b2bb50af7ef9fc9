"""`edgewatt run`, `sweep`, `collect`, `rerun`: from a configuration to records."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import typer

from edgewatt.cli.parts.arguments import (
    CONFIGURATIONS,
    MACHINE,
    NETWORKS,
    json_option,
    named,
    names_of,
    reads,
    writes,
)
from edgewatt.cli.parts.output import say, tell_notes
from edgewatt.cli.parts.source import CONFIGURED, network_of, takes_source
from edgewatt.config.kinds import DEFAULT_SYSTEM

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles

_OVERRIDE = typer.Option(
    None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the file, such as -s dram.part=lpddr4-3200."
)
_JSON = json_option("the table")
MOST_ANSWERED = 2000  # points of a sweep whose verdict is printed after it; the report has that of any number


def run(
    file: NetworkFiles = typer.Argument(
        ...,
        metavar="FILE...",
        parser=reads("a network or a run configuration", *CONFIGURATIONS, *NETWORKS),
        help="A network (one file, or one a layer, input first; or a shipped one: digits_wide), or a configuration.",
    ),
    overrides: list[str] = _OVERRIDE,
    system: str = typer.Option(
        None,
        metavar="NAME",
        autocompletion=names_of("systems"),
        parser=MACHINE,
        help="The machine of a network (`edgewatt list systems`; default: scratchpad-8k).",
    ),
    verbose: bool = typer.Option(False, "-v", "--verbose", help="Print the tables, too."),
    results: str = typer.Option(
        "results", "-o", "--results", parser=named, metavar="DIR", help="Folder for the records."
    ),
    json_file: str = _JSON,
) -> None:
    """Say which order to take, what it gains, and how surely.

    A network is compared row by row, in simple blocks and in the best order found. Of a configuration every ordering x
    stride x format x machine is a point and a record.

    Example:  edgewatt run net.npz

    Example:  edgewatt run fc1.npz fc2.npz --system edge -v

    Example:  edgewatt run quickstart -s 'formats=[fp16]'
    """
    from pathlib import Path

    from edgewatt.cli.parts.answer import headline, show_verdict, verdict_of
    from edgewatt.cli.parts.output import progress, write_json
    from edgewatt.cli.parts.tables import show_records
    from edgewatt.orders.describe import blockings_of
    from edgewatt.results.record_rows import row_of
    from edgewatt.results.store import Store
    from edgewatt.runs.plan import load_sweep
    from edgewatt.runs.sweep import run as run_plan

    plan = load_sweep(_configuration(file, system), overrides or ())
    with progress("run") as update:
        records = run_plan(plan, results=results, progress=update)
    paths = [Store(results).path(record.hash) for record in records]
    if write_json(
        [{**row_of(record), "record": str(path)} for record, path in zip(records, paths, strict=True)], json_file
    ):
        return
    verdict, title = verdict_of(records), plan.name or Path(file.files[0]).name
    if verbose or not verdict.cards:
        show_records(records, title=title)
        say("\n".join(["records:", *(f"  {path}" for path in paths)]))
        for blocking in blockings_of(records):
            say(f"Blocking is {blocking}.")
    if verdict.cards:
        show_verdict(records, verdict)
        headline(records, title)
        if not verbose:
            page = f"edgewatt report {shlex.quote(str(results))}"
            say(f"-v: tables of all {len(records)} points; records in {results}; {page}")


def init(
    network: NetworkFiles = typer.Argument(
        ...,
        metavar="NETWORK...",
        parser=reads("a network", *NETWORKS),
        help="A network: a file or folder, or one matrix file per layer.",
    ),
    system: str = typer.Option(
        DEFAULT_SYSTEM,
        metavar="NAME",
        autocompletion=names_of("systems"),
        parser=MACHINE,
        help="The machine (`edgewatt list systems`).",
    ),
    output: str = writes("The configuration to write.", "-o", "--output", default="edgewatt.yaml"),
    force: bool = typer.Option(False, "--force", help="Replace an existing file."),
) -> None:
    """Write a commented configuration for your own network.

    An existing file is kept unless --force is given.

    Example:  edgewatt init net.npz -o mine.yaml
    """
    from pathlib import Path

    from edgewatt.config.starter import init as write
    from edgewatt.runs.plan import load_sweep

    tell_notes(write(network, output, system=system, force=force).notes, network.files)
    points = len(load_sweep(Path(output)).points)
    say(f"{output}: {points} points; next:  edgewatt run {shlex.quote(output)}")


def _configuration(source: NetworkFiles, system: str | None) -> Any:
    """Return what is to be run: a configuration, or the comparison of orders of a network on a machine."""
    from pathlib import Path

    from edgewatt.cli.parts.recognition import refuse_other_kinds
    from edgewatt.config.starter import comparison
    from traces.base.errors import InputError

    file = source.files[0]
    if Path(file).suffix in CONFIGURED:
        if len(source.files) > 1:
            raise InputError(f"{source.files[1]}: `edgewatt run` takes one configuration, or the files of one network")
        if system is not None:
            raise InputError(f"{file}: --system goes with a network; in a configuration write 'system: {system}'")
        return Path(file)
    if not Path(file).exists():
        return Path(file)  # a shipped configuration, or nothing: reading it says so
    refuse_other_kinds("a network or a run configuration", (*CONFIGURATIONS, *NETWORKS), file)
    return comparison(network_of(source, "run"), source, system or DEFAULT_SYSTEM)


def sweep(
    file: str = typer.Argument(
        ...,
        parser=reads("a sweep file", *CONFIGURATIONS),
        help="A sweep file ('base', 'grid', ...), a run configuration, or a name of `edgewatt list sweeps`.",
    ),
    overrides: list[str] = _OVERRIDE,
    results: str = typer.Option(
        None, "-o", "--results", parser=named, metavar="DIR", help="Results folder (default: results/FILE's name)."
    ),
    executor: str = typer.Option("processes", help="processes, inline or dask."),
    workers: int = typer.Option(None, "-j", "--workers", help="Worker processes (default: one per core)."),
    scheduler: str = typer.Option(None, metavar="ADDRESS", help="Join this Dask scheduler, such as tcp://host:8786."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Compute points again that failed before."),
    resume: bool = typer.Option(True, help="Keep finished points; --no-resume computes all again."),
    fsync: bool = typer.Option(False, "--fsync", help="Make every record survive a power cut (slower)."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Print what would be computed and an estimate of the time."),
    json_file: str = _JSON,
) -> None:
    """Compute every point of a sweep.

    Stop it at any time: the same command continues where it was.

    Example:  edgewatt sweep memory-parts

    Example:  edgewatt sweep mine.yaml -j 4 -o results/mine
    """
    from pathlib import Path

    from edgewatt.cli.parts.answer import show_verdict, verdict_of
    from edgewatt.cli.parts.output import progress, resumable, write_json
    from edgewatt.runs.sweep import sweep as run_sweep

    folder = Path(results) if results else Path("results") / Path(file).stem
    if dry_run:
        from edgewatt.cli.parts.tables import show_estimate
        from edgewatt.runs.estimate import estimate
        from edgewatt.runs.plan import load_sweep

        estimated = estimate(load_sweep(Path(file), overrides or ()), folder, workers)
        if not write_json(estimated, json_file):
            show_estimate(estimated)
        return
    with resumable(), progress("sweep") as update:
        done = run_sweep(
            Path(file),
            overrides=overrides or (),
            results=folder,
            executor=executor,
            workers=workers,
            scheduler=scheduler,
            resume=resume,
            retry_failed=retry_failed,
            fsync=fsync,
            progress=update,
        )
    from edgewatt.results.record_rows import row_of
    from edgewatt.results.swept import rows_with_axes

    summary = {
        "results": str(folder),
        "points": len(done.points),
        "computed": done.computed,
        "reused": done.reused,
        "failed": {name: failure.get("error", "") for name, failure in sorted(done.failed.items())},
        "damaged": done.damaged,
        "outdated": done.outdated,
    }
    few = len(done.points) <= MOST_ANSWERED
    by_hash = {record.hash: record for record in done.records} if json_file or few else {}
    ordered = [by_hash[point.hash] for point in done.points if point.hash in by_hash]
    verdict = verdict_of(ordered) if few else None
    table = [row_of(record) for record in ordered]
    rows_with_axes(table, [record.config for record in ordered])
    answer = {"verdict": verdict.as_dict()} if verdict else {}
    if not write_json({**summary, "rows": table, **answer}, json_file):
        for path in done.damaged:
            say(f"damaged, computed again: {path}")
        if done.outdated:
            say(f"{len(done.outdated)} points were counted by an older version and are computed again")
        for name, failure in sorted(done.failed.items())[:10]:
            point = failure.get("point") or "the only point"
            say(f"failed: {point}: {failure.get('error', '')}\n  ({folder}/failures/{name}.json)", err=True)
        say(
            f"{len(done.points)} points: {done.computed} computed, {done.reused} finished before, "
            f"{len(done.failed)} failed"
        )
        say(f"results: {folder}    next:  edgewatt report {shlex.quote(str(folder))} -o report.html")
        if verdict is not None and verdict.cards:
            say("")
            show_verdict(ordered, verdict)
    if done.failed:
        raise typer.Exit(1)


def collect(
    results: str = typer.Argument(..., parser=reads("a folder of results", "results"), help="Results folder."),
    output: str = writes("Table to write: .parquet or .csv.", "-o", "--output", default=...),
) -> None:
    """Collect all records of a folder in one table, a row each.

    Example:  edgewatt collect results/mine -o mine.parquet
    """
    from edgewatt.results.collection import collect as collect_to

    n_rows, n_columns = collect_to(results, output)
    say(f"{output}: {n_rows} rows, {n_columns} columns")


def show(
    record: str = typer.Argument(
        ..., parser=reads("a record", "record", "results"), help="A record (records/HASH.json)."
    ),
    json_file: str = json_option("the record"),
) -> None:
    """Print one record: configuration, counts, and provenance.

    Example:  edgewatt show results/records/0123456789abcdef01234567.json
    """
    from edgewatt.cli.parts.output import show_table, write_json
    from edgewatt.results.record_rows import flat
    from edgewatt.runs.records import load_records
    from traces.base.errors import InputError

    records = load_records(record)
    if len(records) != 1:
        raise InputError(f"{record}: holds {len(records)} records: name one in records/, or see `edgewatt report`")
    parts = {
        "configuration": flat(records[0].config),
        "results": flat(records[0].results),
        "provenance": flat(records[0].provenance),
    }
    if write_json({"hash": records[0].hash, **parts}, json_file):
        return
    for title, values in parts.items():
        shown = [(key, value) for key, value in values.items() if not isinstance(value, list) or len(value) <= 16]
        show_table((title, "value"), shown, title=f"{title} of {records[0].hash}")


def rerun(
    record: str = typer.Argument(
        ..., parser=reads("a record", "record", "results"), help="A record (records/HASH.json)."
    ),
    json_file: str = json_option("what differs"),
) -> None:
    """Repeat the run behind a record and compare.

    Exit status 1 if the configuration or any result differs; times and paths are not compared.

    Example:  edgewatt rerun results/mine/records/0123456789abcdef01234567.json
    """
    from edgewatt.cli.parts.output import show_table, write_json
    from edgewatt.results.record_rows import describe_cut
    from edgewatt.runs.compute import rerun as repeat
    from edgewatt.runs.records import load_records

    differences = repeat(record)
    cut = describe_cut(load_records(record)[0])
    if not write_json({"record": record, "differences": differences, "search": cut}, json_file):
        if cut:
            say(f"the search of this record was {cut} by its time limit: another run may find another order")
        if differences:
            rows = [(d["key"], d["recorded"], d["repeated"]) for d in differences]
            show_table(("value", "recorded", "repeated"), rows, title=record)
        else:
            say(f"{record}: repeated, identical")
    if differences:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    for command in (takes_source("file")(run), sweep, takes_source()(init), show, collect, rerun):
        app.command()(command)
