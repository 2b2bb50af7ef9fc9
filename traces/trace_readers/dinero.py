"""Dinero IV's extended format: ``r 1f40 4``, address and size hexadecimal."""

from traces.trace_readers.reader import TRACE_READERS
from traces.trace_readers.text import Record, TextReader, access_size, need, number, operation


def _dinero(words: list[str]) -> Record:
    need(words, "r|w|i|m ADDRESS SIZE")
    op = operation(words[0], ("r", "i", "m"), ("w",))  # instruction fetches and others are loads
    size = access_size(words[2], 16, "size")
    return number(words[1], 16, "address"), size, op, -1


TRACE_READERS.register("dinero", summary="Dinero IV extended: r or w, hexadecimal address and size")(
    TextReader(_dinero, ("op", "address", "size"), {b"r": 0, b"w": 1})
)
