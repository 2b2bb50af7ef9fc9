"""pin: the memory trace of Pin's example tool, ``0x7f00: R 0x1f40`` (instruction, R or W, address)."""

from __future__ import annotations

from traces.trace_files.reader import TRACE_READERS
from traces.trace_files.text import Record, TextReader, need, number, operation


def _pin(words: list[str]) -> Record | None:
    if words[0] == "#eof":
        return None
    need(words, "INSTRUCTION: R|W ADDRESS")
    number(words[0].removesuffix(":"), 16, "instruction")
    return number(words[2], 16, "address"), 0, operation(words[1], ("R",), ("W",)), -1


TRACE_READERS.register("pin", summary="Pin's pinatrace: instruction, R or W, address")(TextReader(_pin))
