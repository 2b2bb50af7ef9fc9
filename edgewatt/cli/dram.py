"""`edgewatt dram`: a request trace on a DRAM part: time, commands, energy, and the commands themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from edgewatt.cli.parts.guard import CommandGroup, json_option, written
from edgewatt.cli.parts.inputs import PART, reads
from edgewatt.cli.parts.output import say


def dram(
    trace: Path = typer.Argument(
        ...,
        metavar="TRACE",
        parser=reads("a memory trace", "trace", to=Path),
        help="Requests: DRAMsim3, Ramulator 2, DRAMSys ... or our npz.",
    ),
    part: str = typer.Option("lpddr4-3200", parser=PART, help="Shipped part or a part file (YAML)."),
    format: str = typer.Option(None, "--format", "--from", help="Format of the trace, if the file does not show it."),
    controller: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Controller parameter, e.g. --set page_policy=closed; repeatable."
    ),
    encoder: str = typer.Option("raw", help="Encoder of the data wires, where the trace carries its bytes."),
    explain: bool = typer.Option(False, "--explain", help="Show count x constant = energy for every term."),
    check: bool = typer.Option(False, "--check", help="Verify every command against the part's constraints."),
    commands: Path = typer.Option(
        None, "--commands", parser=written, metavar="FILE", help="Write the command trace as CSV."
    ),
    json_file: str = json_option(),
) -> None:
    """Simulate a trace of memory requests on a DRAM part.

    Each request is one burst of the part; without arrival cycles in the trace all are offered at once.

      edgewatt dram requests.trc

      edgewatt dram requests.trc --part ddr4-3200-x8 --set page_policy=closed --explain

      edgewatt dram requests.trc --check --commands commands.csv
    """
    from edgewatt.cli.parts.output import show_table, write_json
    from edgewatt.memory.requests import play_requests

    played = play_requests(
        trace, part=part, format=format, controller=_parameters(controller), encoder=encoder,
        commands=check or commands is not None,
    )  # fmt: skip
    report = played.as_dict()
    if check:
        report["violations"] = played.violations()
    if commands is not None:
        played.write_commands(commands)
    if not write_json(report, json_file):
        plain = [(key, report[key]) for key in ("part", "requests", "total_cycles", "row_hits", "row_conflicts")]
        plain += [
            (key, report[key])
            for key in report
            if (key.startswith("read_latency_p") or key.endswith("max_cycles")) and report[key] is not None
        ]
        numbers = ("time_ns", "mean_read_latency_cycles", "mean_requests_in_memory", "core_energy_pj")
        shown = [key for key in (*numbers, "interface_energy_pj", "total_energy_pj") if report[key] is not None]
        plain += [(key, f"{report[key]:.1f}") for key in shown]
        plain.append(("core energy between", "{:.1f} and {:.1f}".format(*played.energy_range)))
        if played.with_data:
            plain.append(("wires counted", f"all, DQ and flags of encoder {encoder}"))
        else:
            plain.append(("wires counted", "strobes, clocks and commands; DQ needs the bytes of whole bursts"))
        show_table(("what", "value"), [*plain, *report["commands"].items()], title=f"edgewatt dram {trace.name}")
        if explain:
            columns = ("term", "count", "unit", "constant_pj", "energy_pj")
            cells = [
                [f"{r[c]:,.4f}" if c.endswith("pj") else r[c] for c in columns]
                for r in (*report["terms"], *report["interface_terms"])
                if r["count"]
            ]
            show_table(columns, cells, title="count x constant = energy", numeric=("count", "constant_pj", "energy_pj"))
            steps = [(row["from_cycles"], row["requests"]) for row in report["read_latency_histogram"]]
            show_table(("latency from", "reads"), steps, title="read latency, clocks")
            names = ("channel", "bank", "bursts", "hits", "conflicts", "activates", "closed")
            show_table(names, [[row[n] for n in names] for row in report["banks"]], title="rows by bank")
        if check:
            say("\n".join(report["violations"]) or "every command is legal")
    if report.get("violations"):
        raise typer.Exit(1)


def _parameters(given: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE pairs: whole numbers, true and false, else text."""
    from traces.base.checks import is_whole
    from traces.base.errors import InputError

    parameters: dict[str, Any] = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--set {pair}: write KEY=VALUE, e.g. --set page_policy=closed")
        if value in ("true", "false"):
            parameters[key] = value == "true"
        else:
            parameters[key] = int(value) if is_whole(value.removeprefix("-")) else value
    return parameters


part_app = CommandGroup(no_args_is_help=True, help="Work with memory parts.")


@part_app.command()
def library(
    part: str = typer.Argument(..., parser=PART, help="Shipped part or a part file (YAML)."),
    file: str = typer.Argument(..., parser=written, metavar="OUTPUT", help="The file to write."),
    controller: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Controller parameter; repeatable."),
) -> None:
    """Write the file that the C library opens.

    It holds the part and its controller, with all times in clocks.

    Example:  edgewatt part library lpddr4-3200 lpddr4.edram --set page_policy=closed
    """
    from edgewatt.memory.part_files import library_file

    headers = library_file(file, part, _parameters(controller))
    say(f'{file}: open it with edgewatt_dram_open; #include "dram/edgewatt_dram.h" with -I{headers}')


@part_app.command("import")
def import_(
    file: Path = typer.Argument(..., help="DRAMSys JSON, or a Ramulator 2 DRAM section as YAML."),
    output: str = typer.Option(
        ..., "--output", "-o", parser=written, metavar="FILE", help="The part file (YAML) to write."
    ),
    base: str = typer.Option(
        None, help="Part that gives wires and command levels (default: a shipped one of the same standard)."
    ),
    name: str = typer.Option(None, help="Name of the part (default: the file's own)."),
    format: str = typer.Option(None, help="dramsys or ramulator2, if the file does not show it."),
) -> None:
    """Make a part file of another simulator's memory file.

    Sizes, times and (DRAMSys) currents come from the file, wires and command levels from the base part.

    Example:  edgewatt part import MICRON_4Gb_DDR4-2400.json -o my-ddr4.yaml
    """
    from edgewatt.memory.part_files import import_file, imported_in_words

    imported = import_file(file, output, base=base, name=name, format=format)
    first, *others = imported_in_words(imported)
    say("\n".join([f"{output}: {first}", *others]))


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(dram)
    app.add_typer(part_app, name="part")
