"""libCacheSim as text: time, object, size and position of the object's next request; objects are lines."""

from __future__ import annotations

from traces.trace_readers.reader import TRACE_READERS
from traces.trace_readers.text import Record, TextReader, access_size, need, number


def _libcachesim_csv(words: list[str]) -> Record | None:
    if words[0] == "time":
        return None  # the header
    if len(words) != 3:
        need(words, "TIME OBJECT SIZE NEXT")
    size = access_size(words[2], 10, "size")
    return number(words[1], 10, "object") * size, size, 0, -1


TRACE_READERS.register("libcachesim-csv", summary="libCacheSim text: time, object, size, next; objects are lines")(
    TextReader(_libcachesim_csv)
)
