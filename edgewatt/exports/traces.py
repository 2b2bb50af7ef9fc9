"""Exports of what a point asks of its memory: accesses or bursts, DRAM commands, the wires of a channel."""

from __future__ import annotations

from edgewatt.exports.request import Exported, ExportRequest
from edgewatt.runs.compute import Computation
from edgewatt.runs.machine import build_machine
from edgewatt.runs.memo import Memo
from edgewatt.runs.steps import STEPS
from hwmodel.machine import Machine
from hwmodel.replay.commands import export_commands
from hwmodel.replay.hierarchy import burst_trace
from hwmodel.replay.waveform import export_waveform
from traces.access.trace import Trace
from traces.base.errors import InputError
from traces.trace_files import export_trace, open_trace


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
