"""Text formats whose lines are accesses: read many lines at once where they are plain, else line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import ClassVar

import numpy as np

from traces.base.checks import is_whole
from traces.base.errors import InputError
from traces.trace.chunks import LOAD, STREAMS, Chunk
from traces.trace_files.reader import LONGEST_LINE, TraceReader, external_chunk, first_words, words_of
from traces.trace_files.source import Source

Record = tuple[int, int, int, int]  # address, size (0: not said), op (or FETCH), clock of arrival (-1: not said)

FETCH = 3  # the op of an instruction fetch in a Record

_CHUNK, _CHUNK_BYTES = 2**16, 2**24
DIGITS = {10: frozenset("0123456789"), 16: frozenset("0123456789abcdefABCDEF")}


class Refused(ValueError):
    """Why a line cannot be read."""


@dataclass(frozen=True)
class PlainLine:
    """A line that needs no care, for reading many at once.

    fields: what its words are: 'address' and 'size' (hexadecimal), 'size10' (decimal), 'op', 'clock', 'clock:' (with a
    colon). operations: words of 'op': 0 load, 1 store, 2 a load and a store, FETCH. prefixed: addresses start with 0x.
    """

    fields: tuple[str, ...]
    operations: Mapping[bytes, int] = field(default_factory=dict)
    prefixed: bool = False


@dataclass(frozen=True)
class TextReader(TraceReader):
    """A format whose lines are accesses.

    parse: the words of a line to a Record, several of them, or None (a header), or ValueError saying why not. Empty
    lines and those that start with one of `comments` are passed over; `separators` separate like spaces.
    plain: kinds of line that may be read without `parse`, many at once. fetches: instruction fetches are kept, as loads
    of the stream "instructions".
    """

    parse: Callable[[list[str]], Record | list[Record] | None]
    plain: tuple[PlainLine, ...] = ()
    comments: tuple[str, ...] = ("#",)
    separators: str = ","
    fetches: bool = False
    is_text: ClassVar[bool] = True

    def recognises(self, head: bytes, n_bytes: int | None) -> bool:
        words = first_words(head, self.comments, self.separators)
        if not words:
            return False
        try:
            self.parse(words)
        except ValueError:
            return False
        return True

    def chunks(self, source: Source, access_bytes: int) -> Iterator[Chunk]:
        number, last_cycle = 1, 0
        with source.open() as stream:
            lines = iter(partial(stream.readline, LONGEST_LINE), b"")  # a longer one comes in pieces: none is text
            while raws := _next_lines(lines):
                tried = (_plain(raws, line, self.separators, access_bytes, last_cycle) for line in self.plain)
                chunk = next((chunk for chunk in tried if chunk is not None), None)
                if chunk is None:
                    chunk = _careful(raws, self, access_bytes, last_cycle, source.name, number)
                chunk = _without_fetches(chunk, self.fetches)
                if len(chunk):
                    if chunk.cycle is not None:
                        last_cycle = int(chunk.cycle[-1])
                    yield chunk
                number += len(raws)


def _without_fetches(chunk: Chunk, kept: bool) -> Chunk:
    fetch = chunk.op == FETCH
    if not fetch.any():
        return chunk
    if kept:
        stream = np.where(fetch, np.uint8(STREAMS.index("instructions")), chunk.stream)
        return replace(chunk, op=np.where(fetch, np.uint8(LOAD), chunk.op), stream=stream)
    cycle = None if chunk.cycle is None else chunk.cycle[~fetch]
    return external_chunk(chunk.address[~fetch], chunk.size[~fetch], chunk.op[~fetch], cycle)


def _next_lines(lines: Iterator[bytes]) -> list[bytes]:
    raws: list[bytes] = []
    size = 0
    while len(raws) < _CHUNK and size < _CHUNK_BYTES and (more := list(islice(lines, 256))):
        raws += more
        size += sum(map(len, more))
    return raws


def _plain(raws: list[bytes], form: PlainLine, separators: str, access_bytes: int, last_cycle: int) -> Chunk | None:
    """Read many lines at once, if each is a plain one; None leaves it to `_careful`, which finds what is wrong."""
    whole = b"".join(raws)
    if any(mark in whole for mark in (b"#", b"_", b"+", b"-", b"\0")):  # int() would take some of these
        return None
    if len(raws) - whole.count(b"\n") != (not whole.endswith(b"\n")) or len(raws[-1]) == LONGEST_LINE:
        return None  # a line that is too long
    if form.prefixed and whole.count(b" 0x") != len(raws):
        return None
    for separator in map(str.encode, separators):
        if separator in whole:
            raws = [raw.replace(separator, b" ") for raw in raws]
    rows = [raw.split() for raw in raws]
    if set(map(len, rows)) != {len(form.fields)}:
        return None
    columns = dict(zip(form.fields, zip(*rows, strict=True), strict=True))
    n = len(rows)
    try:
        address = np.array([int(word, 16) for word in columns["address"]], np.uint64)
        op = np.array([form.operations[word] for word in columns["op"]], np.uint8)
        size = np.full(n, access_bytes, np.int64)
        for name, base in (("size", 16), ("size10", 10)):
            if name in columns:
                size = np.array([int(word, base) for word in columns[name]], np.int64)
        cycle = None
        if "clock" in columns:
            cycle = np.array(list(map(int, columns["clock"])), np.int64)
        elif "clock:" in columns:
            if not all(word.endswith(b":") for word in columns["clock:"]):
                return None
            cycle = np.array([int(word[:-1]) for word in columns["clock:"]], np.int64)
    except (KeyError, ValueError, OverflowError):
        return None
    if size.min() < 1 or size.max() > 65535 or (address > np.uint64(2**63) - size.astype(np.uint64)).any():
        return None
    if cycle is not None and (cycle[0] < last_cycle or (np.diff(cycle) < 0).any() or cycle[-1] >= 2**60):
        return None
    if (op == 2).any():  # a load and a store of the same bytes
        access = np.repeat(np.arange(n), 1 + (op == 2))
        second = np.r_[False, access[1:] == access[:-1]]
        both = external_chunk(address[access], size[access])
        return replace(both, op=np.where(op[access] == 2, second, op[access]).astype(np.uint8))
    return external_chunk(address, size, op, cycle)


def _careful(raws: list[bytes], form: TextReader, access_bytes: int, last_cycle: int, name: str, first: int) -> Chunk:
    records: list[Record] = []
    for number, raw in enumerate(raws, first):
        words = words_of(raw, form.comments, form.separators)
        try:
            if words is None:
                raise Refused("this is not text (a line of 65536 bytes or with a zero byte)")
            parsed = form.parse(words) if words else None
            if parsed is None:
                continue  # empty, a comment or a header
            for record in parsed if isinstance(parsed, list) else (parsed,):
                address, size, _, cycle = record
                if address + (size or access_bytes) > 2**63:
                    raise Refused(f"the access at {address:#x} does not end below 2^63")
                if cycle >= 0:
                    if cycle < last_cycle:
                        raise Refused(f"clock {cycle} goes back behind {last_cycle}")
                    if cycle >= 2**60:
                        raise Refused(f"clock {cycle} is beyond 2^60")
                    last_cycle = cycle
                records.append(record)
        except ValueError as error:
            words = words_of(raw, form.comments, form.separators)  # parse may have taken some
            given = "" if words is None else f" in {' '.join(words)[:80]!r}"
            raise InputError(f"{name}:{number}: {error}{given}") from error
    table = np.array(records, np.int64).reshape(-1, 4)
    sizes = np.where(table[:, 1] == 0, access_bytes, table[:, 1])
    cycles = table[:, 3] if len(table) and table[0, 3] >= 0 else None
    return external_chunk(table[:, 0].astype(np.uint64), sizes, table[:, 2].astype(np.uint8), cycles)


def number(word: str, base: int, what: str) -> int:
    """Return a number in base 10 or 16 (0x allowed); Refused otherwise."""
    if base == 10 and is_whole(word):
        return int(word)
    digits = word[2:] if base == 16 and word[:2].lower() == "0x" else word
    if not digits or not DIGITS[base].issuperset(digits):
        raise Refused(f"{what} {word[:40]!r} is not a {'hexadecimal' if base == 16 else 'decimal'} number")
    if len(digits) > 20:
        raise Refused(f"{what} {word[:40]!r} is too large")
    return int(digits, base)


def operation(word: str, loads: tuple[str, ...], stores: tuple[str, ...]) -> int:
    """Return 1 for a word of `stores`, 0 for one of `loads`; Refused otherwise."""
    if word in loads or word in stores:
        return int(word in stores)
    raise Refused(f"operation {word[:40]!r} is none of {', '.join(loads + stores)}")


def need(words: list[str], form: str) -> None:
    """Refuse a line that has not as many words as `form` names, which are separated by spaces there."""
    if len(words) != len(form.split()):
        raise Refused(f"{len(words)} fields, expected {form!r}")


def access_size(word: str, base: int, what: str) -> int:
    """Return a size in bytes from 1 to 65535; Refused otherwise."""
    size = number(word, base, what)
    if not 1 <= size <= 65535:
        raise Refused(f"{what} {size} is out of range (1 to 65535 bytes)")
    return size
