"""Valgrind's lackey (``--trace-mem=yes``): ``I  04000c30,3``, `` L 1ffeffe7e8,8``, `` S ...``, `` M ...``.

Addresses are hexadecimal, sizes decimal. A modify (M) is a load and a store of the same bytes. An instruction fetch
(I) is no access to data: `lackey` drops it, `lackey-fetches` keeps it as a load of the stream "instructions".
Valgrind's own lines (``==123== ...``) are passed over.
"""

from __future__ import annotations

from traces.trace_files.reader import TRACE_READERS
from traces.trace_files.text import FETCH, PlainLine, Record, TextReader, access_size, need, number, operation


def _lackey(words: list[str]) -> Record | list[Record]:
    need(words, "I|L|S|M ADDRESS SIZE")
    address, size = number(words[1], 16, "address"), access_size(words[2], 10, "size")
    if words[0] == "M":
        return [(address, size, 0, -1), (address, size, 1, -1)]
    if words[0] == "I":
        return address, size, FETCH, -1
    return address, size, operation(words[0], ("L", "M"), ("S",)), -1


for _name, _fetches, _what in (("lackey", False, "dropped"), ("lackey-fetches", True, "kept")):
    TRACE_READERS.register(
        _name, summary=f"valgrind --tool=lackey --trace-mem=yes: L, S or M, address, size; fetches (I) are {_what}"
    )(
        TextReader(
            _lackey,
            (PlainLine(("op", "address", "size10"), {b"I": FETCH, b"L": 0, b"S": 1, b"M": 2}),),
            comments=("#", "==", "--"),
            fetches=_fetches,
        )
    )
