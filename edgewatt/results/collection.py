"""All records of a results folder as one table: Parquet for analysis, CSV for everything else."""

from __future__ import annotations

import contextlib
import io
import marshal
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import IO, Any

from edgewatt.results.record import Record
from edgewatt.results.record_rows import per_inference, row_of
from edgewatt.results.store import open_records, open_results
from edgewatt.results.verdict import Measured
from traces.base.errors import InputError, MissingExtraError
from traces.base.files import harmless, whole_file


def collect(results: str | Path, output: str | Path) -> tuple[int, int]:
    """Write one row a record to `output` (.parquet or .csv) and return (rows, columns).

    Rows pass through a file beside it, so that memory does not grow with them. Columns: those of
    `edgewatt.results.record_rows.row_of`, then every scalar of the configuration as ``config.KEY`` and of
    the results as ``results.KEY``. Raises InputError for another suffix, no records, or a damaged record.
    """
    output = Path(output)
    if output.suffix not in (".parquet", ".csv"):
        raise InputError(f"{output}: expected a name ending in .parquet or .csv")
    folder = None if output.exists() and not output.is_file() else output.parent  # what is a pipe stands in no folder
    with whole_file(output) as stream, tempfile.TemporaryFile(dir=folder) as spool:
        kinds, count = _spooled(open_results(results), spool)
        if not count:
            raise InputError(f"{results}: no finished points to collect")
        (_parquet if output.suffix == ".parquet" else _csv)(_despooled(spool, list(kinds)), kinds, stream)
    return count, len(kinds)


Kinds = dict[str, set[type]]  # the types of each column's values
_BATCH = 2_000  # rows that Parquet writes at a time


def _spooled(records: Iterable[Record], spool: IO[bytes]) -> tuple[Kinds, int]:
    kinds: Kinds = {}
    numbers: dict[str, int] = {}
    count = 0
    for record in records:
        row = flat_row(record)
        for key, value in row.items():
            numbers.setdefault(key, len(numbers))
            seen = kinds.setdefault(key, set())
            if value is not None:
                seen.add(_type(value))
        marshal.dump(([numbers[key] for key in row], list(row.values())), spool)
        count += 1
    return kinds, count


def _despooled(spool: IO[bytes], columns: list[str]) -> Iterator[dict[str, Any]]:
    spool.seek(0)
    with contextlib.suppress(EOFError):
        while True:
            numbers, values = marshal.load(spool)
            yield {columns[k]: value for k, value in zip(numbers, values, strict=True)}


class _Beyond:
    """Whole numbers that 64 bits do not hold."""


def _type(value: Any) -> type:
    return _Beyond if type(value) is int and not -(2**63) <= value < 2**63 else type(value)


def frame(records: Iterable[Record] | str | Path) -> Any:
    """Return records, or those of a results folder, as a pandas frame (polars without pandas).

    A row each; columns as `collect`, and how energy changes against row by row on the same hardware (`verdict.Gain`):
    gain_energy, _low, _high and _sure.

    Raises InputError without records, MissingExtraError if neither library is there.
    """
    measured, rows = Measured(), []
    for number, record in enumerate(open_records(records) if isinstance(records, (str, Path)) else records):
        row = flat_row(record)
        measured.take(record, per_inference(row), number)
        rows.append(row)
    for row, gain in zip(rows, measured.gains(len(rows)), strict=True):
        if gain is not None:
            row |= {f"gain_{name}": getattr(gain, name) for name in ("energy", "low", "high", "sure")}
    if not rows:
        raise InputError("no finished points to put into a frame")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    data = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        kind = _kind_of({_type(value) for value in values if value is not None})
        data[name] = [_as(kind, value) for value in values]
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(data)
        except ImportError:
            continue
    raise MissingExtraError("pandas", "frame")


def flat_row(record: Record) -> dict[str, Any]:
    row = row_of(record)
    for part in ("config", "results"):
        row.update(_leaves(record.canonical[part], part))
    row["duration_s"] = record.provenance.get("duration_s")
    row["counts_version"] = record.counts_version
    return row


def _leaves(value: Any, key: str) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [leaf for name, item in value.items() for leaf in _leaves(item, f"{key}.{name}")]
    if isinstance(value, list):
        if len(value) > 8 or any(isinstance(item, list) for item in value):
            return []  # curves and wires: read them from the records
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, f"{key}.{index}")]
    return [(key, value)]


def _csv(rows: Iterator[dict[str, Any]], kinds: Kinds, stream: IO[bytes]) -> None:
    import csv

    text = io.TextIOWrapper(stream, "utf-8", "backslashreplace", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([harmless(key) for key in kinds])
    writer.writerows([harmless(row.get(key, "")) for key in kinds] for row in rows)
    text.detach()


def _parquet(rows: Iterator[dict[str, Any]], kinds: Kinds, stream: IO[bytes]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    plain = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string(), bool: pyarrow.bool_()}
    of = {key: _kind_of(seen) for key, seen in kinds.items()}
    schema = pyarrow.schema([(key, plain[kind] if kind else pyarrow.null()) for key, kind in of.items()])
    with pyarrow.parquet.ParquetWriter(stream, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            columns = ([_as(kind, row.get(key)) for row in batch] for key, kind in of.items())
            arrays = [pyarrow.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))


def _kind_of(seen: set[type]) -> type | None:
    """Return the one type of a column whose values have these: numbers as floats if any is, everything else as text."""
    if seen <= {int, float}:
        return float if float in seen else int if seen else None
    return next(iter(seen)) if len(seen) == 1 and _Beyond not in seen else str


def _as(kind: type | None, value: Any) -> Any:
    return value if value is None or kind is None or type(value) is kind else kind(value)
