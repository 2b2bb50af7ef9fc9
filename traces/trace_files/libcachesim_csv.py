"""libCacheSim as text: time, object, size and position of the object's next request; objects are lines.

A header names the columns, in any order and with others among them; without one they are those four. A size column may
be missing (`access_bytes` then), and a column of operations tells stores from loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from traces.trace.chunks import Chunk, Trace
from traces.trace_files.libcachesim import oracle_records
from traces.trace_files.reader import TRACE_READERS, TraceReader, first_words
from traces.trace_files.source import Source
from traces.trace_files.text import Record, Refused, TextReader, access_size, number
from traces.trace_files.writer import TRACE_WRITERS, TraceWriter

_PLAIN = {"object": 1, "size": 2}
_COLUMNS = {
    "object": {"object", "obj", "obj_id", "object_id", "objid", "id", "key", "lba", "lbn", "block"},
    "size": {"size", "obj_size", "object_size", "objsize", "bytes", "length", "len"},
    "op": {"op", "operation", "type"},
}
_LOADS = {"r", "read", "get", "gets", "load", "28", "0"}
_STORES = {"w", "write", "set", "put", "add", "replace", "store", "2a", "1"}


class LibcachesimCsvReader(TraceReader):
    is_text = True

    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        words = first_words(head)
        if not words:
            return False
        try:
            if (_header(words) or _PLAIN) is _PLAIN:
                _record(words, _PLAIN, 1)
                return len(words) in (3, 4)
        except ValueError:
            return False
        return True

    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        columns: list[dict[str, int]] = []  # where they are, once the first line has told

        def parse(words: list[str]) -> Record | None:
            if not columns:
                header = _header(words)
                columns.append(header or _PLAIN)
                if header:
                    return None
            return _record(words, columns[0], access_bytes)

        return TextReader(parse).chunks(source, access_bytes)


def _header(words: list[str]) -> dict[str, int] | None:
    """Return where the columns are by a header's words, None where the line is no header."""
    if words[0].isdigit():
        return None
    names = [word.strip("\"'").lower().replace("-", "_") for word in words]
    columns = {name: at for name, known in _COLUMNS.items() for at, word in enumerate(names) if word in known}
    if "object" not in columns:
        raise Refused("a header without a column of objects (obj_id, object, id, key, lba)")
    return columns


def _record(words: list[str], columns: dict[str, int], access_bytes: int) -> Record:
    """Return address, size and op of a line, which has no clock."""
    try:
        size = access_size(words[columns["size"]], 10, "size") if "size" in columns else access_bytes
        address = number(words[columns["object"]], 10, "object") * size
        word = words[columns["op"]].strip("\"'").lower() if "op" in columns else "r"
    except IndexError:
        raise Refused(f"{len(words)} fields, expected 'TIME OBJECT SIZE NEXT' or as many as the header has") from None
    if address + size > 2**63:
        raise Refused(f"object {words[columns['object']]} times {size} bytes is beyond 2^63: objects are line numbers")
    op = int(word in _STORES)
    if not op and word not in _LOADS:
        raise Refused(f"operation {word[:40]!r} is neither a read nor a write")
    return address, size, op, -1


TRACE_READERS.register("libcachesim-csv", summary="libCacheSim text: time, object, size, next, or as a header says")(
    LibcachesimCsvReader()
)


class LibcachesimCsvWriter(TraceWriter):
    suffix = ".csv"
    by_lines = True

    def write(self, trace: Trace, stream: IO[bytes], line_bytes: int) -> int:
        stream.write(b"time,obj_id,obj_size,next_access_vtime\n")
        written = 0
        for records in oracle_records(trace, line_bytes):
            stream.write("".join([f"{t},{o},{n},{later}\n" for t, o, n, later in records.tolist()]).encode())
            written += len(records)
        return written


TRACE_WRITERS.register(
    "libcachesim-csv", summary="libCacheSim text: time, object, size, next request; objects are lines"
)(LibcachesimCsvWriter())
