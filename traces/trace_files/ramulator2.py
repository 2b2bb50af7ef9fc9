"""Ramulator 2, frontend LoadStoreTrace: ``LD 0x1f40`` or ``ST 0x1f40``."""

from __future__ import annotations

from traces.trace_files.reader import TRACE_READERS
from traces.trace_files.text import PlainLine, Record, TextReader, need, number, operation
from traces.trace_files.writer import TRACE_WRITERS, LineWriter


def _ramulator2(words: list[str]) -> Record:
    need(words, "LD|ST ADDRESS")
    base = 16 if words[1][:2].lower() == "0x" else 10
    return number(words[1], base, "address"), 0, operation(words[0], ("LD",), ("ST",)), -1


TRACE_READERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")(
    TextReader(_ramulator2, (PlainLine(("op", "address"), {b"LD": 0, b"ST": 1}, prefixed=True),))
)


def _lines(address: list[int], size: list[int], op: list[int], cycle: list[int]) -> list[str]:
    return [f"{'ST' if o else 'LD'} 0x{a:x}\n" for a, o in zip(address, op, strict=True)]


TRACE_WRITERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")(
    LineWriter(".trace", _lines)
)
