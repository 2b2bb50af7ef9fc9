"""Files of traces, one format a module: read as a `Trace` of stream "external", chunk by chunk, and written.

See `traces.trace_files.reader` and `.writer`. An error names the file and the line (or record).
"""

from traces.trace_files.reader import ACCESS_BYTES, OBJECTS, TRACE_READERS, guess_format, open_trace
from traces.trace_files.writer import TRACE_WRITERS, export_trace

__all__ = ["ACCESS_BYTES", "OBJECTS", "TRACE_READERS", "TRACE_WRITERS", "export_trace", "guess_format", "open_trace"]
