"""DRAMsim3: ``0x1F40 READ 12`` (address, READ or WRITE, clock of arrival)."""

from traces.trace_readers.reader import TRACE_READERS
from traces.trace_readers.text import PlainLine, Record, TextReader, need, number, operation


def _dramsim3(words: list[str]) -> Record:
    need(words, "ADDRESS READ|WRITE CLOCK")
    op = operation(words[1], ("READ", "read", "P_MEM_RD"), ("WRITE", "write", "P_MEM_WR", "BOFF"))
    return number(words[0], 16, "address"), 0, op, number(words[2], 10, "clock")


TRACE_READERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")(
    TextReader(_dramsim3, (PlainLine(("address", "op", "clock"), {b"READ": 0, b"WRITE": 1}),))
)
