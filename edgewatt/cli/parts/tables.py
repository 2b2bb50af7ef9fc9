"""Records, their comparison and what a sweep would compute, as tables on a terminal of any width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappush, heappushpop
from typing import Any

from edgewatt.cli.parts.answer import show_verdict
from edgewatt.cli.parts.output import put, say, show_table, terminal_width, wrapped
from edgewatt.results.comparison import Comparison
from edgewatt.results.record import Record
from edgewatt.results.record_rows import (
    COLUMNS,
    Column,
    column_title,
    compact,
    percent,
    row_of,
    searches,
    value_in_words,
)
from edgewatt.results.swept import rows_with_axes
from edgewatt.results.verdict import Measured
from traces.base.units import SCALES, energy, engineering, in_one_unit

Row = dict[str, Any]

OneLineRepr = tuple[str, str, list[str]]  # head, unit below it, cells


def show_records(records: Sequence[Record], *, title: str, among: Sequence[Record] | None = None) -> None:
    """Print one row a record, under a line for each ordering.

    Changes are against row by row on the same hardware (`edgewatt.results.verdict`). among: the records in which that
    is looked for, default these.
    """
    from rich.console import Console

    rows = [row_of(record) for record in records]
    _put_baselines(rows, records if among is None else among)
    axes = rows_with_axes(rows, [record.config for record in records])
    console = Console(highlight=False, soft_wrap=True)
    width = terminal_width()
    for line in wrapped(title):
        put(console, line, style="bold")
    for note in _notes(records, rows):
        for line in wrapped(note, " " * 9):
            put(console, line)
    groups = _groups(rows, {axis.key: axis.title for axis in axes})
    io, cost = _io_columns(rows), _cost_columns(rows)
    together = _pieces(_name_columns(rows), [*io, *cost], width)
    if len(together) == 1 or not io or not cost:
        for piece in together:
            _print(console, groups, piece)
    else:
        first = _distinct_work(rows)
        names = [("format", "", [_formats(rows, n) for n in first])]

        def pick(columns: Iterable[tuple[str, str, list[str]]]) -> list[tuple[str, str, list[str]]]:
            return [(head, unit, [cells[n] for n in first]) for head, unit, cells in columns]

        others = [column for column in pick(_name_columns(rows)) if column[0] != "format"]
        for piece in _pieces([*others, *names], pick(io), width):
            _print(console, [groups[n] for n in first], piece)
        for piece in _pieces(_name_columns(rows), cost, width):
            _print(console, groups, piece)


def _put_baselines(rows: list[Row], among: Sequence[Record]) -> None:
    """Give each row, as `base`, the row that its changes are against; itself where there is none."""
    measured, found = Measured(), [row_of(record) for record in among]
    for number, (record, row) in enumerate(zip(among, found, strict=True)):
        measured.take(record, row, number)
    base = {
        row["hash"]: found[number] for row, number in zip(found, measured.baselines(len(found)), strict=True)
        if number is not None
    }  # fmt: skip
    for row in rows:
        row["base"] = base.get(row["hash"], {} if "ordering" in row else rows[0])


def _pieces(names: list[OneLineRepr], columns: list[OneLineRepr], width: int) -> list[list[OneLineRepr]]:
    """Return the columns in tables that fit a width, each with the naming ones."""
    size = lambda column: 2 + max(map(len, (column[0], column[1], *column[2])))  # noqa: E731
    room = width - 2 - sum(map(size, names))
    pieces: list[list[OneLineRepr]] = [[]]
    for column in columns:
        if pieces[-1] and sum(map(size, [*pieces[-1], column])) > room:
            pieces.append([])
        pieces[-1].append(column)
    return [[*names, *piece] for piece in pieces]


def _groups(rows: list[Row], swept: dict[str, str]) -> list[str]:
    """Return the heading above each row: its ordering, and what else differs between rows and has no column."""
    words = {"memory": "M = {}", "policy": "policy {}", "encoder": "{} bus", "part": "{}", "timing": "{} timing"}
    words |= {"network": "{}", "seed": "seed {}", "onchip": "{}", "lanes": "{} lanes", "engines": "{} engines"}
    words |= {"layout": "{}"} if _lists_layouts(rows) else {}
    told = ("onchip", "caches_", "scratchpad_", "layout_lanes")  # by the label of the on-chip memory, and the lanes
    titles = {key: title for key, title in swept.items() if not key.startswith(told)}
    varying = [name for name in (*words, *titles) if len({row.get(name) for row in rows}) > 1]
    return [
        ", ".join(
            [
                str(row.get("ordering", row.get("trace"))),
                *(
                    value_in_words(titles[name], row[name]) if name in titles else words[name].format(row[name])
                    for name in varying
                    if row.get(name) is not None
                ),
            ]
        )
        for row in rows
    ]


def _lists_layouts(rows: list[Row]) -> bool:
    """Whether some ordering stands there in several layouts, not each in its own."""
    kinds: dict[Any, set[Any]] = {}
    for row in rows:
        kinds.setdefault(row.get("ordering"), set()).add(row.get("layout"))
    return any(len(each) > 1 for each in kinds.values())


def _distinct_work(rows: list[Row]) -> list[int]:
    """Return the first row of every distinct order of work: formats that share it share one line."""
    seen: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows):
        seen.setdefault(_work(row), number)
    return list(seen.values())


def _work(row: Row) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("ordering", "stride", "memory", "runs", "reads", "writes"))


def _formats(rows: list[Row], number: int) -> str:
    every = dict.fromkeys(row["format"] for row in rows)
    here = dict.fromkeys(row["format"] for row in rows if _work(row) == _work(rows[number]))
    return "all" if len(every) > 1 and here == every else " ".join(here)


def _layouts(rows: list[Row]) -> str:
    """Return the layout of all rows, or which rows have which."""
    kinds = dict.fromkeys(str(row["layout"]) for row in rows)
    if len(kinds) == 1:
        return next(iter(kinds))
    by_kind = {kind: dict.fromkeys(str(r.get("ordering")) for r in rows if str(r["layout"]) == kind) for kind in kinds}
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in by_kind.items())


def _notes(records: Sequence[Record], rows: list[Row]) -> list[str]:
    record, first, notes = records[0], rows[0], []
    if "io" in first:
        sizes = record.results["network"]
        notes.append(f"network  {first['network']}: {sizes['neurons']} neurons, {sizes['connections']} connections")
        notes.append(
            f"I/Os     M = {first['memory']}, policy {first['policy']}; "
            f"bounds {first['io_lower']} to {first['io_upper']} (Theorem 1)" + _better_bound(first)
        )
    if "energy_pj" not in first:
        return notes
    onchip = " | ".join(dict.fromkeys(row["onchip"] for row in rows))
    time = "issue time (replay)" if first["timing"] == "replay" else "system timing"
    engines = f"; {first['engines']} engines" if first["engines"] > 1 else ""
    notes.append(f"machine  {onchip}; {first['encoder']} bus; {first['part']}; {time}{engines}")
    many = sorted({row["inputs"] for row in rows})
    batch = f", {' or '.join(map(str, many))} inputs at a time" if many != [1] else ""
    notes.append(f"per      energy and time: inference{batch}; bytes, ones, toggles: all of them")
    if "ordering" in first:
        notes.append(f"±        against row by row (two-optimal), {baseline_words(rows)}, same hardware")
        notes += aims(records)
    notes.append("layout   " + _layouts(rows))
    if idle := ", ".join(dict.fromkeys(row["idle"] for row in rows if row.get("idle"))):
        notes.append(f"energy   total = dynamic + static; of the DRAM's static energy is billed: {idle}")
    padded = max(record.results.get("padded_lanes", 0) for record in records)
    if padded:
        notes.append(f"note     {padded} lanes of the last pass have no input vector and compute on zeros")
    zeroed = {row["format"]: row["zeroed_weights"] for row in rows if row.get("zeroed_weights")}
    notes += [f"warning  {n} non-zero weights become zero in {name}" for name, n in zeroed.items()]
    return notes


def baseline_words(rows: list[Row]) -> str:
    """Return the stride, format and layout of the baseline."""
    base = next((row["base"] for row in rows if row["base"]), rows[0])
    if "energy_pj" not in base:
        return "the first row"
    return f"stride {base['stride']}, {base['format']}, layout {base['layout']}"


def aims(records: Sequence[Record]) -> list[str]:
    """Return what searches aimed at, where there were any."""
    found = {str(record.config["search"]["objective"]) for record in records if searches(record.config)}
    return [f"searches lower {' or '.join(sorted(found)).replace('io', 'I/Os')}"] if found else []


def _better_bound(row: Row) -> str:
    return f", at least {row['io_bound']} ({row['bound']})" if row["io_bound"] > row["io_lower"] else ""


def _name_columns(rows: list[Row]) -> list[OneLineRepr]:
    names = ["stride", "format"] if "ordering" in rows[0] else []
    return [(name, "", [str(row[name]) for row in rows]) for name in names]


def _io_columns(rows: list[Row]) -> list[OneLineRepr]:
    if "io" not in rows[0]:
        return []
    measured = "energy_pj" in rows[0]
    return [
        *((name, "", [compact(row[name]) for row in rows]) for name in ("runs", "reads", "writes")),
        ("I/Os", "", [compact(row["io"], 4) for row in rows]),
        ("gap", "%", _gaps(rows, "gap")),
        *([("to best", "%", _gaps(rows, "gap_to_bound"))] if any(map(_better_bound, rows)) else []),
        ("I/Os", "±%", [percent(row["io"], row["base"]["io"] if measured else rows[0]["io"]) for row in rows]),
    ]


def _gaps(rows: list[Row], key: str) -> list[str]:
    return ["-" if row[key] is None else f"{100 * row[key]:.1f}" for row in rows]


def _cost_columns(rows: list[Row]) -> list[OneLineRepr]:
    first = rows[0]
    if "energy_pj" not in first:
        return []
    columns = [
        ("hit", "%", [_per_cent(row["hit_rate"]) for row in rows]),
        *(
            (f"L{n}", "hit %", [_per_cent(row.get(f"l{n}_hit_rate")) for row in rows])
            for n in range(2, 10)
            if any(f"l{n}_hit_rate" in row for row in rows)
        ),
        *(_cells(column, rows) for column in COLUMNS.values() if column.brief),
        ("bound by", "% of time", [row.get("bound_by", "-") for row in rows]),
        ("right", "%", [_share(row) for row in rows]),
        *(
            (head, "±%", [percent(row[key], row["base"].get(key)) for row in rows])
            for head, key in (("moved", "bytes"), ("energy", "energy_pj"), ("time", "time_ns"))
        ),
    ]
    return [column for column in columns if column[0] not in _absent(rows)]


def _share(row: Row) -> str:
    """Return the accuracy in per cent; without labels, in brackets, the agreement with float64."""
    if row.get("accuracy") is not None:
        return f"{100 * row['accuracy']:.1f}"
    return "-" if row.get("agreement") is None else f"({100 * row['agreement']:.1f})"


def _cells(column: Column, rows: list[Row]) -> OneLineRepr:
    """Return a column of counts, or of energies, times or bytes in the unit that suits its values."""
    values = [row.get(column.key) for row in rows]
    if column.key.endswith(("_pj", "_ns")):
        values = [None if v is None else v / row["inputs"] for v, row in zip(values, rows, strict=True)]
    if column.kind == "count":
        return (column.brief, "", [compact(value) for value in values])
    return (column.brief, *in_one_unit(values, *SCALES[column.key.rpartition("_")[2]]))


def _per_cent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _absent(rows: list[Row]) -> set[str]:
    """Return the heads of columns that no row has anything for."""
    keys = {
        "hit": "hit_rate",
        "chip": "onchip_energy_pj",
        "MAC": "compute_energy_pj",
        "right": "agreement",
        "bound by": "bound_by",
    }
    return {head for head, key in keys.items() if all(row.get(key) is None for row in rows)}


_WORDS = ("stride", "format", "encoder", "part", "bound by")


def _print(console: Any, groups: list[str], columns: list[OneLineRepr]) -> None:
    widths = [max(map(len, (head, unit, *cells))) for head, unit, cells in columns]

    def line(cells: Sequence[str]) -> str:
        parts = [
            cell.ljust(width) if column[0] in _WORDS else cell.rjust(width)
            for cell, width, column in zip(cells, widths, columns, strict=True)
        ]
        return "  " + "  ".join(parts).rstrip()

    put(console)
    put(console, line([head for head, _, _ in columns]), style="bold")
    put(console, line([unit for _, unit, _ in columns]))
    for number, cells in enumerate(zip(*(cells for _, _, cells in columns), strict=True)):
        if number == 0 or groups[number] != groups[number - 1]:
            put(console, groups[number], style="bold cyan")
        put(console, line(cells))


def show_front(front: Any) -> None:
    """Print a Pareto front (`edgewatt.runs.optimization.Front`), the baseline first."""
    title = f"Pareto front: {len(front.front)} points, after the baseline; {front.text}"
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
        (name.rpartition("_")[0].replace("_", " ") or name, *_both(name, c), _signed(c["percent"]))
        if name.rpartition("_")[2] in SCALES else (name.replace("_", " "), *_both(name, c), _signed(c["percent"]))
        for name, c in largest["changes"].items() if _moved(largest, name)
    ]  # fmt: skip
    if not rows:
        put(console, "  every count, energy and time is the same")
        return
    show_table(("metric", "A", "B", "change %"), rows, numeric=("A", "B", "change %"))
    because = largest["because"][:8]
    if because:
        rows = [(t["term"], compact(t["count_a"]), compact(t["count_b"]), _plus(t["pj"])) for t in because]
        show_table(("energy term", "count A", "count B", "change"), rows, numeric=("count A", "count B", "change"))


def _moved(pair: dict[str, Any], name: str) -> bool:
    change = pair["changes"].get(name)
    return change is not None and change["a"] != change["b"]


def _both(name: str, change: dict[str, Any]) -> list[str]:
    """Return A and B of a metric, with their unit."""
    values = [change["a"], change["b"]]
    scale = SCALES.get(name.rpartition("_")[2])
    return [engineering(value * scale[0], scale[1]) for value in values] if scale else [compact(v) for v in values]


def _plus(pj: float) -> str:
    return f"{'+' if pj > 0 else ''}{energy(pj)}"


def _signed(change: float | None) -> str:
    return "-" if change is None else "0" if abs(change) < 0.05 else f"{change:+.1f}"


def show_weights(orders: Sequence[Any], output: str) -> None:
    """Print what a model's matrices send (`reorder.tuples.shards.MatrixOrder`), and all of them together."""

    def ones(order: Any, prefix: str) -> int:
        return int(getattr(order, f"{prefix}ones_values") + getattr(order, f"{prefix}ones_ids"))

    sums: list[tuple[Any, ...]] = [(o.name, o.tuples, ones(o, "original_"), ones(o, "")) for o in orders]
    sums.append(("all", *(sum(each[k] for each in sums) for k in (1, 2, 3))))
    rows = [
        (name, count, before, after, f"{100 * after / before - 100:+.1f} %" if before else "-")
        for name, count, before, after in (sums if len(orders) > 1 else sums[:1])
    ]
    heads = ("matrix", "tuples", "ones as stored", "reordered", "change")
    show_table(heads, rows, title=f"{len(orders)} {'matrix' if len(orders) == 1 else 'matrices'}", numeric=heads[1:])
    say(f"reordered shards: {output}")


def show_estimate(counted: dict[str, Any]) -> None:
    """Print what a sweep would compute and how long that may take (`edgewatt.runs.estimate.estimate`)."""
    rows = [(name, str(count)) for name, count in counted["stages"].items()]
    show_table(
        ("stage", "distinct"),
        rows,
        title=f"{counted['points']} points, {counted['to_do']} to compute",
        numeric=("distinct",),
    )
    say(counted["text"])
