"""Dinero: the extended format of Dinero IV, ``r 1f40 4``, and the classic one of Dinero III, ``0 1f40``.

Addresses and sizes are hexadecimal. Classic labels are 0 read, 1 write, 2 instruction fetch, and 3 of a kind not known,
which counts as a read; what follows the address is a comment, and accesses have `access_bytes`. Instruction fetches are
loads. The extended format is written.
"""

from __future__ import annotations

from traces.trace_files.reader import TRACE_READERS, first_words
from traces.trace_files.text import PlainLine, Record, TextReader, access_size, need, number, operation
from traces.trace_files.writer import TRACE_WRITERS, LineWriter


class DineroReader(TextReader):
    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        words = first_words(head)
        classic = words[:1] and words[0].isdigit()
        return not (classic and len(words) != 2) and super().recognises(head, n_bytes)


def _dinero(words: list[str]) -> Record:
    if words[0].isdigit():
        if len(words) < 2:
            need(words, "0|1|2 ADDRESS")
        return number(words[1], 16, "address"), 0, operation(words[0], ("0", "2", "3"), ("1",)), -1
    need(words, "r|w|i|m ADDRESS SIZE")
    op = operation(words[0], ("r", "i", "m"), ("w",))
    return number(words[1], 16, "address"), access_size(words[2], 16, "size"), op, -1


TRACE_READERS.register("dinero", summary="Dinero IV extended: r or w, address, size; classic: 0, 1 or 2, address")(
    DineroReader(
        _dinero,
        (
            PlainLine(("op", "address", "size"), {b"r": 0, b"w": 1}),
            PlainLine(("op", "address"), {b"0": 0, b"1": 1, b"2": 0}),
        ),
    )
)


TRACE_WRITERS.register("dinero", summary="Dinero IV extended: r or w, hexadecimal address and size")(
    LineWriter(
        lambda address, size, op, cycle: [
            f"{'w' if o else 'r'} {a:x} {n:x}\n" for a, n, o in zip(address, size, op, strict=True)
        ]
    )
)
