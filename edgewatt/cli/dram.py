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
    import numpy as np

    from edgewatt.cli.parts.output import show_table, write_json
    from hwmodel.dram.checker import check_trace
    from hwmodel.dram.command_table import from_trace
    from hwmodel.dram.energy import core_rows
    from hwmodel.dram.energy import explain as explain_rows
    from hwmodel.dram.engine import controller_spec, load_part, simulate_dram
    from hwmodel.dram.memory_kernel import effective_part
    from hwmodel.dram.ranges import energy_range
    from traces.trace_readers import open_trace

    loaded = load_part(part)
    burst = np.uint64(loaded.organisation.burst_bytes)
    opened = open_trace(trace, format, access_bytes=int(burst))
    chunks = list(opened)
    address = np.concatenate([chunk.address for chunk in chunks]) // burst * burst
    arrivals = [chunk.cycle if chunk.cycle is not None else np.zeros(len(chunk), np.int64) for chunk in chunks]
    spec = controller_spec(_parameters(controller))
    machine = _data_machine(chunks, loaded, spec, encoder)
    if machine is not None:
        spec = machine.memory_controller()  # an encoder may lengthen reads
    result = simulate_dram(
        address,
        np.concatenate([chunk.op for chunk in chunks]),
        np.concatenate(arrivals),
        part=loaded,
        controller=spec,
        trace=check or commands is not None,
    )
    reads = np.concatenate([chunk.op for chunk in chunks]) == 0 if chunks else np.zeros(0, bool)
    wires = _wires(result, loaded) if machine is None else _data_wires(opened.memory, chunks, arrivals, machine, result)
    core = core_rows(result.counts, loaded)
    least, most = energy_range(loaded, core)
    rows, wire_rows = explain_rows(core), explain_rows(wires)
    p50, p95, p99 = result.latency_percentiles(reads) if result.counts.reads else (None, None, None)
    edges, histogram = result.latency_histogram(reads)
    report: dict[str, Any] = {
        "part": loaded.name,
        "requests": len(address),
        "total_cycles": result.total_cycles,
        "time_ns": result.time_ns,
        "mean_read_latency_cycles": result.mean_read_latency_cycles if result.counts.reads else None,
        "read_latency_p50_cycles": p50,
        "read_latency_p95_cycles": p95,
        "read_latency_p99_cycles": p99,
        "read_latency_max_cycles": result.counts.max_read_latency_cycles if result.counts.reads else None,
        "read_latency_histogram": [
            {"from_cycles": int(low), "requests": int(n)} for low, n in zip(edges, histogram, strict=False) if n
        ],
        "mean_requests_in_memory": result.mean_requests_in_memory,
        "bandwidth_gbytes_per_s": [round(float(rate), 3) for rate in result.bandwidth_over_time()],
        "row_hits": result.counts.row_hits,
        "row_conflicts": int(sum(row["conflicts"] for row in result.rows_by_bank())),
        "banks": [row for row in result.rows_by_bank() if row["bursts"]],
        "commands": {name: count for name, count in result.commands.items() if count},
        "core_energy_pj": result.total_energy_pj,
        "core_energy_low_pj": least,
        "core_energy_high_pj": most,
        "interface_energy_pj": sum(row.energy_pj for row in wires),
        "total_energy_pj": result.total_energy_pj + sum(row.energy_pj for row in wires),
        "terms": rows,
        "interface_terms": wire_rows,
    }
    if check:
        report["violations"] = [
            violation.message
            for channel in result.command_trace or ()
            for violation in check_trace(
                from_trace(channel, part=loaded, end_cycle=result.end_cycle),
                part=effective_part(loaded, spec),
                read_dbi=spec.read_dbi,
                command_occupancy=spec.command_occupancy,
                refresh=spec.refresh,
                pull_in=spec.refresh_pull_in,
                management=spec.refresh_management,
            )
        ]
    if commands is not None:
        _write_commands(commands, result.command_trace or (), result.end_cycle)
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
        plain.append(("core energy between", f"{least:.1f} and {most:.1f}"))
        if machine is None:
            plain.append(("wires counted", "strobes, clocks and commands; DQ needs the bytes of whole bursts"))
        else:
            plain.append(("wires counted", f"all, DQ and flags of encoder {encoder}"))
        show_table(("what", "value"), [*plain, *report["commands"].items()], title=f"edgewatt dram {trace.name}")
        if explain:
            columns = ("term", "count", "unit", "constant_pj", "energy_pj")
            cells = [
                [f"{r[c]:,.4f}" if c.endswith("pj") else r[c] for c in columns]
                for r in (*rows, *wire_rows)
                if r["count"]
            ]
            show_table(columns, cells, title="count x constant = energy", numeric=columns[1:2] + columns[3:])
            steps = [(row["from_cycles"], row["requests"]) for row in report["read_latency_histogram"]]
            show_table(("latency from", "reads"), steps, title="read latency, clocks")
            names = ("channel", "bank", "bursts", "hits", "conflicts", "activates", "closed")
            show_table(names, [[row[n] for n in names] for row in report["banks"]], title="rows by bank")
        if check:
            say("\n".join(report["violations"]) or "every command is legal")
    if report.get("violations"):
        raise typer.Exit(1)


