"""`edgewatt export`: memory traces in the formats of other simulators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from edgewatt.cli.parts.arguments import CONFIGURATIONS, NETWORKS, json_option, reads, writes
from edgewatt.cli.parts.output import progress, say, tell_notes, write_json
from edgewatt.cli.parts.source import takes_source

if TYPE_CHECKING:
    from edgewatt.config.source import NetworkFiles


def export(
    source: NetworkFiles = typer.Argument(
        ...,
        parser=reads("a run configuration or a trace", *CONFIGURATIONS, *NETWORKS, "trace"),
        help="A run configuration (YAML), a trace file of any known format, or (for C) a network.",
    ),
    output: str = writes("The file to write.", "-o", "--output", default=...),
    format: str = typer.Option(
        ...,
        "-f",
        "--format",
        help="A trace writer (`edgewatt list trace-writers`); or drampower: DRAM commands; matrix: the reordered "
        "weights, one .npz (SciPy), .safetensors or .mtx file per layer; vcd: the wires of a channel as a waveform "
        "(GTKWave, Surfer); or c: inference in this order of work as one self-contained C file.",
    ),
    level: str = typer.Option(
        "accesses", help="accesses: what the engine asks for; bursts: what leaves the configuration's caches."
    ),
    point: int = typer.Option(0, min=0, help="Index of the ordering x stride x format in the configuration, from 0."),
    source_format: str = typer.Option(
        None, "--from", metavar="FORMAT", help="Format of a trace file, if it does not show it."
    ),
    access_bytes: int = typer.Option(32, help="Bytes of an access where a trace file has no sizes."),
    dtype: str = typer.Option("float32", help="Numbers of a C file: float32 or int8."),
    lanes: int = typer.Option(
        None, min=1, max=1024, help="Input vectors that a C file takes at a time (default: the configuration's, or 1)."
    ),
    line_bytes: int = typer.Option(64, help="Bytes of an object in the libcachesim formats."),
    first: int = typer.Option(0, min=0, help="The first burst that a waveform shows."),
    bursts: int = typer.Option(256, min=1, help="How many bursts a waveform shows."),
    channel: int = typer.Option(0, min=0, help="Memory channel of a waveform or command trace."),
    overrides: list[str] = typer.Option(
        None, "-s", "--set", metavar="KEY=VALUE", help="Replace a value of the configuration."
    ),
    json_file: str = json_option("the summary"),
) -> None:
    """Write a memory trace in a format that another tool reads.

    The trace is that of a configuration, or another simulator's file.

    Example:  edgewatt export configs/examples/formats.yaml -f dinero -o accesses.din

    Example:  edgewatt export configs/examples/formats.yaml -f dramsim3 --level bursts -o requests.trace

    Example:  edgewatt export requests.trace -f libcachesim -o requests.bin

    Example:  edgewatt export configs/examples/formats.yaml --point 6 -f matrix -o reordered.npz

    Example:  edgewatt export configs/examples/formats.yaml -f vcd --bursts 64 -o wires.vcd
    """
    from edgewatt.cli.parts.recognition import refuse_other_kinds
    from edgewatt.memory.exports import OF_NETWORKS, ExportRequest
    from edgewatt.memory.exports import export as write

    if format not in OF_NETWORKS:
        refuse_other_kinds("a run configuration or a trace", (*CONFIGURATIONS, "trace"), source.files[0])
    with progress("export") as update:
        request = ExportRequest(
            source, format, output, level, point, tuple(overrides or ()), source_format, access_bytes, dtype,
            line_bytes, first, bursts, channel, update, lanes,
        )  # fmt: skip
        done = write(request)
    tell_notes(done.notes, source.files)
    if not write_json(dict(done.summary), json_file):
        say(done.sentence)
        if request.which:
            say(request.which)


def add_to(app: typer.Typer) -> None:
    app.command()(takes_source("source", str)(export))
