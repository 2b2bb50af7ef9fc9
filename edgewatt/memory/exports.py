"""A configuration, a trace or a network as files of other tools: traces, DRAM commands, waveforms, matrices, C."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.config.source import NetworkFiles
from edgewatt.results.swept import point_names
from edgewatt.runs.compute import Computation
from edgewatt.runs.memo import Memo
from edgewatt.runs.model import Point, build_machine
from edgewatt.runs.plan import load_sweep
from edgewatt.runs.steps import STEPS, describe_order
from hwmodel.machine import Machine
from hwmodel.processor.export_c import export_c
from hwmodel.replay.commands import export_commands
from hwmodel.replay.hierarchy import burst_trace
from hwmodel.replay.waveform import export_waveform
from reorder.tuples.files import write_matrix
from traces.base.errors import InputError, unknown_name
from traces.base.files import whole_file
from traces.base.progress import Progress
from traces.networks.network import Network
from traces.trace.chunks import Trace
from traces.trace_files import TRACE_WRITERS, export_trace, open_trace


@dataclass(frozen=True)
class ExportRequest:
    """read: a configuration (YAML), with the number of its `point` and `overrides` (KEY=VALUE); else a trace file, of
    `source_format` and with accesses of `access_bytes` where it does not say; for C also a network.

    level: 'accesses' or 'bursts'. dtype, lanes: of a C file (lanes None: the configuration's in float32, else 1).
    line_bytes: of an object in a cache trace. first, bursts: what a waveform shows. channel: of a waveform or a command
    trace.
    """

    read: NetworkFiles
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
    def source(self) -> str:
        return self.read.files[0]

    @property
    def configured(self) -> bool:
        return Path(self.source).suffix in (".yaml", ".yml") or bool(self.overrides and self.networks)

    @property
    def networks(self) -> bool:
        return self.format in OF_NETWORKS

    @cached_property
    def points(self) -> Sequence[Point]:
        if Path(self.source).suffix in (".yaml", ".yml"):
            return load_sweep(Path(self.source), self.overrides).points
        return load_sweep({"network": self.read.section, "measure": "io"}, self.overrides).points

    @property
    def which(self) -> str:
        if not self.configured or len(self.points) < 2:
            return ""
        name = point_names([point.config for point in self.points])[self.point]
        return f"point {self.point} of 0 to {len(self.points) - 1} (--point): {name}"

    def chosen(self) -> Point:
        points = self.points
        if self.point >= len(points):
            raise InputError(
                f"{self.source}: there is no point {self.point}: it has {len(points)} (0 to {len(points) - 1})"
            )
        return points[self.point]

    def ordered_network(self, what: str) -> tuple[Any, Any, Mapping[str, Any]]:
        """Return the point's network, its order and, if that is a simple blocking, its numbers."""
        point = self.chosen()
        if point.order is None:
            raise InputError(f"{self.source}: it plays a recorded trace, which holds no {what}")
        steps = Computation(point, Memo())
        tile = describe_order(steps["ordering"])["ordering"].get("tile", {})
        return steps["network"], steps["tuple_order"]["edges"], tile


@dataclass(frozen=True)
class Exported:
    """summary: what was written, as JSON values. sentence: the same in words. notes: how a network was read."""

    summary: Mapping[str, Any]
    sentence: str
    notes: tuple[str, ...] = ()

    @classmethod
    def records(cls, request: ExportRequest, of: str, written: int) -> Exported:
        summary = {"file": request.output, "format": request.format, "level": of, "records": written}
        return cls(summary, f"{request.output}: {written} records of {of} ({request.format})")


def trace_file(request: ExportRequest) -> Exported:
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
    return Exported.records(
        request, "commands", export_commands(*_played(request), request.output, channel=request.channel)
    )


def waveform(request: ExportRequest) -> Exported:
    written = export_waveform(
        *_played(request), request.output, first=request.first, bursts=request.bursts, channel=request.channel
    )  # fmt: skip
    return Exported.records(request, "bursts", written)


def _with_machine(request: ExportRequest) -> str:
    return f"give a configuration with 'trace: {{file: {request.source}}}'"


def _played(request: ExportRequest) -> tuple[Trace, Machine]:
    if not request.configured:
        raise InputError(f"{request.source}: {request.format} needs a machine: {_with_machine(request)}")
    chosen = request.chosen()
    if not STEPS["trace"].when(chosen):
        raise InputError(f"{request.source}: 'measure: io' counts I/Os alone, which leave no trace: add -s measure=all")
    trace: Trace = Computation(chosen, Memo())["trace"]
    return trace, build_machine(chosen)


def matrices(request: ExportRequest) -> Exported:
    if not request.configured:
        raise InputError(
            f"{request.source}: matrices come from a configuration (YAML); see edgewatt order-tuples for a matrix"
        )
    network, edges, _ = request.ordered_network("matrix")
    files = [str(path) for path in write_matrices(layer_matrices(network, edges), request.output)]
    words = f"{', '.join(files)}: {len(edges)} weights, rows are outputs, tuples in the order of work"
    return Exported({"files": files, "connections": len(edges)}, words)


def c_file(request: ExportRequest) -> Exported:
    edges: Any = None
    lanes, made_for = request.lanes or 1, "the network's own order"
    if request.configured:
        network, edges, tile = request.ordered_network("network")
        config = request.chosen().config
        if request.lanes is None and request.dtype == "float32":
            lanes = int(config["layout"].get("lanes", 1))
        made_for = f"order: {config['ordering']['kind']}, made for M = {config['fast_memory']['size']}"
        if isinstance(path := config["ordering"].get("path"), dict):
            made_for = f"order: {path['name']}"
        elif config["measure"] == "all":
            made_for += f" and the {config['search']['objective']} of the machine with {config['dram']['part']}"
        made_for += "".join(f", {name}: {value}" for name, value in tile.items())
    else:
        network = request.read.network("export -f c")
    text = export_c(network, edges, dtype=request.dtype, lanes=lanes)
    with whole_file(request.output) as stream:
        stream.write(f"/* {made_for.replace('*/', '* /')} */\n{text}".encode())
    arena = int(re.search(r"^#define \w+_ARENA_BYTES (\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    summary = {"file": request.output, "format": request.format, "dtype": request.dtype, "lanes": lanes,
               "connections": network.n_connections, "arena_bytes": arena, "order": made_for}  # fmt: skip
    many = f"{lanes} vectors at a time, " if lanes > 1 else ""
    words = f"{request.output}: {network.n_connections} connections in {request.dtype}, {many}{arena} bytes of memory; "
    words += made_for
    return Exported(summary, words, network.notes)


def layer_matrices(network: Network, edges: np.ndarray) -> list[Any]:
    """Return scipy.sparse matrices (rows are outputs), float32, whose stored order is that of `edges` (int64[W]).

    Rows and columns count the connected neurons of a layer from 0 in the order of their ids (all inputs, all outputs).
    CSR where the order finishes row after row in the order of their ids, else COO. Raises InputError where the network
    has no layers or weights, or where the order goes back to a layer that it had left.
    """
    from scipy.sparse import coo_matrix, csr_matrix

    if network.layer is None or network.weights is None:
        raise InputError(f"{network.name}: matrices need a layered network with weights")
    layers = network.layer[edges]
    back = np.flatnonzero(np.diff(layers) < 0)
    if len(back):
        at = int(back[0]) + 1
        raise InputError(
            f"{network.name}: the order goes back from layer {int(layers[at - 1])} to layer {int(layers[at])} at its "
            f"{at + 1}th connection, which one matrix per layer cannot hold: export an order that works layer by layer "
            "(two-optimal, layerwise), or write the order itself with `edgewatt order -o order.npz`"
        )
    matrices = []
    groups = _groups(network)
    for layer, (columns, rows) in zip(np.unique(network.layer), pairwise(groups), strict=True):
        mine = edges[network.layer[edges] == layer]
        row = np.searchsorted(rows, network.targets[mine])
        column = np.searchsorted(columns, network.sources[mine])
        shape = (len(rows), len(columns))
        if (np.diff(row) < 0).any():
            matrices.append(coo_matrix((network.weights[mine], (row, column)), shape=shape))
            continue
        pointers = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows)))))
        matrices.append(csr_matrix((network.weights[mine], column, pointers), shape=shape))
    return matrices


