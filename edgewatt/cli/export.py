"""`edgewatt export`: memory traces in the formats of other simulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from edgewatt.cli.parts.guard import written
from edgewatt.cli.parts.inputs import CONFIGURATIONS, NETWORKS, reads, refuse_other_kinds
from edgewatt.cli.parts.output import say

if TYPE_CHECKING:
    from edgewatt.point.model import Point
    from hwmodel.machine import Machine
    from traces.access.trace import Trace

_OVERRIDE = typer.Option(None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the configuration.")


def export(
    source: str = typer.Argument(
        ...,
        parser=reads("a run configuration or a trace", *CONFIGURATIONS, *NETWORKS, "trace"),
        help="A run configuration (YAML), a trace file of any known format, or (for C) a network.",
    ),
    output: str = typer.Option(..., "-o", "--output", parser=written, metavar="FILE", help="The file to write."),
    format: str = typer.Option(
        ...,
        "-f",
        "--format",
        help="dramsim3, ramulator2, dinero, dramsys, drampower, libcachesim, libcachesim-csv, npz, or matrix: the "
        "reordered weights, one .npz (SciPy), .safetensors or .mtx file per layer; vcd: the wires of a channel as a "
        "waveform (GTKWave, Surfer); or c: inference in this order of work as one self-contained C file.",
    ),
    level: str = typer.Option(
        "accesses", help="accesses: what the engine asks for; bursts: what leaves the configuration's caches."
    ),
    point: int = typer.Option(0, min=0, help="Which ordering x stride x format of the configuration, from 0."),
    source_format: str = typer.Option(None, "--from", metavar="FORMAT", help="Format of a trace file (default: look)."),
    access_bytes: int = typer.Option(32, help="Bytes of an access where a trace file does not say."),
    dtype: str = typer.Option("float32", help="Of a C file: float32 or int8."),
    line_bytes: int = typer.Option(64, help="Bytes of an object in the libcachesim formats."),
    first: int = typer.Option(0, min=0, help="Of a waveform: number of the first burst shown."),
    bursts: int = typer.Option(256, min=1, help="Of a waveform: how many bursts are shown."),
    channel: int = typer.Option(0, min=0, help="Of a waveform or a command trace: the memory channel."),
    overrides: list[str] = _OVERRIDE,
    json_file: str = typer.Option(
        None, "--json", metavar="FILE", parser=written, help="Write the summary as JSON ('-': stdout)."
    ),
) -> None:
    """Write the memory trace of a configuration, or of another simulator's file, in a format another tool reads.

    Example:  edgewatt export configs/examples/formats.yaml -f dinero -o accesses.din

    Example:  edgewatt export configs/examples/formats.yaml -f dramsim3 --level bursts -o requests.trace

    Example:  edgewatt export requests.trace -f libcachesim -o requests.bin

    Example:  edgewatt export configs/examples/formats.yaml --point 6 -f matrix -o reordered.npz

    Example:  edgewatt export configs/examples/formats.yaml -f vcd --bursts 64 -o wires.vcd
    """
    from pathlib import Path

    from edgewatt.cli.parts.output import progress
    from hwmodel.replay.command_export import export_commands
    from hwmodel.replay.hierarchy import burst_trace
    from hwmodel.replay.waveform import export_waveform
    from traces.base.errors import InputError, unknown_name
    from traces.trace_readers import open_trace
    from traces.trace_writers import TRACE_WRITERS, export_trace

    if level not in ("accesses", "bursts"):
        raise unknown_name("level", level, ["accesses", "bursts"])
    if format not in (known := ["drampower", "vcd", "matrix", "c", *TRACE_WRITERS]):
        raise unknown_name("export format", format, known)
    if format == "c":
        _export_c(source, overrides or [], point, dtype, output, json_file)
        return
    refuse_other_kinds("a run configuration or a trace", (*CONFIGURATIONS, "trace"), source)
    if format == "matrix":
        _export_matrices(source, overrides or [], point, output, json_file)
        return
    if Path(source).suffix in (".yaml", ".yml"):
        trace, machine = _point_of(source, overrides or [], point)
        if format == "drampower":
            _finish(output, format, "commands", export_commands(trace, machine, output, channel=channel), json_file)
            return
        if format == "vcd":
            written = export_waveform(trace, machine, output, first=first, bursts=bursts, channel=channel)
            _finish(output, format, "bursts", written, json_file)
            return
        if level == "bursts":
            trace = burst_trace(trace, machine)
    elif format in ("drampower", "vcd"):
        raise InputError(f"{source}: {format} needs a machine: give a configuration with 'trace: {{file: {source}}}'")
    elif level == "bursts" or overrides:
        raise InputError(
            f"{source}: a trace file has no machine: give a configuration with 'trace: {{file: {source}}}'"
        )
    else:
        trace = open_trace(source, source_format, access_bytes=access_bytes)
    with progress("export") as update:
        written = export_trace(trace, output, format, line_bytes=line_bytes, progress=update)
    _finish(output, format, level, written, json_file)


def _finish(output: str, format: str, level: str, written: int, json_file: str | None) -> None:
    from edgewatt.cli.parts.output import write_json

    summary = {"file": output, "format": format, "level": level, "records": written}
    if not write_json(summary, json_file):
        say(f"{output}: {written} records of {level} ({format})")


def _export_matrices(source: str, overrides: list[str], number: int, output: str, json_file: str | None) -> None:
    from pathlib import Path

    from edgewatt.cli.parts.output import write_json
    from edgewatt.point.compute import Computation
    from edgewatt.point.matrices import layer_matrices, write_matrices
    from edgewatt.point.memo import Memo
    from traces.base.errors import InputError

    if Path(source).suffix not in (".yaml", ".yml"):
        raise InputError(f"{source}: matrices come from a configuration (YAML); see edgewatt order-tuples for a matrix")
    point = _choose(source, overrides, number)
    if point.order is None:
        raise InputError(f"{source}: it plays a recorded trace, which holds no matrix")
    steps = Computation(point, Memo())
    edges = steps["tuple_order"]["edges"]
    files = [str(path) for path in write_matrices(layer_matrices(steps["network"], edges), output)]
    if not write_json({"files": files, "connections": len(edges)}, json_file):
        say(f"{', '.join(files)}: {len(edges)} weights, rows are outputs, tuples in the order of work")


def _export_c(source: str, overrides: list[str], number: int, dtype: str, output: str, json_file: str | None) -> None:
    from pathlib import Path

    from edgewatt.cli.parts.output import write_json
    from hwmodel.processor.export_c import export_c
    from traces.base.errors import InputError
    from traces.base.files import whole_file
    from traces.readers import load
    from traces.work.network import Network

    edges = None
    if Path(source).suffix in (".yaml", ".yml"):
        from edgewatt.point.compute import Computation
        from edgewatt.point.memo import Memo

        point = _choose(source, overrides, number)
        if point.order is None:
            raise InputError(f"{source}: it plays a recorded trace, which holds no network")
        steps = Computation(point, Memo())
        network, edges = steps["network"], steps["tuple_order"]["edges"]
    else:
        network = load(source, kind="network")
        if not isinstance(network, Network):
            raise InputError(f"{source}: a C file needs a network of neurons, not an operator graph")
    text = export_c(network, edges, dtype=dtype)
    with whole_file(output) as stream:
        stream.write(text.encode())
    arena = int(text.split("_ARENA_BYTES ", 1)[1].split(None, 1)[0])
    summary = {
        "file": output,
        "format": "c",
        "dtype": dtype,
        "connections": network.n_connections,
        "arena_bytes": arena,
    }
    if not write_json(summary, json_file):
        say(f"{output}: {network.n_connections} connections in {dtype}, {arena} bytes of memory")


def _choose(source: str, overrides: list[str], number: int) -> Point:
    from pathlib import Path

    from edgewatt.sweeps.plan import load_sweep
    from traces.base.errors import InputError

    points = load_sweep(Path(source), overrides).points
    if number >= len(points):
        raise InputError(f"{source}: there is no point {number}: it has {len(points)} (0 to {len(points) - 1})")
    return points[number]


def _point_of(source: str, overrides: list[str], number: int) -> tuple[Trace, Machine]:
    """Return trace and machine of one point of a configuration."""
    from edgewatt.point.compute import Computation
    from edgewatt.point.machine import build_machine
    from edgewatt.point.memo import Memo
    from edgewatt.point.steps import STEPS
    from traces.base.errors import InputError

    chosen = _choose(source, overrides, number)
    if chosen.machine.gpu is not None:
        raise InputError(f"{source}: a GPU's sparse products are played, not traced: leave `gpu` out to export a trace")
    if not STEPS["trace"].when(chosen):
        raise InputError(f"{source}: 'measure: io' counts I/Os alone, which leave no trace: add -s measure=all")
    trace: Trace = Computation(chosen, Memo())["trace"]
    return trace, build_machine(chosen)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(export)
