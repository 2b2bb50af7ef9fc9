"""All records of a results folder as one table: Parquet for analysis, CSV for everything else."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from edgewatt.results.record import Record
from edgewatt.results.rows import row_of
from edgewatt.results.store import open_results
from traces.base.errors import InputError, MissingExtraError


def collect(results: str | Path, output: str | Path) -> tuple[int, int]:
    """Write one row a record to `output` (.parquet or .csv) and return (rows, columns).

    Columns: those of `edgewatt.results.rows.row_of`, then every scalar of the configuration as ``config.KEY`` and of
    the results as ``results.KEY``. Raises InputError for another suffix, no records, or a damaged record.
    """
    from traces.base.files import whole_file

    output = Path(output)
    if output.suffix not in (".parquet", ".csv"):
        raise InputError(f"{output}: expected a name ending in .parquet or .csv")
    rows = [flat_row(record) for record in open_results(results)]
    if not rows:
        raise InputError(f"{results}: no finished points to collect")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    data = _parquet(rows, columns) if output.suffix == ".parquet" else _csv(rows, columns)
    with whole_file(output) as stream:
        stream.write(data)
    return len(rows), len(columns)


def frame(records: Iterable[Record]) -> Any:
    """Return records as a pandas frame, or a polars one without pandas: a row each, columns as `collect`.

    Raises InputError without records, MissingExtraError if neither library is there.
    """
    rows = [flat_row(record) for record in records]
    if not rows:
        raise InputError("no finished points to put into a frame")
    columns = list(dict.fromkeys(name for row in rows for name in row))
    data = {name: _one_type([row.get(name) for row in rows]) for name in columns}
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(data)
        except ImportError:
            continue
    raise MissingExtraError("pandas", "frame")


def flat_row(record: Record) -> dict[str, Any]:
    """Return a record as one flat row of scalars."""
    row = row_of(record)
    for part in ("config", "results"):
        for key, value in _leaves(record.canonical[part], part):
            row[key] = value
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


def _csv(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    import csv

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_harmless(key) for key in columns])
    writer.writerows([_harmless(row.get(key, "")) for key in columns] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _harmless(value: Any) -> Any:
    """Keep spreadsheets from running a text as a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _parquet(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    table = pyarrow.table({name: pyarrow.array(_one_type([row.get(name) for row in rows])) for name in columns})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def _one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if any(type(value) is int and not -(2**63) <= value < 2**63 for value in values):
        kinds = {int, str}  # beyond what a column of numbers holds
    if kinds <= {int, float}:
        return [None if v is None else float(v) for v in values] if float in kinds else values
    return values if len(kinds) <= 1 else [None if v is None else str(v) for v in values]