def _data_machine(chunks: list[Any], part: Any, spec: Any, encoder: str) -> Any:
    """Return the machine that sends a trace's bytes over the part's wires; None without bytes of whole bursts."""
    from hwmodel.coding.chain import chain_facts
    from hwmodel.machine import BusSpec, Machine
    from traces.base.errors import InputError

    o = part.organisation
    size = o.burst_bytes
    whole = all((chunk.size == size).all() and not (chunk.address % size).any() for chunk in chunks)
    if not whole or any(chunk.payload is None for chunk in chunks):
        if not chain_facts(encoder).plain:
            raise InputError(
                f"--encoder {encoder} needs a trace that carries the bytes of whole bursts of {size} bytes"
            )
        return None
    return Machine((), encoder, bus=BusSpec(o.byte_lanes, size), part=part, controller=spec, flush=False)


def _data_wires(memory: Any, chunks: list[Any], arrivals: list[Any], machine: Any, result: Any) -> tuple[Any, ...]:
    """Return the energy rows of all wires, as `edgewatt run` counts them for the same requests at the same clocks."""
    from dataclasses import replace

    from hwmodel.energy.replay import replay_energy
    from hwmodel.replay import replay
    from traces.access.trace import Trace

    at_clocks = [replace(chunk, cycle=cycle) for chunk, cycle in zip(chunks, arrivals, strict=True)]
    played = replay(Trace.from_chunks(at_clocks, memory), machine)
    assert played.dram is not None and played.dram.commands == result.commands
    return replay_energy(played, machine).interface


def _wires(result: Any, part: Any) -> tuple[Any, ...]:
    """Return the energy rows of the wires that do not depend on data: strobes, clock and commands."""
    from hwmodel.dram.energy import interface_rows
    from hwmodel.dram.interface import InterfaceCounts
    from hwmodel.energy.replay import timed_groups

    n = result.commands
    bursts = (n["RD"] + n["RDA"], n["WR"] + n["WRA"] + n["MWR"])
    groups = timed_groups(result.counts, bursts, result.end_cycle, part)
    return interface_rows(InterfaceCounts(tuple(groups), sum(bursts), 0), part)


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


def _write_commands(file: Path, traces: tuple[Any, ...], end_cycle: int) -> None:
    from hwmodel.parts.commands import COMMANDS
    from traces.base.files import whole_file

    columns = ("rank", "bank_group", "bank", "row", "column", "request")
    with whole_file(file) as stream:
        stream.write(b"channel,timestamp_cycles,command,rank,bank_group,bank,row,column,request\n")
        for channel, trace in enumerate(traces):
            for row in trace:
                numbers = ",".join(str(int(row[name])) for name in columns)
                stream.write(f"{channel},{int(row['cycle'])},{COMMANDS[row['command']]},{numbers}\n".encode())
            stream.write(f"{channel},{end_cycle},END,0,0,0,0,0,-1\n".encode())


part_app = CommandGroup(no_args_is_help=True, help="Work with memory parts.")


@part_app.command()
def library(
    part: str = typer.Argument(..., parser=PART, help="Shipped part or a part file (YAML)."),
    file: str = typer.Argument(..., parser=written, metavar="OUTPUT", help="The file to write."),
    controller: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Controller parameter; repeatable."),
) -> None:
    """Write the file that the C library opens.

    The part and its controller, resolved to clocks.

    Example:  edgewatt part library lpddr4-3200 lpddr4.edram --set page_policy=closed
    """
    from hwmodel.c_library import include_folder, write_library_file

    write_library_file(file, part, _parameters(controller))
    say(f'{file}: open it with edgewatt_dram_open; #include "dram/edgewatt_dram.h" with -I{include_folder()}')


@part_app.command("import")
def import_(
    file: Path = typer.Argument(..., help="DRAMSys JSON, or a Ramulator 2 DRAM section as YAML."),
    output: str = typer.Option(
        ..., "--output", "-o", parser=written, metavar="FILE", help="The part file (YAML) to write."
    ),
    base: str = typer.Option(None, help="Part that gives wires and command levels (default: one of the standard)."),
    name: str = typer.Option(None, help="Name of the part (default: the file's own)."),
    format: str = typer.Option(None, help="dramsys or ramulator2, if the file does not show it."),
) -> None:
    """Make a part file of another simulator's memory file.

    Sizes, times and (DRAMSys) currents come from the file, wires and command levels from the base part.

    Example:  edgewatt part import MICRON_4Gb_DDR4-2400.json -o my-ddr4.yaml
    """
    import yaml

    from hwmodel.part_readers.reader import import_part
    from traces.base.files import whole_file

    found = import_part(file, base=base, name=name, format=format)
    text = yaml.safe_dump(found.data, sort_keys=False, allow_unicode=True, width=120)
    with whole_file(output) as stream:
        stream.write(f"# Schema: docs/concepts/dram-parts.md.\n{text}".encode())
    part = found.part
    say(
        f"{output}: {part.name}, {part.standard}, {part.data_rate_mts:.0f} MT/s, "
        f"{part.organisation.capacity_bytes / 2**30:g} GiB, wires of {found.data['extends']}"
    )
    if found.unused:
        say(f"not used: {', '.join(found.unused)}")


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command()(dram)
    app.add_typer(part_app, name="part")
