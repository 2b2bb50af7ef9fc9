"""How records are shown on a terminal: one wide table where there is room, two narrow ones in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgewatt.record import Record
from edgewatt.rows import compact, percent, row_of

Row = dict[str, Any]

_WIDE = 132


def show_records(records: Sequence[Record], *, title: str) -> None:
    """Print one row a record; changes are against the first one. Energies and times carry their units in the head."""
    from rich.console import Console

    rows = [row_of(record) for record in records]
    console = Console()
    console.print(f"[bold]{_escape(title)}[/bold]", highlight=False)
    for line in _notes(records[0], rows):
        console.print(_escape(line), highlight=False, soft_wrap=True)
    names, io, cost = _name_columns(rows), _io_columns(rows), _cost_columns(rows)
    if console.width >= _WIDE or not io:
        _print(console, {**names, **io, **cost})
        return
    io_rows, seen = [], set()
    for number, row in enumerate(rows):
        key = tuple(row[k] for k in ("ordering", "stride", "runs", "reads", "writes"))
        if key not in seen:
            seen.add(key)
            io_rows.append(number)
    formats = {
        "format": [
            _formats([r["format"] for r in rows if _same_work(r, rows[n])], {r["format"] for r in rows})
            for n in io_rows
        ]
    }
    keep = lambda columns: {name: [cells[n] for n in io_rows] for name, cells in columns.items()}  # noqa: E731
    _print(console, {**keep({k: v for k, v in names.items() if k != "format"}), **formats, **keep(io)})
    _print(console, {**names, **cost})


def _same_work(a: Row, b: Row) -> bool:
    return all(a[key] == b[key] for key in ("ordering", "stride", "runs", "reads", "writes"))


def _formats(here: list[str], every: set[str]) -> str:
    return "all" if set(here) == every and len(every) > 1 else ",".join(dict.fromkeys(here))


def _notes(record: Record, rows: list[Row]) -> list[str]:
    config, first, notes = record.config, rows[0], []
    if "io" in first:
        sizes = record.results["network"]
        notes.append(
            f"network {first['network']}: {sizes['neurons']} neurons, {sizes['connections']} connections; "
            f"M = {first['memory']} ({first['policy']}): {first['io_lower']} <= least I/Os <= {first['io_upper']}"
        )
    levels = " + ".join(f"{c['size_bytes'] / 1024:g} KiB {c['ways']}-way {c['policy']}" for c in config["caches"])
    notes.append(f"cache {levels}; {config['encoder']} bus; {first['part']}; {first['timing']} timing")
    zeroed = {row["format"]: row["zeroed_weights"] for row in rows if row.get("zeroed_weights")}
    notes += [f"warning: {n} non-zero weights become zero in {name}" for name, n in zeroed.items()]
    return notes


def _name_columns(rows: list[Row]) -> dict[str, list[str]]:
    if "ordering" not in rows[0]:
        return {"trace": [row["trace"] for row in rows]}
    columns = {name: [str(row[name]) for row in rows] for name in ("ordering", "stride", "format")}
    for name in ("memory", "encoder", "part"):
        if len({row[name] for row in rows}) > 1:
            columns[name] = [str(row[name]) for row in rows]
    return columns


def _io_columns(rows: list[Row]) -> dict[str, list[str]]:
    if "io" not in rows[0]:
        return {}
    base = rows[0]["io"]
    return {
        "runs": [compact(row["runs"]) for row in rows],
        "reads": [compact(row["reads"]) for row in rows],
        "writes": [compact(row["writes"]) for row in rows],
        "I/Os": [compact(row["io"]) for row in rows],
        "gap %": ["-" if row["gap"] is None else f"{100 * row['gap']:.1f}" for row in rows],
        "I/Os +-%": [percent(row["io"], base) for row in rows],
    }


def _cost_columns(rows: list[Row]) -> dict[str, list[str]]:
    first = rows[0]
    return {
        "hit %": ["-" if row["hit_rate"] is None else f"{100 * row['hit_rate']:.1f}" for row in rows],
        "ones": [compact(row["ones"]) for row in rows],
        "toggles": [compact(row["toggles"]) for row in rows],
        "IO nJ": [compact(row["io_energy_pj"] / 1e3) for row in rows],
        "DRAM nJ": [compact(row["dram_energy_pj"] / 1e3) for row in rows],
        "us": [compact(row["time_ns"] / 1e3) for row in rows],
        "energy +-%": [percent(row["energy_pj"], first["energy_pj"]) for row in rows],
        "time +-%": [percent(row["time_ns"], first["time_ns"]) for row in rows],
    }


def _print(console: Any, columns: dict[str, list[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        words = name in ("ordering", "stride", "format", "trace", "encoder", "part")
        table.add_column(
            name.replace("+-", "±"), justify="left" if words else "right", no_wrap=not words, overflow="fold"
        )
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    console.print(table)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def show_estimate(found: dict[str, Any]) -> None:
    """Print what `edgewatt sweep --dry-run` found."""
    from edgewatt.cli.output import show_table

    rows = [(name, str(count)) for name, count in found["stages"].items()]
    show_table(
        ("stage", "distinct"),
        rows,
        title=f"{found['points']} points, {found['to_do']} to compute",
        numeric=("distinct",),
    )
    print(found["text"])
