"""Exports of what a point asks of its memory: accesses or bursts, DRAM commands, the wires of a channel."""

from __future__ import annotations

from edgewatt.exports.wish import Exported, Wish
from edgewatt.point.compute import Computation
from edgewatt.point.machine import build_machine
from edgewatt.point.memo import Memo
from edgewatt.point.steps import STEPS
from hwmodel.machine import Machine
from hwmodel.replay.command_export import export_commands
from hwmodel.replay.hierarchy import burst_trace
from hwmodel.replay.waveform import export_waveform
from traces.access.trace import Trace
from traces.base.errors import InputError
from traces.trace_readers import open_trace
from traces.trace_writers import export_trace


def trace_file(wish: Wish) -> Exported:
    """Write the accesses or bursts of a configuration, or another simulator's trace, by a writer of TRACE_WRITERS."""
    if wish.configured:
        trace, machine = _played(wish)
        trace = burst_trace(trace, machine) if wish.level == "bursts" else trace
    elif wish.level == "bursts" or wish.overrides:
        raise InputError(f"{wish.source}: a trace file has no machine: {_with_machine(wish)}")
    else:
        trace = open_trace(wish.source, wish.source_format, access_bytes=wish.access_bytes)
    written = export_trace(trace, wish.output, wish.format, line_bytes=wish.line_bytes, progress=wish.progress)
    return Exported.records(wish, wish.level, written)


def commands(wish: Wish) -> Exported:
    """Write a channel's DRAM commands, as DRAMPower reads them."""
    return Exported.records(wish, "commands", export_commands(*_played(wish), wish.output, channel=wish.channel))


def waveform(wish: Wish) -> Exported:
    """Write the wires of a channel burst by burst (VCD)."""
    written = export_waveform(
        *_played(wish), wish.output, first=wish.first, bursts=wish.bursts, channel=wish.channel
    )  # fmt: skip
    return Exported.records(wish, "bursts", written)


def _with_machine(wish: Wish) -> str:
    return f"give a configuration with 'trace: {{file: {wish.source}}}'"


def _played(wish: Wish) -> tuple[Trace, Machine]:
    """Return trace and machine of the point."""
    if not wish.configured:
        raise InputError(f"{wish.source}: {wish.format} needs a machine: {_with_machine(wish)}")
    chosen = wish.chosen()
    if chosen.machine.gpu is not None:
        raise InputError(
            f"{wish.source}: a GPU's sparse products are played, not traced: leave `gpu` out to export a trace"
        )
    if not STEPS["trace"].when(chosen):
        raise InputError(f"{wish.source}: 'measure: io' counts I/Os alone, which leave no trace: add -s measure=all")
    trace: Trace = Computation(chosen, Memo())["trace"]
    return trace, build_machine(chosen)
