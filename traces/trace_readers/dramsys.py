"""DRAMSys' trace player (.stl): ``12: read 0x1f40``, a write followed by its bytes where they are known."""

from traces.trace_readers.reader import TRACE_READERS
from traces.trace_readers.text import (
    DIGITS,
    PlainLine,
    Record,
    Refused,
    TextReader,
    access_size,
    need,
    number,
    operation,
)


def _dramsys(words: list[str]) -> Record:
    size = 0
    if len(words) > 1 and words[1].startswith("("):
        size = access_size(words.pop(1).strip("()"), 10, "length")
    if len(words) == 4 and words[1] == "write":
        _data(words.pop())
    need(words, "CLOCK: read|write ADDRESS")
    op = operation(words[1], ("read",), ("write",))
    return number(words[2], 16, "address"), size, op, number(words[0].removesuffix(":"), 10, "clock")


def _data(word: str) -> None:
    digits = word.removeprefix("0x")
    if len(digits) % 2 or not DIGITS[16].issuperset(digits):
        raise Refused(f"data {word[:40]!r} is no hexadecimal string of whole bytes")


TRACE_READERS.register("dramsys", summary="DRAMSys trace player (.stl): clock, read or write, address")(
    TextReader(_dramsys, (PlainLine(("clock:", "op", "address"), {b"read": 0, b"write": 1}),))
)
