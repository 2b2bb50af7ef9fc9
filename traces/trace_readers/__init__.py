"""Readers of traces made elsewhere: a file becomes a `Trace` of stream "external", chunk by chunk.

The formats are those of `traces.trace_writers`, one module each; see `traces.trace_readers.reader`. An error names the
file and the line (or record).
"""

from traces.trace_readers.opening import guess_format, open_trace
from traces.trace_readers.reader import TRACE_READERS, TraceReader
from traces.trace_readers.source import Source
from traces.trace_readers.text import PlainLine, Refused, TextReader

__all__ = ["TRACE_READERS", "PlainLine", "Refused", "Source", "TextReader", "TraceReader", "guess_format", "open_trace"]
