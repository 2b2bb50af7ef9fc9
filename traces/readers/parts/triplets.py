"""Lines of `row column [value]`: read in bulk, and once more line by line only to say what is wrong where."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

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
        with open(self.path, encoding="ascii", errors="replace") as stream:
            for number, text in numbered_lines(stream, self.path):
                if number > self.skip and text.strip():
                    if k == 0:
                        return f"{self.path}:{number}"
                    k -= 1
        return f"{self.path}"


def lists_of_lines(stream: IO[str], path: Path, first: int = 1) -> Iterator[list[str]]:
    """Yield the lines of a text, many at once. first: the number of the first, for messages."""
    rest = ""
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


def numbered_lines(stream: IO[str], path: Path, first: int = 1) -> Iterator[tuple[int, str]]:
    return enumerate(chain.from_iterable(lists_of_lines(stream, path, first)), first)


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
            for some in lists_of_lines(stream, path):
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
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    table = np.concatenate(parts)
    values = table["value"].copy() if has_values else None
    return Triplets(path, skip, table["row"] - 1, table["column"] - 1, values)


def _first_fault(path: Path, skip: int, has_values: bool, limits: tuple[int, int], error: Exception) -> InputError:
    expected = "row, column and value" if has_values else "row and column"
    with open(path, encoding="ascii", errors="replace") as stream:
        for number, text in numbered_lines(stream, path):
            if number <= skip or not text.strip():
                continue
            fault = _fault(text.split(), has_values, expected, limits)
            if fault:
                return InputError(f"{path}:{number}: {fault}")
    return InputError(f"{path}: cannot be read as lines of {expected} ({error})")


def _fault(words: list[str], has_values: bool, expected: str, limits: tuple[int, int]) -> str | None:
    if len(words) != 2 + has_values:
        return f"{len(words)} fields, expected {expected}"
    for name, word, limit in zip(("row", "column"), words, limits, strict=False):
        try:
            number = int(word)
        except ValueError:
            return f"{name} {word[:40]!r} is not a whole number"
        if not 1 <= number <= limit:
            return f"{name} {number} is out of range: ids run from 1 to {limit}"
    if has_values:
        try:
            value = float(words[2])
        except ValueError:
            return f"value {words[2][:40]!r} is not a number"
        if not math.isfinite(value):
            return f"value {words[2][:40]} is not finite"
    return None
