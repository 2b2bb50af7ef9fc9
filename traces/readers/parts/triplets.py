"""Lines of `row column [value]`: read in bulk, and once more line by line only to say what is wrong where."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from traces.base.checks import plain_digits
from traces.base.errors import InputError
from traces.base.memory import claim

_AT_A_TIME = 1 << 18  # characters: a line of them takes thirty times as much while it is read
_ENTRY_BYTES = 72  # an entry as read, joined and taken apart
_LONGEST_LINE = 1 << 16
_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class Triplets:
    """rows, columns: int64[n], 0-based. values: float64[n] or None. `line` finds an entry's line again."""

    path: Path
    skip: int
    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64] | None

    def line(self, k: int) -> str:
        """Return FILE:LINE of the k-th entry (reads the file once more: for messages only)."""
        number, _ = next(islice(lines_after(self.path, self.skip), k, None))
        return f"{self.path}:{number}"


def _lists_of_lines(stream: IO[str], path: Path) -> Iterator[list[str]]:
    rest, first = "", 1
    while block := stream.read(_AT_A_TIME):
        lines = (rest + block).split("\n")
        rest = lines.pop()
        if len(rest) > _LONGEST_LINE:
            raise InputError(
                f"{path}:{first + len(lines)}: a line of more than {_LONGEST_LINE:,} characters: no text file"
            )
        first += len(lines)
        yield lines
    if rest:
        yield [rest]


def lines_after(path: Path, skip: int) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines behind the first `skip` that are not blank."""
    with open(path, encoding="ascii", errors="replace") as stream:
        for number, text in enumerate(chain.from_iterable(_lists_of_lines(stream, path)), 1):
            if number > skip and text.strip():
                yield number, text


def read_triplets(path: str | Path, *, skip: int, has_values: bool, shape: tuple[int, int] | None) -> Triplets:
    """Read the lines after the first `skip`; ids in the file are 1-based. Blank lines are passed over.

    shape: (rows, columns) that ids must stay within, or None where only positive ids are asked for.
    """
    path = Path(path)
    fields = [("row", np.int64), ("column", np.int64), *([("value", np.float64)] if has_values else [])]
    parts = [np.empty(0, fields)]
    limits, n_entries = shape or (_INT64_MAX, _INT64_MAX), 0
    try:
        with open(path, encoding="ascii") as stream, warnings.catch_warnings():
            left = skip
            for some in _lists_of_lines(stream, path):
                lines, left = some[left:], max(left - len(some), 0)
                if not lines:
                    continue
                warnings.simplefilter("error")  # numpy warns where it would read 1.5 as an id
                warnings.filterwarnings("ignore", "loadtxt: input contained no data")
                part = np.atleast_1d(np.loadtxt(lines, dtype=fields, comments=None))
                for name, limit in zip(("row", "column"), limits, strict=True):
                    if part.size and (part[name].min() < 1 or part[name].max() > limit):
                        raise ValueError(f"{name} out of range")
                if has_values and not np.isfinite(part["value"]).all():
                    raise ValueError("a value is not finite")
                parts.append(part)
                n_entries += len(part)
                claim(_ENTRY_BYTES * n_entries, str(path), f"its first {n_entries} entries")
    except (ValueError, OverflowError, Warning, IndexError) as error:
        raise _first_fault(path, skip, has_values, limits, error) from None
    table = np.concatenate(parts)
    values = table["value"].copy() if has_values else None
    return Triplets(path, skip, table["row"] - 1, table["column"] - 1, values)


def _first_fault(path: Path, skip: int, has_values: bool, limits: tuple[int, int], error: Exception) -> InputError:
    expected = "row, column and value" if has_values else "row and column"
    for number, text in lines_after(path, skip):
        if fault := _fault(text.split(), has_values, expected, limits):
            return InputError(f"{path}:{number}: {fault}")
    return InputError(f"{path}: cannot be read as lines of {expected} ({error})")


def _fault(words: list[str], has_values: bool, expected: str, limits: tuple[int, int]) -> str | None:
    if len(words) != 2 + has_values:
        return f"{len(words)} fields, expected {expected}"
    for name, word, limit in zip(("row", "column"), words, limits, strict=False):
        try:
            number = int(plain_digits(word))
        except ValueError:
            return f"{name} {word[:40]!r} is not a whole number"
        if not 1 <= number <= limit:
            return f"{name} {number} is out of range: ids run from 1 to {limit}"
    try:
        if has_values and not math.isfinite(float(plain_digits(words[2]))):
            return f"value {words[2][:40]} is not finite"
    except ValueError:
        return f"value {words[2][:40]!r} is not a number"
    return None
