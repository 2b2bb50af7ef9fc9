"""Buffers in files: CSV with a header id, lower, upper and size, then a line for each buffer (as MiniMalloc's), or JSON
with a list `buffers` of mappings with these keys, as `edgewatt schedule --json` writes it.

Two more columns may be there for placement in several banks: `traffic`, the bytes read and written in a buffer over its
life, and `bank`, the name of the one it must be in (empty: any).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reorder.operators.arena.base import Buffers, Int64Array
from traces.base.checks import plain_digits
from traces.base.errors import InputError, did_you_mean
from traces.base.files import harmless, whole_file, why_no_file
from traces.base.memory import read_within

COLUMNS = ("id", "lower", "upper", "size")


@dataclass(frozen=True, eq=False)
class NamedBuffers:
    """names: one per buffer, as the file has them. traffic: int64[n] bytes, None without that column.

    pinned: buffer -> name of its bank, where the file names one.
    """

    names: tuple[str, ...]
    buffers: Buffers
    traffic: Int64Array | None = None
    pinned: Mapping[int, str] = field(default_factory=dict)


def read_buffers(path: str | Path, alignment: int | None = None) -> NamedBuffers:
    """Read a file. Columns that are not known are passed over.

    alignment: of the offsets; None for the file's own (a plan of `edgewatt schedule --json` states one), or 1.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: {why_no_file(path)}")
    try:
        text = read_within(path, 50).decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file ({error.reason} at byte {error.start})") from error
    try:
        own, rows = _plan(text) if path.suffix.lower() == ".json" else (1, _lines(text))
        return _named(rows, own if alignment is None else alignment)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


Rows = Iterable[tuple[str, Mapping[str, Any]]]
"""Position of a buffer in its file, for messages, and its fields: texts, or JSON values."""


def _named(rows: Rows, alignment: int) -> NamedBuffers:
    seen: dict[str, str] = {}
    numbers: list[tuple[int, int, int]] = []
    traffic: list[int] = []
    pinned: dict[int, str] = {}
    for where, row in rows:
        name = str(row["id"])
        if name in seen:
            raise InputError(f"{where}: buffer {name!r} is already in {seen[name]}")
        seen[name] = where
        lower, upper, size = (_number(where, key, row[key]) for key in COLUMNS[1:])
        if upper <= lower:
            raise InputError(f"{where}: live from {lower} to {upper}: upper must be above lower")
        if size < 0:
            raise InputError(f"{where}: a size of {size} bytes: sizes are at least 0")
        if "traffic" in row:
            traffic.append(_number(where, "traffic", row["traffic"]))
            if traffic[-1] < 0:
                raise InputError(f"{where}: a traffic of {traffic[-1]} bytes: at least 0")
        if bank := str(row.get("bank") or ""):
            pinned[len(numbers)] = bank
        numbers.append((lower, upper, size))
    if traffic and len(traffic) != len(numbers):
        raise InputError("'traffic' is given for some buffers and not for others")
    table = np.array(numbers, np.int64).reshape(-1, 3)
    return NamedBuffers(
        tuple(seen),
        Buffers.of(table[:, 0], table[:, 1], table[:, 2], alignment),
        np.array(traffic, np.int64) if traffic else None,
        pinned,
    )


def _lines(text: str) -> Rows:
    rows = csv.reader(io.StringIO(text))
    try:
        header = [word.strip() for word in next(rows, [])]
        for name in COLUMNS:
            if name not in header:
                raise InputError(f"line 1: no column {name!r}{did_you_mean(name, header)}")
        column = {name: header.index(name) for name in (*COLUMNS, "traffic", "bank") if name in header}
        for row in rows:
            if not any(word.strip() for word in row):
                continue
            where = f"line {rows.line_num}"
            if len(row) <= max(column.values()):
                raise InputError(f"{where}: {len(row)} fields, {len(header)} are wanted")
            yield where, {name: row[k].strip() for name, k in column.items()}
    except csv.Error as error:
        raise InputError(f"line {rows.line_num}: {error}") from error


def _plan(text: str) -> tuple[int, Rows]:
    """Return the alignment and the buffers of a JSON mapping, such as `edgewatt schedule --json` writes."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error})") from error
    listed = held.get("buffers") if isinstance(held, dict) else None
    if not isinstance(listed, list):
        raise InputError(
            "'buffers' is a list of mappings with id, lower, upper and size, as `edgewatt schedule MODEL --json` "
            f"writes it; {'there is none' if listed is None else 'here it is not'}"
        )
    alignment = held.get("alignment", 1)
    if type(alignment) is not int:
        raise InputError(f"'alignment' is {str(alignment)[:40]!r}: a number of bytes is wanted")
    return alignment, _entries(listed)


def _entries(listed: Sequence[Any]) -> Rows:
    for number, entry in enumerate(listed, 1):
        where = f"entry {number} of 'buffers'"
        if not isinstance(entry, dict):
            raise InputError(f"{where}: a mapping with id, lower, upper and size is wanted")
        for name in COLUMNS:
            if name not in entry:
                raise InputError(f"{where}: no {name!r}{did_you_mean(name, entry)}")
        yield where, entry


def _number(where: str, name: str, word: Any) -> int:
    try:
        value = int(plain_digits(word)) if isinstance(word, str) else word if type(word) is int else None
    except ValueError:
        value = None
    if value is None:
        raise InputError(f"{where}: {name} is {repr(word)[:60]}: a whole number is wanted")
    if not -(2**62) <= value <= 2**62:
        raise InputError(f"{where}: {name} is {value}: beyond 2^62")
    return value


def write_placement(
    given: NamedBuffers, offset: Int64Array, path: str | Path, banks: Sequence[str] | None = None
) -> None:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    b = given.buffers
    columns = [map(harmless, given.names), b.lower.tolist(), b.upper.tolist(), b.size.tolist(), offset.tolist()]
    rows.writerow((*COLUMNS, "offset", *(("bank",) if banks is not None else ())))
    rows.writerows(zip(*columns, *((map(harmless, banks),) if banks is not None else ()), strict=True))
    with whole_file(path) as stream:
        stream.write(text.getvalue().encode("utf-8", "backslashreplace"))