def _groups(network: Network) -> list[np.ndarray]:
    """Return the neuron ids between the layers, ascending: inputs, what joins two layers, ..., outputs."""
    assert network.layer is not None
    layers = np.unique(network.layer)
    ends = [np.unique(network.targets[network.layer == layer]) for layer in layers[:-1]]
    starts = [np.unique(network.sources[network.layer == layer]) for layer in layers[1:]]
    joints = [np.union1d(end, start) for end, start in zip(ends, starts, strict=True)]
    return [np.sort(network.inputs), *joints, np.sort(network.outputs)]


def write_matrices(matrices: list[Any], output: str | Path) -> list[Path]:
    """Write one file per layer: `output` itself for a single layer, else NAME-1.EXT, NAME-2.EXT and so on."""
    output = Path(output)
    if output.suffix.lower() == ".safetensors" and any(matrix.format == "coo" for matrix in matrices):
        raise InputError(
            f"{output}: this order does not finish row after row, so it takes coordinate form: write .npz or .mtx"
        )
    paths = [output]
    if len(matrices) > 1:
        paths = [output.with_name(f"{output.stem}-{k}{output.suffix}") for k in range(1, len(matrices) + 1)]
    for matrix, path in zip(matrices, paths, strict=True):
        write_matrix(matrix, path)
    return paths


LEVELS = ("accesses", "bursts")
OF_NETWORKS = ("c",)
OF_FORMATS = {"channel": ("vcd", "drampower"), "first": ("vcd",), "bursts": ("vcd",), "dtype": ("c",), "lanes": ("c",)}


def export_formats() -> dict[str, Callable[[ExportRequest], Exported]]:
    own = {"drampower": commands, "vcd": waveform, "matrix": matrices, "c": c_file}
    return {**own, **dict.fromkeys(TRACE_WRITERS, trace_file)}


def export(request: ExportRequest) -> Exported:
    """Write a file. Raises InputError for a format or level that is not known and for a source that does not fit."""
    if request.level not in LEVELS:
        raise unknown_name("level", request.level, LEVELS)
    known = export_formats()
    if request.format not in known:
        raise unknown_name("export format", request.format, known)
    for name, formats in OF_FORMATS.items():
        if request.format not in formats and getattr(request, name) != getattr(ExportRequest, name):
            raise InputError(f"--{name} is for -f {' and '.join(formats)}, not for -f {request.format}")
    if request.read.options and request.format not in OF_NETWORKS:
        named = next(iter(request.read.options))
        raise InputError(f"{request.source}: {named!r} is for networks, which -f c takes; others need a configuration")
    return known[request.format](request)
