"""Readers of other simulators' address traces: a file becomes a `Trace` of stream "external", chunk by chunk.

The formats are those of `traces.trace_writers.export`. An error names the file and the line (or record).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from traces.access.trace import STREAMS, Chunk, Memory, Trace, load_trace
from traces.base.errors import InputError, unknown_name
from traces.base.registry import Registry
from traces.trace_writers.export import ORACLE_GENERAL

Record = tuple[int, int, int, int]  # address, size (0: not said), op, clock of arrival (-1: not said)


@dataclass(frozen=True)
class TextFormat:
    """One line is one access. parse: the words of a line to a Record (None: a header), or ValueError saying why not.

    fields: what the words of a plain line are, for reading many at once: 'address' and 'size' (hexadecimal), 'op',
    'clock', 'clock:' (with a colon); lines that are not plain go through `parse`. operations: words of 'op', 1 for a
    store. prefixed: addresses start with 0x.
    """

    parse: Callable[[list[str]], Record | None]
    fields: tuple[str, ...] = ()
    operations: Mapping[bytes, int] = field(default_factory=dict)
    prefixed: bool = False


LINE_PARSERS: Registry[TextFormat] = Registry("trace format", "edgewatt.trace_readers")

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
        form = LINE_PARSERS[format].item
        read = lambda: _text(path, form, access_bytes)  # noqa: E731
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
        for raw in _raw_lines(stream):
            words = _words(raw)
            if words is None:
                break
            if not words:
                continue
            for name, entry in LINE_PARSERS.items():
                try:
                    entry.item.parse(list(words))
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


def _raw_lines(stream: IO[bytes]) -> Iterator[bytes]:
    while raw := stream.readline(_LONGEST_LINE):
        yield raw
        if len(raw) == _LONGEST_LINE:
            return  # no text: _words refuses it


def _words(raw: bytes) -> list[str] | None:
    """Return the words of a line, none for an empty line or comment; None where it is no text."""
    if len(raw) == _LONGEST_LINE or b"\0" in raw:
        return None
    text = raw.decode("ascii", "replace").strip()
    return [] if text.startswith("#") else text.replace(",", " ").split()


def _text(path: Path, form: TextFormat, access_bytes: int) -> Iterator[Chunk]:
    number, last_cycle = 1, 0
    with _open(path) as stream:
        lines = _raw_lines(stream)
        while raws := list(islice(lines, _CHUNK)):
            chunk = _plain(raws, form, access_bytes, last_cycle)
            if chunk is None:
                chunk = _careful(raws, form, access_bytes, last_cycle, path, number)
            if len(chunk):
                if chunk.cycle is not None:
                    last_cycle = int(chunk.cycle[-1])
                yield chunk
            number += len(raws)


def _plain(raws: list[bytes], form: TextFormat, access_bytes: int, last_cycle: int) -> Chunk | None:
    """Read many lines at once, if each is a plain one; None leaves it to `_careful`, which finds what is wrong."""
    whole = b"".join(raws)
    if any(mark in whole for mark in (b"#", b",", b"_", b"+", b"-", b"\0")):  # int() would take some of these
        return None
    if form.prefixed and whole.count(b" 0x") != len(raws):
        return None
    rows = [raw.split() for raw in raws]
    if set(map(len, rows)) != {len(form.fields)}:
        return None
    columns = dict(zip(form.fields, zip(*rows, strict=True), strict=True))
    n = len(rows)
    try:
        address = np.array([int(word, 16) for word in columns["address"]], np.uint64)
        op = np.array([form.operations[word] for word in columns["op"]], np.uint8)
        size = np.full(n, access_bytes, np.int64)
        if "size" in columns:
            size = np.array([int(word, 16) for word in columns["size"]], np.int64)
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
    return _made(address, size, op, cycle)


def _careful(raws: list[bytes], form: TextFormat, access_bytes: int, last_cycle: int, path: Path, first: int) -> Chunk:
    """Read line by line. Raises InputError naming file and line."""
    records: list[Record] = []
    for number, raw in enumerate(raws, first):
        words = _words(raw)
        try:
            if words is None:
                raise _Refused("this is no text (a line of 65536 bytes or with a zero byte)")
            record = form.parse(list(words)) if words else None
            if record is None:
                continue  # empty, a comment or a header
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
    table = np.array(records, np.int64).reshape(-1, 4)
    sizes = np.where(table[:, 1] == 0, access_bytes, table[:, 1])
    cycles = table[:, 3] if len(table) and table[0, 3] >= 0 else None
    return _made(table[:, 0].astype(np.uint64), sizes, table[:, 2].astype(np.uint8), cycles)


def _made(address: np.ndarray, size: np.ndarray, op: np.ndarray, cycle: np.ndarray | None) -> Chunk:
    n = len(address)
    return Chunk(address, size.astype(np.uint16), op, np.full(n, _EXTERNAL, np.uint8), cycle=cycle)


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


def _dramsim3(words: list[str]) -> Record:
    _need(words, "ADDRESS READ|WRITE CLOCK")
    op = _operation(words[1], ("READ", "read", "P_MEM_RD"), ("WRITE", "write", "P_MEM_WR", "BOFF"))
    return _number(words[0], 16, "address"), 0, op, _number(words[2], 10, "clock")


def _ramulator2(words: list[str]) -> Record:
    _need(words, "LD|ST ADDRESS")
    base = 16 if words[1][:2].lower() == "0x" else 10
    return _number(words[1], base, "address"), 0, _operation(words[0], ("LD",), ("ST",)), -1


def _dinero(words: list[str]) -> Record:
    _need(words, "r|w|i|m ADDRESS SIZE")
    op = _operation(words[0], ("r", "i", "m"), ("w",))  # instruction fetches and others are loads
    size = _number(words[2], 16, "size")
    if not 1 <= size <= 65535:
        raise _Refused(f"size {size} is out of range (1 to 65535 bytes)")
    return _number(words[1], 16, "address"), size, op, -1


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


LINE_PARSERS.register("dramsim3", summary="DRAMsim3: address, READ or WRITE, clock")(
    TextFormat(_dramsim3, ("address", "op", "clock"), {b"READ": 0, b"WRITE": 1})
)
LINE_PARSERS.register("ramulator2", summary="Ramulator 2 LoadStoreTrace: LD or ST, address")(
    TextFormat(_ramulator2, ("op", "address"), {b"LD": 0, b"ST": 1}, prefixed=True)
)
LINE_PARSERS.register("dinero", summary="Dinero IV extended: r or w, hexadecimal address and size")(
    TextFormat(_dinero, ("op", "address", "size"), {b"r": 0, b"w": 1})
)
LINE_PARSERS.register("dramsys", summary="DRAMSys trace player (.stl): clock, read or write, address")(
    TextFormat(_dramsys, ("clock:", "op", "address"), {b"read": 0, b"write": 1})
)
LINE_PARSERS.register("libcachesim-csv", summary="libCacheSim text: time, object, size, next; objects are lines")(
    TextFormat(_libcachesim_csv)
)
