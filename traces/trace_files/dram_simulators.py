"""DRAMsim3: ``0x1F40 READ 12`` (address, READ or WRITE, clock of arrival). Ramulator 2, frontend LoadStoreTrace:
``LD 0x1f40`` or ``ST 0x1f40``."""

from __future__ import annotations

from traces.trace_files.reader import TRACE_READERS
from traces.trace_files.text import PlainLine, Record, TextReader, need, number, operation
from traces.trace_files.writer import TRACE_WRITERS, LineWriter


def _dramsim3(words: list[str]) -> Record:
    need(words, "ADDRESS READ|WRITE CLOCK")
    op = operation(words[1], ("READ", "read", "P_MEM_RD"), ("WRITE", "write", "P_MEM_WR", "BOFF"))
    return number(words[0], 16, "address"), 0, op, number(words[2], 10, "clock")


TRACE_READERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")(
    TextReader(_dramsim3, (PlainLine(("address", "op", "clock"), {b"READ": 0, b"WRITE": 1}),))
)


def _dramsim3_lines(address: list[int], size: list[int], op: list[int], cycle: list[int]) -> list[str]:
    return [f"0x{a:X} {'WRITE' if o else 'READ'} {c}\n" for a, o, c in zip(address, op, cycle, strict=True)]


TRACE_WRITERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")(LineWriter(_dramsim3_lines))


def _ramulator2(words: list[str]) -> Record:
    need(words, "LD|ST ADDRESS")
    base = 16 if words[1][:2].lower() == "0x" else 10
    return number(words[1], base, "address"), 0, operation(words[0], ("LD",), ("ST",)), -1


TRACE_READERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")(
    TextReader(_ramulator2, (PlainLine(("op", "address"), {b"LD": 0, b"ST": 1}, prefixed=True),))
)


def _ramulator2_lines(address: list[int], size: list[int], op: list[int], cycle: list[int]) -> list[str]:
    return [f"{'ST' if o else 'LD'} 0x{a:x}\n" for a, o in zip(address, op, strict=True)]


TRACE_WRITERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")(
    LineWriter(_ramulator2_lines)
)
