"""Records, their comparison and what a sweep would compute, as tables on a terminal of any width."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush, heappushpop
from typing import Any

from edgewatt.cli.parts.answer import show_verdict
from edgewatt.cli.parts.output import put, say, show_table, wrapped
from edgewatt.results.comparison import Comparison
from edgewatt.results.record import Record
from edgewatt.results.record_rows import (
    COLUMNS,
    NAMING,
    Column,
    column_title,
    compact,
    label_of,
    per_inference,
    percent,
    row_of,
    searches,
    words_of,
)
from edgewatt.results.swept import rows_with_axes
from edgewatt.results.verdict import Measured
from traces.base.units import SCALES, energy, engineering, in_one_unit

Row = dict[str, Any]
CHANGES = {"I/Os ±%": "io", "traffic ±%": "bytes", "energy ±%": "energy_pj", "time ±%": "time_ns"}
"""Head -> column of `row_of` whose change against the baseline stands there."""


def show_records(records: Sequence[Record], *, title: str, among: Sequence[Record] | None = None) -> None:
    """Print one row a record, under a line for each ordering.

    Changes are against row by row on the same hardware (`edgewatt.results.verdict`). among: the records in which that
    is looked for, default these.
    """
    from rich.console import Console

    rows = [row_of(record) for record in records]
    bases = _baselines(rows, records if among is None else among)
    axes = rows_with_axes(rows, [record.config for record in records])
    console = Console(highlight=False, soft_wrap=True)
    for line in wrapped(title):
        put(console, line, style="bold")
    for note in _notes(records, rows, bases):
        for line in wrapped(note, " " * 9):
            put(console, line)
    names = ["stride", "format"] if "ordering" in rows[0] else []
    table = [(name, [str(row[name]) for row in rows]) for name in names]
    found = [per_inference(row) for row in rows]
    for each in COLUMNS.values():
        values = [row.get(each.key) for row in found]
        again = each.key == "gap_to_bound" and values == [row.get("gap") for row in rows]  # Theorem 1 is the best bound
        if each.brief and not again and any(value is not None for value in values):
            table.append(_cells(each, values))
    for head, key in CHANGES.items():
        if key in rows[0]:
            table.append((head, [percent(row[key], base.get(key)) for row, base in zip(rows, bases, strict=True)]))
    heads, cells = zip(*table, strict=True)
    show_table(
        heads, zip(*cells, strict=True), numeric=[head for head in heads if head not in ("stride", "format")],
        groups=_groups(rows, {axis.key: axis.title for axis in axes}), names=len(names) or 1,
    )  # fmt: skip


def _baselines(rows: list[Row], among: Sequence[Record]) -> list[Row]:
    """Return the row that each row's changes are against: of I/Os alone and recorded traces the first one."""
    measured, found = Measured(), [row_of(record) for record in among]
    for number, (record, row) in enumerate(zip(among, found, strict=True)):
        measured.take(record, row, number)
    bases = zip(found, measured.baselines(len(found)), strict=True)
    of = {row["hash"]: found[number] for row, number in bases if number is not None}
    return [of.get(row["hash"], {} if "energy_pj" in row and "ordering" in row else rows[0]) for row in rows]


def _groups(rows: list[Row], swept: dict[str, str]) -> list[str]:
    """Return the heading above each row: its ordering, and what else differs between rows and has no column."""
    by_label = ("onchip", "caches_", "scratchpad_", "layout_lanes")  # the on-chip memory's label has them
    titles = {key: title for key, title in swept.items() if not key.startswith(by_label)}
    left_out = ("name", "trace", "ordering", "stride", "format")
    keys = [key for key in NAMING if key not in left_out] + [*titles]
    varying = [key for key in keys if len({row.get(key) for row in rows}) > 1]
    return [
        ", ".join(
            [str(row.get("ordering", row.get("trace"))),
             *(words_of(key, row[key], titles.get(key)) for key in varying if row.get(key) is not None)]
        )
        for row in rows
    ]  # fmt: skip


