"""The formats of an export: all trace writers, and those that need a machine or an order."""

from __future__ import annotations

from edgewatt.exports.traces import commands, trace_file, waveform
from edgewatt.exports.weights import c_file, matrices
from edgewatt.exports.wish import Export, Exported, Wish
from traces.base.errors import unknown_name
from traces.trace_writers import TRACE_WRITERS

__all__ = ["Export", "Exported", "Wish", "export", "export_formats"]

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


def export(wish: Wish) -> Exported:
    """Write a file. Raises InputError for a format or level that is not known and for a source that does not fit."""
    if wish.level not in LEVELS:
        raise unknown_name("level", wish.level, LEVELS)
    known = export_formats()
    if wish.format not in known:
        raise unknown_name("export format", wish.format, known)
    return known[wish.format].write(wish)
