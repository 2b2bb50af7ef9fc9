"""Readers of other simulators' address traces: a file becomes a `Trace` of stream "external", chunk by chunk.

The formats are those of `traces.export`. An error names the file and the line (or record).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from traces.errors import InputError, unknown_name
from traces.export import ORACLE_GENERAL
from traces.registry import Registry
from traces.trace import STREAMS, Chunk, Memory, Trace, load_trace

Record = tuple[int, int, int, int]  # address, size (0: not said), op, clock of arrival (-1: not said)
LineParser = Callable[[list[str]], Record | None]

LINE_PARSERS: Registry[LineParser] = Registry("trace format", "edgewatt.trace_readers")

_CHUNK = 2**16
_LONGEST_LINE = 2**16  # bytes; a longer one is no text trace
_EXTERNAL = STREAMS.index("external")


class _Refused(ValueError):
    """Why a line cannot be read."""


def open_trace(path: str | Path, format: str | None = None, *, access_bytes: int = 32) -> Trace:
    """Open a trace file of any known format; our own npz keeps its data, all others are address-only.

    format: 'npz', 'libcachesim' or a name of LINE_PARSERS; None looks at the file. access_bytes: bytes of an access
    where the format does not say (DRAM requests), and of an object of libcachesim. Text is read through once to check
    every line before anything is simulated. Raises InputError naming file and line.
    """
    path = Path(path)
    if isinstance(access_bytes, bool) or not isinstance(access_bytes, int) or not 1 <= access_bytes <= 65535:
        raise InputError(f"access_bytes must be a whole number from 1 to 65535, not {access_bytes!r}")
    if format is None:
        format = guess_format(path)
    if format == "npz":
        return load_trace(path)
    if format == "libcachesim":
        read = lambda: _oracle_general(path, access_bytes)  # noqa: E731
    elif format in LINE_PARSERS:
        parse = LINE_PARSERS[format].item
        read = lambda: _text(path, parse, access_bytes)  # noqa: E731
    else:
        raise unknown_name("trace format", format, ["npz", "libcachesim", *LINE_PARSERS])
    n, low, high = 0, 2**63, 0
    for chunk in read():
        n += len(chunk)
        low = min(low, int(chunk.address.min()))
        high = max(high, int((chunk.address + chunk.size).max()))
    if not n:
        raise InputError(f"{path}: no accesses in it")
    description = {"file": path.name, "format": format, "access_bytes": access_bytes}
    return Trace(read, Memory(low, high - low, None), n, description)


def guess_format(path: Path) -> str:
    """Return the format of a file by its start: a zip is npz, text is tried with every parser, else oracleGeneral.

    Raises InputError where none fits.
    """
    with _open(path) as stream:
        head = stream.read(4)
        if head == b"PK\x03\x04":
            return "npz"
        stream.seek(0)
        for _, words in _lines(stream, path):
            if words is None:
                break
            for name, entry in LINE_PARSERS.items():
                try:
                    entry.item(list(words))
                except ValueError:
                    continue
                return name
            raise InputError(
                f"{path}: its first line fits no known trace format ({', '.join(LINE_PARSERS)}): name the format"
            )
    size = path.stat().st_size
    if size and size % ORACLE_GENERAL.itemsize == 0:
        return "libcachesim"
    raise InputError(f"{path}: no trace format that is known here (npz, libcachesim, {', '.join(LINE_PARSERS)})")


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def _lines(stream: IO[bytes], path: Path) -> Iterator[tuple[int, list[str] | None]]:
    """Yield (line number, words) of lines that are neither empty nor comments; words is None where it is no text."""
    number = 0
    while raw := stream.readline(_LONGEST_LINE):
        number += 1
        if len(raw) == _LONGEST_LINE or b"\0" in raw:
            yield number, None
            return
        text = raw.decode("ascii", "replace").strip()
        if text and not text.startswith("#"):
            yield number, text.replace(",", " ").split()


def _text(path: Path, parse: LineParser, access_bytes: int) -> Iterator[Chunk]:
    records: list[Record] = []
    last_cycle = 0
    with _open(path) as stream:
        for number, words in _lines(stream, path):
            try:
                if words is None:
                    raise _Refused("this is no text (a line of 65536 bytes or with a zero byte)")
                record = parse(list(words))
                if record is None:
                    continue  # a header
                address, size, _, cycle = record
                if address + (size or access_bytes) > 2**63:
                    raise _Refused(f"the access at {address:#x} does not end below 2^63")
                if cycle >= 0:
                    if cycle < last_cycle:
                        raise _Refused(f"clock {cycle} goes back behind {last_cycle}")
                    if cycle >= 2**60:
                        raise _Refused(f"clock {cycle} is beyond 2^60")
                    last_cycle = cycle
            except ValueError as error:
                given = "" if words is None else f" in {' '.join(words)[:80]!r}"
                raise InputError(f"{path}:{number}: {error}{given}") from error
            records.append(record)
            if len(records) == _CHUNK:
                yield _chunk(records, access_bytes)
                records = []
    if records:
        yield _chunk(records, access_bytes)


def _chunk(records: list[Record], access_bytes: int) -> Chunk:
    address, size, op, cycle = zip(*records, strict=True)
    sizes = np.array(size, np.uint16)
    sizes[sizes == 0] = access_bytes
    return Chunk(
        np.array(address, np.uint64),
        sizes.astype(np.uint8) if int(sizes.max()) < 256 else sizes,
        np.array(op, np.uint8),
        np.full(len(records), _EXTERNAL, np.uint8),
        cycle=np.array(cycle, np.int64) if cycle[0] >= 0 else None,
    )


def _number(word: str, base: int, what: str) -> int:
    digits = word[2:] if base == 16 and word[:2].lower() == "0x" else word
    allowed = "0123456789abcdefABCDEF" if base == 16 else "0123456789"
    if not digits or any(c not in allowed for c in digits):
        raise _Refused(f"{what} {word[:40]!r} is no {'hexadecimal' if base == 16 else 'decimal'} number")
    if len(digits) > 20:
        raise _Refused(f"{what} {word[:40]!r} is too large")
    return int(digits, base)


def _operation(word: str, loads: tuple[str, ...], stores: tuple[str, ...]) -> int:
    if word in loads or word in stores:
        return int(word in stores)
    raise _Refused(f"operation {word[:40]!r} is none of {', '.join(loads + stores)}")


def _need(words: list[str], form: str) -> None:
    if len(words) != len(form.split()):
        raise _Refused(f"{len(words)} fields, expected {form!r}")


@LINE_PARSERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")
def _dramsim3(words: list[str]) -> Record:
    _need(words, "ADDRESS READ|WRITE CLOCK")
    op = _operation(words[1], ("READ", "read", "P_MEM_RD"), ("WRITE", "write", "P_MEM_WR", "BOFF"))
    return _number(words[0], 16, "address"), 0, op, _number(words[2], 10, "clock")


@LINE_PARSERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")
def _ramulator2(words: list[str]) -> Record:
    _need(words, "LD|ST ADDRESS")
    base = 16 if words[1][:2].lower() == "0x" else 10
    return _number(words[1], base, "address"), 0, _operation(words[0], ("LD",), ("ST",)), -1


@LINE_PARSERS.register("dinero", summary="Dinero IV extended: r or w, hexadecimal address and size")
def _dinero(words: list[str]) -> Record:
    _need(words, "r|w|i|m ADDRESS SIZE")
    op = _operation(words[0], ("r", "i", "m"), ("w",))  # instruction fetches and others are loads
    size = _number(words[2], 16, "size")
    if not 1 <= size <= 65535:
        raise _Refused(f"size {size} is out of range (1 to 65535 bytes)")
    return _number(words[1], 16, "address"), size, op, -1


@LINE_PARSERS.register("dramsys", summary="DRAMSys trace player (.stl): clock, read or write, address")
def _dramsys(words: list[str]) -> Record:
    size = 0
    if len(words) > 1 and words[1].startswith("("):
        size = _number(words.pop(1).strip("()"), 10, "length")
        if not 1 <= size <= 65535:
            raise _Refused(f"length {size} is out of range (1 to 65535 bytes)")
    if len(words) == 4 and words[1] == "write":
        _data(words.pop())
    _need(words, "CLOCK: read|write ADDRESS")
    op = _operation(words[1], ("read",), ("write",))
    return _number(words[2], 16, "address"), size, op, _number(words[0].removesuffix(":"), 10, "clock")


def _data(word: str) -> None:
    digits = word.removeprefix("0x")
    if len(digits) % 2 or any(c not in "0123456789abcdefABCDEF" for c in digits):
        raise _Refused(f"data {word[:40]!r} is no hexadecimal string of whole bytes")


@LINE_PARSERS.register("libcachesim-csv", summary="libCacheSim text: time, object, size, next; objects are lines")
def _libcachesim_csv(words: list[str]) -> Record | None:
    if words[0] == "time":
        return None  # the header
    if len(words) != 3:
        _need(words, "TIME OBJECT SIZE NEXT")
    size = _number(words[2], 10, "size")
    if not 1 <= size <= 65535:
        raise _Refused(f"size {size} is out of range (1 to 65535 bytes)")
    return _number(words[1], 10, "object") * size, size, 0, -1


def _oracle_general(path: Path, line_bytes: int) -> Iterator[Chunk]:
    """Objects are taken for line numbers; every request is a load of a line."""
    with _open(path) as stream:
        first = 0
        while raw := stream.read(_CHUNK * ORACLE_GENERAL.itemsize):
            if len(raw) % ORACLE_GENERAL.itemsize:
                raise InputError(f"{path}: the last record is cut: {len(raw) % ORACLE_GENERAL.itemsize} of 24 bytes")
            lines = np.frombuffer(raw, ORACLE_GENERAL)["object"]
            far = np.flatnonzero(lines >= np.uint64(2**63 // line_bytes))
            if far.size:
                raise InputError(
                    f"{path}: record {first + far[0]}: object {lines[far[0]]} times {line_bytes} bytes is beyond 2^63: "
                    "its objects are no line numbers"
                )
            n = len(lines)
            size = np.full(n, line_bytes, np.uint16)
            yield Chunk(lines * np.uint64(line_bytes), size, np.zeros(n, np.uint8), np.full(n, _EXTERNAL, np.uint8))
            first += n
