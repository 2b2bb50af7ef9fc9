"""Files of traces, one format a module: read as a `Trace` of stream "external", chunk by chunk, and written.

See `traces.trace_files.reader` and `.writer`. An error names the file and the line (or record).
"""

from traces.trace_files.reader import ACCESS_BYTES, OBJECTS, TRACE_READERS, TraceReader, guess_format, open_trace
from traces.trace_files.source import Source
from traces.trace_files.text import PlainLine, Refused, TextReader
from traces.trace_files.writer import TRACE_WRITERS, TraceWriter, columns, export_trace

__all__ = [
    "ACCESS_BYTES",
    "OBJECTS",
    "TRACE_READERS",
    "TRACE_WRITERS",
    "PlainLine",
    "Refused",
    "Source",
    "TextReader",
    "TraceReader",
    "TraceWriter",
    "columns",
    "export_trace",
    "guess_format",
    "open_trace",
]
