"""Many rows in little memory: a column takes nothing while it holds one value, then nine bytes a number.

A hundred thousand rows of forty numbers are dictionaries of half a gigabyte, and columns of thirty megabytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from edgewatt.results.record import canonical_json


class _Absent:
    """What a row has in a column that it lacks."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()
_NONE, _FLOAT, _INT, _LEVEL = range(4)  # how a row's value is kept: not at all, as a number, or as one of the levels
_EXACT = 1 << 53  # whole numbers up to it are doubles


class Column:
    """One value a row, ABSENT where a row has none; types are kept (1, 1.0 and True are three values)."""

    __slots__ = ("_codes", "_known", "_levels", "_numbers", "_same", "_size")

    def __init__(self) -> None:
        self._size, self._same = 0, ABSENT
        self._codes: bytearray | None = None  # None: every row has the same value
        self._numbers = array("d")
        self._levels: list[Any] = []
        self._known: dict[Any, int] = {}

    def __len__(self) -> int:
        return self._size

    def put(self, row: int, value: Any) -> None:
        """Append a value for a row; rows between the last one and it have none."""
        if row > self._size:
            self._extend(ABSENT, row - self._size)
        if self._codes is None:
            if not self._size:
                self._same = value
            elif not _is_same(self._same, value):
                self._unfold()
        if self._codes is not None:
            self._keep(value)
        self._size += 1

    def repeat(self, times: int) -> None:
        """Append the last value so many times again."""
        if self._codes is not None:
            self._codes += self._codes[-1:] * times
            self._numbers += self._numbers[-1:] * times
        self._size += times

    def _extend(self, value: Any, times: int) -> None:
        for _ in range(times):
            self.put(self._size, value)

    def _unfold(self) -> None:
        same, self._codes = self._same, bytearray()
        self._keep(same)
        self._codes *= self._size
        self._numbers = array("d", [self._numbers[0]]) * self._size

    def _keep(self, value: Any) -> None:
        kind, number = type(value), 0.0
        if kind is float:
            code, number = _FLOAT, value
        elif kind is int and -_EXACT <= value <= _EXACT:
            code, number = _INT, value
        elif value is ABSENT:
            code = _NONE
        else:
            name = (kind, canonical_json(value) if kind in (list, dict) else value)
            place = self._known.get(name)
            if place is None:
                place = self._known[name] = len(self._levels)
                self._levels.append(value)
            code, number = _LEVEL, place
        assert self._codes is not None
        self._codes.append(code)
        self._numbers.append(number)

    def __getitem__(self, row: int) -> Any:
        if row >= self._size:
            return ABSENT
        if self._codes is None:
            return self._same
        return self._value(self._codes[row], self._numbers[row])

    def _value(self, code: int, number: float) -> Any:
        if code == _FLOAT:
            return number
        return int(number) if code == _INT else self._levels[int(number)] if code == _LEVEL else ABSENT

    def __iter__(self) -> Iterator[Any]:
        if self._codes is None:
            for _ in range(self._size):
                yield self._same
            return
        levels = self._levels
        for code, number in zip(self._codes, self._numbers, strict=True):
            yield (
                number
                if code == _FLOAT
                else int(number) if code == _INT else levels[int(number)] if code == _LEVEL else ABSENT
            )  # fmt: skip

    def distinct(self) -> list[Any]:
        """Return the distinct values, ABSENT among them, in the order of first appearance; numbers by value alone."""
        if self._codes is None:
            return [self._same] if self._size else []
        values = {}
        for code, number in dict.fromkeys(zip(self._codes, self._numbers, strict=True)):
            values[code if code == _NONE else (code == _LEVEL, number)] = self._value(code, number)
        return list(values.values())

    def only(self, rows: Sequence[int]) -> Column:
        """Return the column of some rows."""
        if self._codes is None and self._size > max(rows, default=-1):
            chosen = Column()
            chosen._same, chosen._size = self._same, len(rows)
            return chosen
        chosen = Column()
        for place, row in enumerate(rows):
            chosen.put(place, self[row])
        return chosen


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    return canonical_json(a) == canonical_json(b) if isinstance(a, list | dict) else bool(a == b)


class ColumnTable(Sequence[dict[str, Any]]):
    """Rows kept by column. A row that is asked for is a dictionary of its own: to change it changes nothing here."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self.columns: dict[str, Column] = {}
        self._size = 0
        for row in rows:
            self.append(row)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        columns, size = self.columns, self._size
        for key, value in row.items():
            column = columns.get(key)
            if column is None:
                column = columns[key] = Column()
            column.put(size, value)
        self._size += 1

    def put(self, key: str, values: Iterable[Any]) -> None:
        """Give all rows their value of a column; ABSENT gives a row none."""
        column = Column()
        for row, value in enumerate(values):  # which may be made of the column that stands there
            column.put(row, value)
        self.columns[key] = column

    def values(self, key: str) -> Iterator[Any]:
        """Yield a column's values by row, None where a row has none."""
        column = self.columns.get(key)
        rest = self._size
        if column is not None:
            rest -= len(column)
            for value in column:
                yield None if value is ABSENT else value
        for _ in range(rest):
            yield None

    def distinct(self, key: str) -> list[Any]:
        """Return the distinct values of a column, ABSENT among them where a row has none."""
        column = self.columns.get(key)
        values = [] if column is None else column.distinct()
        lacks = self._size > (0 if column is None else len(column))
        return [*values, ABSENT] if lacks and ABSENT not in values else values

    def only(self, rows: Sequence[int]) -> ColumnTable:
        """Return some rows as a table of their own."""
        chosen = ColumnTable()
        chosen.columns = {key: column.only(rows) for key, column in self.columns.items()}
        chosen._size = len(rows)
        return chosen

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, row: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, row: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            return [self[k] for k in range(*row.indices(self._size))]
        at = row + self._size if row < 0 else row
        if not 0 <= at < self._size:
            raise IndexError(f"row {row} of {self._size}")
        cells = ((key, column[at]) for key, column in self.columns.items())
        return {key: value for key, value in cells if value is not ABSENT}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        keys, columns = list(self.columns), [_whole(column, self._size) for column in self.columns.values()]
        if not columns:
            yield from ({} for _ in range(self._size))
            return
        for values in zip(*columns, strict=True):
            yield {key: value for key, value in zip(keys, values, strict=True) if value is not ABSENT}


def _whole(column: Column, size: int) -> Iterator[Any]:
    yield from column
    for _ in range(size - len(column)):
        yield ABSENT


def distinct_of(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    """Return the distinct values that rows have under a key, in the order of first appearance; ABSENT among them."""
    if isinstance(rows, ColumnTable):
        return rows.distinct(key)
    return list(dict.fromkeys(row.get(key, ABSENT) for row in rows))


def present(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    """Return `distinct_of` without ABSENT."""
    return [value for value in distinct_of(rows, key) if value is not ABSENT]
