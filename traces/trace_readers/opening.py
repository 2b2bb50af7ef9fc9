"""`open_trace`: a trace from a file of any known format."""

from __future__ import annotations

from pathlib import Path

from traces.access.trace import Trace
from traces.base.checks import whole_number
from traces.base.errors import InputError
from traces.trace_readers.reader import TRACE_READERS
from traces.trace_readers.source import Source
from traces.trace_readers.text import first_words

_HEAD_BYTES = 1 << 20


def open_trace(path: str | Path, format: str | None = None, *, access_bytes: int = 32) -> Trace:
    """Open a trace file of any known format; our own npz keeps its data, all others are address-only.

    format: a name of TRACE_READERS; None looks at the file. access_bytes: bytes of an access where the format does not
    say (DRAM requests), and of an object of libcachesim. Files of other simulators are read through once to check
    every record before anything is simulated. Raises InputError naming file and line.
    """
    whole_number(access_bytes, "access_bytes", 1, 65535)
    source = Source.of(path)
    name = _guess(source) if format is None else format
    return TRACE_READERS[name].item.open(source, access_bytes, name)


def guess_format(path: str | Path) -> str:
    """Return the format of a file by its start; last resorts (no signature, only a fitting length) are asked last.

    Raises InputError where none fits.
    """
    return _guess(Source.of(path))


def _guess(source: Source) -> str:
    with source.open() as stream:
        head = stream.read(_HEAD_BYTES)
    readers = TRACE_READERS.sound()
    for name in sorted(readers, key=lambda name: readers[name].item.last_resort):
        if readers[name].item.recognises(head, source.n_bytes):
            return name
    known = [name for name, entry in readers.items() if entry.item.is_text]
    if first_words(head):
        raise InputError(
            f"{source.name}: its first line fits no known trace format ({', '.join(known)}): name it with "
            "--format (format=... in Python)"
        )
    raise InputError(f"{source.name}: no trace format that is known here ({', '.join(readers)})")
