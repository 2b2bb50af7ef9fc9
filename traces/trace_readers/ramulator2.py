"""Ramulator 2, frontend LoadStoreTrace: ``LD 0x1f40`` or ``ST 0x1f40``."""

from traces.trace_readers.reader import TRACE_READERS
from traces.trace_readers.text import PlainLine, Record, TextReader, need, number, operation


def _ramulator2(words: list[str]) -> Record:
    need(words, "LD|ST ADDRESS")
    base = 16 if words[1][:2].lower() == "0x" else 10
    return number(words[1], base, "address"), 0, operation(words[0], ("LD",), ("ST",)), -1


TRACE_READERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")(
    TextReader(_ramulator2, (PlainLine(("op", "address"), {b"LD": 0, b"ST": 1}, prefixed=True),))
)