def _notes(records: Sequence[Record], rows: list[Row], bases: list[Row]) -> list[str]:
    record, first, notes = records[0], rows[0], []
    if "io" in first:
        sizes = record.results["network"]
        better = f", at least {first['io_bound']} ({first['bound']})" if first["io_bound"] > first["io_lower"] else ""
        several = {(row.get("network"), row.get("memory"), row.get("io_lower"), row.get("policy")) for row in rows}
        if len(several) == 1:
            notes.append(f"network  {first['network']}: {sizes['neurons']} neurons, {sizes['connections']} connections")
            notes.append(
                f"I/Os     M = {first['memory']}, policy {first['policy']}; "
                f"bounds {first['io_lower']} to {first['io_upper']} (Theorem 1){better}"
            )
    rows = [row for row in rows if "energy_pj" in row]
    if not rows:
        return notes
    first = rows[0]
    onchip = " | ".join(dict.fromkeys(row["onchip"] for row in rows))
    time = "issue time (replay)" if first["timing"] == "replay" else "system timing"
    engines = f"; {first['engines']} engines" if first["engines"] > 1 else ""
    buses, parts = (" | ".join(dict.fromkeys(str(row[key]) for row in rows)) for key in ("encoder", "part"))
    notes.append(f"machine  {onchip}; {buses} bus; {parts}; {time}{engines}")
    many = sorted({row["lanes"] for row in rows})
    batch = f", {' or '.join(map(str, many))} inputs at a time" if many != [1] else ""
    if "ordering" in first:
        notes.append(f"per      energy and time: inference{batch}; bytes, ones, toggles: all of them")
    if "ordering" in first:
        base = next((each for each in bases if "layout" in each), first)
        which = f"stride {base['stride']}, {base['format']}, layout {base['layout']}"
        notes.append(f"±        against row by row (two-optimal), {which}, same hardware")
        given = [r.config["search"]["objective"] for r in records if searches(r.config)]
        aims = sorted({label_of(aim) if isinstance(aim, dict) else str(aim) for aim in given})
        notes += [f"searches lower {' or '.join(aims).replace('io', 'I/Os')}"] if aims else []
    if layouts := dict.fromkeys(str(row["layout"]) for row in rows if row["layout"]):
        notes.append(f"layout   {' | '.join(layouts)}")
    if idle := ", ".join(dict.fromkeys(row["idle"] for row in rows if row.get("idle"))):
        notes.append(f"energy   total = dynamic + static; of the DRAM's static energy is billed: {idle}")
    padded = max(record.results.get("padded_lanes", 0) for record in records)
    if padded:
        notes.append(f"note     {padded} lanes of the last pass have no input vector and compute on zeros")
    zeroed = {row["format"]: row["zeroed_weights"] for row in rows if row.get("zeroed_weights")}
    notes += [f"warning  {n} non-zero weights become zero in {name}" for name, n in zeroed.items()]
    return notes


def _cells(column: Column, values: list[Any]) -> tuple[str, list[str]]:
    if column.kind == "quantity":
        unit, cells = in_one_unit(values, *SCALES[column.key.rpartition("_")[2]])
        return f"{column.brief} {unit}", cells
    if column.kind == "share":
        return f"{column.brief} %", ["-" if value is None else f"{100 * value:.1f}" for value in values]
    words = {"count": compact, "decimal": "{:.4g}".format}.get(column.kind, str)
    return column.brief, ["-" if value is None else words(value) for value in values]


def show_front(front: Any) -> None:
    """Print a Pareto front (`edgewatt.runs.optimization.Front`), the baseline first."""
    title = f"Pareto front: {len(front.front)} point{'s' * (len(front.front) != 1)}, after the baseline; {front.text}"
    shown = [front.baseline, *(r for r in front.front if r.hash != front.baseline.hash)]
    show_records(shown, title=title, among=front.tried)
    show_verdict(front.tried)


MOST_SHOWN = 1000  # points that are printed; more are for `--json`


