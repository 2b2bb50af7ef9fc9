"""What the report shows: rows for table and charts, curves, wires, the baseline and the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from edgewatt.results.comparison import pareto_front
from edgewatt.results.record import Record
from edgewatt.results.rows import NAMING, distinct_labels, row_of, shorten_names
from edgewatt.results.swept import Axis, rows_with_axes

Row = dict[str, Any]

MAX_WIRE_POINTS = 24
MAX_CURVES = 24


@dataclass(frozen=True)
class ReportData:
    """Plain values, ready for JSON.

    rows: one per record, baseline first where it is known. front: row numbers of the Pareto front of energy and time.
    io_curves, wires, convergence, spread: long tables for the charts (a dict per mark). axes: what was swept and has
    no column of its own in `row_of`; the rows hold it by its key.
    """

    title: str
    rows: list[Row]
    baseline: int
    front: list[int]
    io_curves: list[Row]
    wires: list[Row]
    convergence: list[Row]
    failed: dict[str, str]
    axes: list[Axis] = field(default_factory=list)
    spread: list[Row] = field(default_factory=list)


def gather(
    records: Sequence[Record],
    *,
    title: str,
    baseline: str | None,
    failed: dict[str, str],
    sweeps: Sequence[str] | None = None,
) -> ReportData:
    """Collect what the report shows of some records. `baseline`: hash of the row that changes are against.

    sweeps: of several results folders the one each record comes from.
    """
    rows = [row_of(record) for record in records]
    for number, (row, sweep) in enumerate(zip(rows, sweeps or [""] * len(rows), strict=True)):
        row["id"] = number
        if sweep:
            row["sweep"] = sweep
    axes = rows_with_axes(rows, [record.config for record in records])
    shorten_names(rows)
    named = {axis.key: axis.title for axis in axes} | ({"sweep": "sweep"} if sweeps else {})
    for row, label in zip(rows, distinct_labels(rows, named), strict=True):
        row["label"] = label or row["hash"][:8]
    base = next((i for i, row in enumerate(rows) if row["hash"] == baseline), 0)
    for row in rows:
        for key, change in (("energy_pj", "energy_change"), ("time_ns", "time_change"), ("io", "io_change")):
            if rows[base].get(key) and row.get(key) is not None:
                row[change] = row[key] / rows[base][key] - 1
    played = [i for i, row in enumerate(rows) if "energy_pj" in row]  # the others measure I/Os alone
    front = [played[i] for i in pareto_front([(rows[i]["time_ns"], rows[i]["energy_pj"]) for i in played])]
    for i in front:
        rows[i]["on_front"] = True
    return ReportData(
        title,
        rows,
        base,
        front,
        _io_curves(records, rows),
        _wires(records, rows, base, front),
        _convergence(records, rows),
        failed,
        axes,
        _spread(rows, axes),
    )


_SPREAD = (("energy_pj", "energy"), ("time_ns", "time"), ("io", "I/Os"))
MAX_GROUPS = 24


def _spread(rows: list[Row], axes: list[Axis]) -> list[Row]:
    """Return a mark for each point of a group that differs in the seed alone, with the group's median and extremes."""
    keys = [*(key for key in NAMING if key not in ("seed", "name")), "sweep", *(axis.key for axis in axes)]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    repeated = [group for group in groups.values() if len({row["seed"] for row in group}) > 1][:MAX_GROUPS]
    firsts = [{**group[0], "seed": 0} for group in repeated]
    labels = distinct_labels(firsts, {axis.key: axis.title for axis in axes}) if firsts else []
    metric = next((m for m in _SPREAD if all(m[0] in row for group in repeated for row in group)), None)
    if metric is None:
        return []
    marks = []
    for label, group in zip(labels, repeated, strict=True):
        values = sorted(row[metric[0]] for row in group)
        name = f"{label or group[0].get('ordering')} ({len(group)} seeds)"
        for row in group:
            marks.append(
                {
                    "group": name, "id": row["id"], "value": row[metric[0]], "seed": row["seed"], "title": metric[1],
                    "median": median(values), "low": values[0], "high": values[-1], "metric": metric[0],
                }
            )  # fmt: skip
    return marks


def _io_curves(records: Sequence[Record], rows: list[Row]) -> list[Row]:
    """I/Os against memory size: from each record's own curve, and across records that differ in their memory.

    Tuple orders move few I/Os: the first stride stands for all.
    """
    marks: dict[tuple[Any, ...], Row] = {}
    stride = next((row["stride"] for row in rows if "io" in row), None)
    for record, row in zip(records, rows, strict=True):
        if "io" not in row or row["stride"] != stride:
            continue
        sizes = record.results["io_curve"] or [[row["memory"], row["reads"], row["writes"]]]
        for size, reads, writes in sizes:
            key = (row["network"], row["ordering"], row["policy"], size)
            marks[key] = {
                "id": row["id"],
                "series": row["ordering"],
                "network": row["network"],
                "policy": row["policy"],
                "memory": size,
                "io": reads + writes,
                "lower": row["io_lower"],
                "upper": row["io_upper"],
            }
    appeared = {series: i for i, series in enumerate(dict.fromkeys(m["series"] for m in marks.values()))}
    kept = sorted(marks.values(), key=lambda m: (m["network"], appeared[m["series"]], m["policy"], m["memory"]))
    series = list(dict.fromkeys((m["network"], m["series"], m["policy"]) for m in kept))[:MAX_CURVES]
    return [m for m in kept if (m["network"], m["series"], m["policy"]) in set(series)]


def _wires(records: Sequence[Record], rows: list[Row], base: int, front: list[int]) -> list[Row]:
    """Toggles and ones of every wire, of the baseline, the front, and then the points of least energy."""
    by_energy = sorted((i for i, row in enumerate(rows) if "energy_pj" in row), key=lambda i: rows[i]["energy_pj"])
    marks: list[Row] = []
    shown: list[Any] = []  # points that differ only in what no wire sees (the I/O model's memory) look the same
    for i in dict.fromkeys([*(i for i in (base,) if i in by_energy), *front, *by_energy]):
        wires = records[i].results["bus"]["wires"]
        if not wires or wires in shown:
            continue
        shown.append(wires)
        if len(shown) > MAX_WIRE_POINTS:
            break
        beats = max(1, records[i].results["bus"]["beats"])
        for group, counts in wires.items():
            for wire, (ones, toggles) in enumerate(zip(counts["ones"], counts["toggles"], strict=True)):
                marks.append(
                    {
                        "id": i,
                        "point": rows[i]["label"],
                        "wire": f"{group.upper()}{wire}",
                        "position": wire + (1000 if group != "dq" else 0),
                        "ones": ones,
                        "toggles": toggles,
                        "ones_share": ones / beats,
                        "toggle_share": toggles / beats,
                    }
                )
    return marks


def _convergence(records: Sequence[Record], rows: list[Row]) -> list[Row]:
    curves: dict[tuple[Any, ...], list[Row]] = {}
    for record, row in zip(records, rows, strict=True):
        curve = record.results.get("ordering", {}).get("curve") or []
        if len(curve) < 2 or len(curves) >= MAX_CURVES:
            continue
        series = f"{row['ordering']}, M {row['memory']}, {row['policy']}, seed {row['seed']}"
        curves[row["network"], series] = [
            {"id": row["id"], "series": series, "network": row["network"], "work": max(1, work), "objective": objective}
            for work, objective in curve
        ]
    return [mark for curve in curves.values() for mark in curve]
