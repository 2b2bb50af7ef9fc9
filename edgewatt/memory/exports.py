"""A configuration, a trace or a network as files of other tools: traces, DRAM commands, waveforms, matrices, C."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from edgewatt.results.swept import point_names
from edgewatt.runs.compute import Computation
from edgewatt.runs.gpu import layer_matrices, write_matrices
from edgewatt.runs.memo import Memo
from edgewatt.runs.model import Point, build_machine
from edgewatt.runs.plan import load_sweep
from edgewatt.runs.steps import STEPS, describe_order
from hwmodel.machine import Machine
from hwmodel.processor.export_c import export_c
from hwmodel.replay.commands import export_commands
from hwmodel.replay.hierarchy import burst_trace
from hwmodel.replay.waveform import export_waveform
from traces.base.errors import InputError, unknown_name
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.networks.network import Network
from traces.readers import load
from traces.trace.chunks import Trace
from traces.trace_files import TRACE_WRITERS, export_trace, open_trace


@dataclass(frozen=True)
class ExportRequest:
    """source: a configuration (YAML), with the number of its `point` and `overrides` (KEY=VALUE); else a trace file, of
    `source_format` and with accesses of `access_bytes` where it does not say; for C also a network.

    level: 'accesses' or 'bursts'. dtype, lanes: of a C file (lanes None: the configuration's in float32, else 1).
    line_bytes: of an object in a cache trace. first, bursts: what a waveform shows. channel: of a waveform or a command
    trace.
    """

    source: str
    format: str
    output: str
    level: str = "accesses"
    point: int = 0
    overrides: tuple[str, ...] = ()
    source_format: str | None = None
    access_bytes: int = 32
    dtype: str = "float32"
    line_bytes: int = 64
    first: int = 0
    bursts: int = 256
    channel: int = 0
    progress: Progress | None = None
    lanes: int | None = None

    @property
    def configured(self) -> bool:
        """Whether the source is a configuration."""
        return Path(self.source).suffix in (".yaml", ".yml") or bool(self.overrides and self.networks)

    @property
    def networks(self) -> bool:
        """Whether the format takes a network alone, which settings make a configuration."""
        return self.format in export_formats() and export_formats()[self.format].networks

    @cached_property
    def points(self) -> Sequence[Point]:
        """The points of the configuration."""
        if Path(self.source).suffix in (".yaml", ".yml"):
            return load_sweep(Path(self.source), self.overrides).points
        return load_sweep({"network": {"file": self.source}, "measure": "io"}, self.overrides).points

    @property
    def which(self) -> str:
        """Which of several points it is, in words; '' for the only one."""
        if not self.configured or len(self.points) < 2:
            return ""
        name = point_names([point.config for point in self.points])[self.point]
        return f"point {self.point} of 0 to {len(self.points) - 1} (--point): {name}"

    def chosen(self) -> Point:
        """Return the point of the configuration. Raises InputError where it has none of that number."""
        points = self.points
        if self.point >= len(points):
            raise InputError(
                f"{self.source}: there is no point {self.point}: it has {len(points)} (0 to {len(points) - 1})"
            )
        return points[self.point]

    def ordered_network(self, what: str) -> tuple[Any, Any, Mapping[str, Any]]:
        """Return the point's network, its order and, if that is a simple blocking, its numbers.

        Raises InputError for a recorded trace, which holds no `what`.
        """
        point = self.chosen()
        if point.order is None:
            raise InputError(f"{self.source}: it plays a recorded trace, which holds no {what}")
        steps = Computation(point, Memo())
        tile = describe_order(steps["ordering"])["ordering"].get("tile", {})
        return steps["network"], steps["tuple_order"]["edges"], tile


@dataclass(frozen=True)
class Exported:
    """summary: what was written, as JSON values. sentence: the same in words."""

    summary: Mapping[str, Any]
    sentence: str

    @classmethod
    def records(cls, request: ExportRequest, of: str, written: int) -> Exported:
        """Return what there is to say of a trace: so many records of `of`."""
        summary = {"file": request.output, "format": request.format, "level": of, "records": written}
        return cls(summary, f"{request.output}: {written} records of {of} ({request.format})")


@dataclass(frozen=True)
class Export:
    """One format. write: makes the file. networks: it also takes a network file."""

    write: Callable[[ExportRequest], Exported]
    networks: bool = False


def trace_file(request: ExportRequest) -> Exported:
    """Write the accesses or bursts of a configuration, or another simulator's trace, by a writer of TRACE_WRITERS."""
    if request.configured:
        trace, machine = _played(request)
        trace = burst_trace(trace, machine) if request.level == "bursts" else trace
    elif request.level == "bursts" or request.overrides:
        raise InputError(f"{request.source}: a trace file has no machine: {_with_machine(request)}")
    else:
        trace = open_trace(request.source, request.source_format, access_bytes=request.access_bytes)
    written = export_trace(
        trace, request.output, request.format, line_bytes=request.line_bytes, progress=request.progress
    )
    return Exported.records(request, request.level, written)


def commands(request: ExportRequest) -> Exported:
    """Write a channel's DRAM commands, as DRAMPower reads them."""
    return Exported.records(
        request, "commands", export_commands(*_played(request), request.output, channel=request.channel)
    )


def waveform(request: ExportRequest) -> Exported:
    """Write the wires of a channel burst by burst (VCD)."""
    written = export_waveform(
        *_played(request), request.output, first=request.first, bursts=request.bursts, channel=request.channel
    )  # fmt: skip
    return Exported.records(request, "bursts", written)


def _with_machine(request: ExportRequest) -> str:
    return f"give a configuration with 'trace: {{file: {request.source}}}'"


def _played(request: ExportRequest) -> tuple[Trace, Machine]:
    """Return trace and machine of the point."""
    if not request.configured:
        raise InputError(f"{request.source}: {request.format} needs a machine: {_with_machine(request)}")
    chosen = request.chosen()
    if chosen.machine.gpu is not None:
        raise InputError(
            f"{request.source}: a GPU's sparse products are played, not traced: leave `gpu` out to export a trace"
        )
    if not STEPS["trace"].when(chosen):
        raise InputError(f"{request.source}: 'measure: io' counts I/Os alone, which leave no trace: add -s measure=all")
    trace: Trace = Computation(chosen, Memo())["trace"]
    return trace, build_machine(chosen)


def matrices(request: ExportRequest) -> Exported:
    """Write one matrix a layer, its tuples in the order of work."""
    if not request.configured:
        raise InputError(
            f"{request.source}: matrices come from a configuration (YAML); see edgewatt order-tuples for a matrix"
        )
    network, edges, _ = request.ordered_network("matrix")
    files = [str(path) for path in write_matrices(layer_matrices(network, edges), request.output)]
    words = f"{', '.join(files)}: {len(edges)} weights, rows are outputs, tuples in the order of work"
    return Exported({"files": files, "connections": len(edges)}, words)


def c_file(request: ExportRequest) -> Exported:
    """Write one self-contained C file that computes a network in its order of work."""
    edges: Any = None
    lanes, made_for = request.lanes or 1, "the network's own order"
    if request.configured:
        network, edges, tile = request.ordered_network("network")
        config = request.chosen().config
        if request.lanes is None and request.dtype == "float32":
            lanes = int(config["layout"].get("lanes", 1))
        made_for = f"order: {config['ordering']['kind']}, made for M = {config['fast_memory']['size']}"
        if config["measure"] == "all":
            made_for += f" and the {config['search']['objective']} of the machine with {config['dram']['part']}"
        made_for += "".join(f", {name}: {value}" for name, value in tile.items())
    else:
        network = load(request.source, kind="network")
        if not isinstance(network, Network):
            raise InputError(f"{request.source}: a C file needs a network of neurons, not an operator graph")
    text = export_c(network, edges, dtype=request.dtype, lanes=lanes)
    with whole_file(request.output) as stream:
        stream.write(f"/* {made_for.replace('*/', '* /')} */\n{text}".encode())
    arena = int(re.search(r"^#define \w+_ARENA_BYTES (\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    summary = {"file": request.output, "format": request.format, "dtype": request.dtype, "lanes": lanes,
               "connections": network.n_connections, "arena_bytes": arena, "order": made_for}  # fmt: skip
    many = f"{lanes} vectors at a time, " if lanes > 1 else ""
    words = f"{request.output}: {network.n_connections} connections in {request.dtype}, {many}{arena} bytes of memory; "
    words += made_for
    return Exported(summary, words)


LEVELS = ("accesses", "bursts")


def export_formats() -> dict[str, Export]:
    """Return what can be written, by name."""
    own = {
        "drampower": Export(commands),
        "vcd": Export(waveform),
        "matrix": Export(matrices),
        "c": Export(c_file, networks=True),
    }
    return {**own, **dict.fromkeys(TRACE_WRITERS, Export(trace_file))}


def export(request: ExportRequest) -> Exported:
    """Write a file. Raises InputError for a format or level that is not known and for a source that does not fit."""
    if request.level not in LEVELS:
        raise unknown_name("level", request.level, LEVELS)
    known = export_formats()
    if request.format not in known:
        raise unknown_name("export format", request.format, known)
    return known[request.format].write(request)
