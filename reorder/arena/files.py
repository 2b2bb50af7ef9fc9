"""Buffers in CSV files: a header with id, lower, upper and size, then a line for each buffer (as MiniMalloc's).

Two more columns may be there for placement in several banks: `traffic`, the bytes read and written in a buffer over its
life, and `bank`, the name of the one it must be in (empty: any).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from reorder.arena.base import Buffers, Int64Array
from traces.base.errors import InputError, did_you_mean
from traces.base.files import whole_file

COLUMNS = ("id", "lower", "upper", "size")
MAX_FILE_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class NamedBuffers:
    """names: one per buffer, as the file has them. traffic: int64[n] bytes, None without that column.

    pinned: buffer -> name of its bank, where the file names one.
    """

    names: tuple[str, ...]
    buffers: Buffers
    traffic: Int64Array | None = None
    pinned: Mapping[int, str] = field(default_factory=dict)


def read_buffers(path: str | Path, alignment: int = 1) -> NamedBuffers:
    """Read a file. Columns that are not known are passed over. Raises InputError naming file and line."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: {'is a folder, not a file' if path.is_dir() else 'no such file'}")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"{path}: more than 1 GiB is not a list of buffers")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file ({error.reason} at byte {error.start})") from error
    rows = csv.reader(io.StringIO(text))
    names: list[str] = []
    seen: dict[str, int] = {}
    numbers: list[tuple[int, int, int]] = []
    try:
        header = [word.strip() for word in next(rows, [])]
        for name in COLUMNS:
            if name not in header:
                raise InputError(f"{path}: line 1: no column {name!r}{did_you_mean(name, header)}")
        place = [header.index(name) for name in COLUMNS]
        more = {name: header.index(name) for name in ("traffic", "bank") if name in header}
        traffic: list[int] = []
        pinned: dict[int, str] = {}
        for row in rows:
            if not any(word.strip() for word in row):
                continue
            where = f"{path}: line {rows.line_num}"
            if len(row) <= max(*place, *more.values()):
                raise InputError(f"{where}: {len(row)} fields, {len(header)} are wanted")
            words = [row[k].strip() for k in place]
            if words[0] in seen:
                raise InputError(f"{where}: buffer {words[0]!r} is already in line {seen[words[0]]}")
            seen[words[0]] = rows.line_num
            names.append(words[0])
            lower, upper, size = (_number(where, name, word) for name, word in zip(COLUMNS[1:], words[1:], strict=True))
            if upper <= lower:
                raise InputError(f"{where}: live from {lower} to {upper}: upper must be above lower")
            if size < 0:
                raise InputError(f"{where}: a size of {size} bytes: sizes are at least 0")
            if "traffic" in more:
                traffic.append(_number(where, "traffic", row[more["traffic"]].strip()))
                if traffic[-1] < 0:
                    raise InputError(f"{where}: a traffic of {traffic[-1]} bytes: at least 0")
            if "bank" in more and (bank := row[more["bank"]].strip()):
                pinned[len(numbers)] = bank
            numbers.append((lower, upper, size))
    except csv.Error as error:
        raise InputError(f"{path}: line {rows.line_num}: {error}") from error
    table = np.array(numbers, np.int64).reshape(-1, 3)
    try:
        return NamedBuffers(
            tuple(names),
            Buffers.of(table[:, 0], table[:, 1], table[:, 2], alignment),
            np.array(traffic, np.int64) if "traffic" in more else None,
            pinned,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _number(where: str, name: str, word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        raise InputError(f"{where}: {name} is {word!r}: a whole number is wanted") from None
    if not -(2**62) <= value <= 2**62:
        raise InputError(f"{where}: {name} is {value}: beyond 2^62")
    return value


def write_placement(
    given: NamedBuffers, offset: Int64Array, path: str | Path, banks: Sequence[str] | None = None
) -> None:
    """Write the buffers with a column `offset`, and `bank` where there are several."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    b = given.buffers
    columns = [given.names, b.lower.tolist(), b.upper.tolist(), b.size.tolist(), offset.tolist()]
    rows.writerow((*COLUMNS, "offset", *(("bank",) if banks is not None else ())))
    rows.writerows(zip(*columns, *((banks,) if banks is not None else ()), strict=True))
    with whole_file(path) as stream:
        stream.write(text.getvalue().encode())
