"""Writers of other simulators' trace formats, one module each; `traces.trace_readers` reads them back."""

from traces.trace_writers.export import export_trace
from traces.trace_writers.writer import TRACE_WRITERS, TraceWriter, columns

__all__ = ["TRACE_WRITERS", "TraceWriter", "columns", "export_trace"]
