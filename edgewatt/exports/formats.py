"""The formats of an export: all trace writers, and those that need a machine or an order."""

from __future__ import annotations

from edgewatt.exports.request import Export, Exported, ExportRequest
from edgewatt.exports.traces import commands, trace_file, waveform
from edgewatt.exports.weights import c_file, matrices
from traces.base.errors import unknown_name
from traces.trace_files import TRACE_WRITERS

__all__ = ["Export", "ExportRequest", "Exported", "export", "export_formats"]

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
