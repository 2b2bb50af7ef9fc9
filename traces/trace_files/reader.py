"""What a trace reader declares, and the registry of trace readers; a text format whose lines are accesses is a
`traces.trace_files.text.TextReader` with a function that reads the words of a line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from traces.base.checks import whole_number
from traces.base.errors import InputError
from traces.base.registry import Registry
from traces.trace.chunks import STREAMS, Chunk, Memory, Trace
from traces.trace_files.source import Source

EXTERNAL = STREAMS.index("external")


class TraceReader(ABC):
    """One format. Subclasses give `chunks`, or `open` where the file says more than a list of accesses.

    is_text: whether the format is lines of text. last_resort: `recognises` is a weak guess, asked after all others.
    """

    is_text: ClassVar[bool] = False
    last_resort: ClassVar[bool] = False

    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        """Return whether a file that starts with `head` (up to a megabyte) and has n_bytes may be of this format."""
        return False

    @abstractmethod
    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        """Yield the accesses in order; called once per walk. access_bytes: size of an access the file does not say."""

    def open(self, source: Source, access_bytes: int, format: str) -> Trace:
        """Read through once, so that every record is checked before anything is simulated, and return the trace."""
        n, low, high = 0, 2**63, 0
        for chunk in self.chunks(source, access_bytes):
            n += len(chunk)
            low = min(low, int(chunk.address.min()))
            high = max(high, int((chunk.address + chunk.size).max()))
        if not n:
            raise InputError(f"{source.name}: no accesses in it")
        description = {"file": Path(source.name).name, "format": format, "access_bytes": access_bytes}
        return Trace(lambda: self.chunks(source, access_bytes), Memory(low, high - low, None), n, description)


def external_chunk(
    address: np.ndarray, size: np.ndarray, op: np.ndarray | None = None, cycle: np.ndarray | None = None
) -> Chunk:
    """Return a chunk of accesses made elsewhere. address: uint64[n]. size: up to 65535 bytes. op: None, all loads."""
    n = len(address)
    op = np.zeros(n, np.uint8) if op is None else op
    return Chunk(address, size.astype(np.uint16), op, np.full(n, EXTERNAL, np.uint8), cycle=cycle)


TRACE_READERS: Registry[TraceReader] = Registry(
    "trace format", "edgewatt.trace_readers", folder="traces.trace_files", instances_of=TraceReader
)


_HEAD_BYTES = 1 << 20
LONGEST_LINE = 2**16  # bytes; a longer one is not of a text trace


ACCESS_BYTES = 32  # of an access where a file has no sizes
OBJECTS = "libcachesim"  # a format of numbered objects, which are as large as its user says


def open_trace(path: str | Path, format: str | None = None, *, access_bytes: int = ACCESS_BYTES) -> Trace:
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
    """Return the format of a file by its start; last resorts (no signature, only a fitting length) are asked last."""
    return _guess(Source.of(path))


def _guess(source: Source) -> str:
    with source.open() as stream:
        head = stream.read(_HEAD_BYTES)
    readers = TRACE_READERS.loadable()
    for name in sorted(readers, key=lambda name: readers[name].item.last_resort):
        if readers[name].item.recognises(head, source.n_bytes):
            return name
    known = [name for name, entry in readers.items() if entry.item.is_text]
    if first_words(head):
        raise InputError(
            f"{source.name}: its first line fits no known trace format ({', '.join(known)}): name it with "
            "--format (--from in export, format=... in Python)"
        )
    raise InputError(f"{source.name}: no trace format that is known here ({', '.join(readers)})")


def first_words(head: bytes, comments: tuple[str, ...] = ("#",), separators: str = ",") -> list[str]:
    """Return the words of the first line that has some, none where the start of the file is not text."""
    lines = (words_of(raw, comments, separators) for raw in head.split(b"\n"))
    return next((words for words in lines if words != []), None) or []


def words_of(raw: bytes, comments: tuple[str, ...] = ("#",), separators: str = ",") -> list[str] | None:
    """Return the words of a line, none for an empty line or comment; None where it is not text."""
    if len(raw) >= LONGEST_LINE or b"\0" in raw:
        return None
    text = raw.decode("ascii", "replace").strip()
    if text.startswith(comments):
        return []
    for separator in separators:
        text = text.replace(separator, " ")
    return text.split()