def show_comparison(pairs: Comparison) -> None:
    """Print what changed from A to B over all points, then in detail for the one that changes most."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    keys = ("io", "ones", "toggles", "io_energy_pj", "energy_pj", "time_ns")
    every = {key: f"{column_title(key)} %" for key in keys}

    def words(name: str) -> str:
        stem, _, unit = name.rpartition("_")
        return (stem if stem and unit in SCALES else name).replace("_", " ")

    moved: set[str] = set()
    shown: list[tuple[float, int, str, list[float | None]]] = []  # a heap of the points that change most
    largest, most = pairs[0], -1.0
    for number, pair in enumerate(pairs):
        change = max((abs(c["percent"] or 0) for c in pair["changes"].values()), default=0)
        if change > most:
            largest, most = pair, change
        moved |= {name for name in every if name not in moved and _moved(pair, name)}
        cells = [pair["changes"].get(name, {}).get("percent") for name in every]
        (heappush if len(shown) < MOST_SHOWN else heappushpop)(shown, (change, -number, pair["point"], cells))
    if len(pairs) > 1:
        names = [name for name in every if name in moved]
        kept = [k for k, name in enumerate(every) if name in moved]
        rows = [
            (point, *(_signed(cells[k]) for k in kept))
            for _, _, point, cells in sorted(shown, key=lambda each: -each[1])
        ]
        heads = ("point", *(every[name] for name in names))
        if names:
            show_table(heads, rows, title=f"{len(pairs)} points, change from A to B", numeric=heads[1:])
        if names and len(pairs) > len(shown):
            put(console, f"shown: the {len(shown)} points that change most; --json has all")
        same = [every[name].removesuffix(" %") for name in every if name not in names and name in pairs[0]["changes"]]
        if same:
            put(console, f"the same in every point: {', '.join(same)}")
        put(console, pairs.says)
    if pairs.counted:
        put(console, pairs.counted)
    if len(pairs) > 1 and most == 0 and not any(pair["differs"] for pair in pairs):
        put(console, "nothing differs: settings, counts, energies and times of every point are the same", style="bold")
        return
    chosen = "the point that changes most" if most > 0 else "the first point"
    title = largest["point"] if len(pairs) == 1 else f"in detail, {chosen}: {largest['point']}"
    put(console, title, style="bold")
    for key, values in largest["differs"].items():
        a, b = (str(value)[:12] if key.endswith("sha256") else value for value in values)
        put(console, f"  {key}: {a} -> {b}")
    rows = [
        (words(name), *_both(name, c), _signed(c["percent"]))
        for name, c in largest["changes"].items()
        if _moved(largest, name)
    ]
    if not rows:
        put(console, "  every count, energy and time is the same")
        return
    show_table(("metric", "A", "B", "change %"), rows, numeric=("A", "B", "change %"))
    because = largest["because"][:8]
    if because:
        more = len(largest["because"]) - len(because)
        rows = [
            (t["term"], compact(t["count_a"]), compact(t["count_b"]), f"{'+' if t['pj'] > 0 else ''}{energy(t['pj'])}")
            for t in because
        ]
        show_table(("energy term", "count A", "count B", "change"), rows, numeric=("count A", "count B", "change"))
        if more:
            put(console, f"and {more} terms that change less; --json has all")


def _moved(pair: dict[str, Any], name: str) -> bool:
    change = pair["changes"].get(name)
    return change is not None and change["a"] != change["b"]


def _both(name: str, change: dict[str, Any]) -> list[str]:
    values = [change["a"], change["b"]]
    scale = SCALES.get(name.rpartition("_")[2])
    return [engineering(value * scale[0], scale[1]) for value in values] if scale else [compact(v) for v in values]


def _signed(change: float | None) -> str:
    return "-" if change is None else "0" if abs(change) < 0.05 else f"{change:+.1f}"


def show_estimate(counted: dict[str, Any]) -> None:
    """Print what a sweep would compute and how long that may take (`edgewatt.runs.estimate.estimate`)."""
    rows = [(name, str(count)) for name, count in counted["stages"].items()]
    title = f"{counted['points']} points, {counted['to_do']} to compute"
    show_table(("stage", "distinct"), rows, title=title, numeric=("distinct",))
    say(counted["text"])
