"""What the report shows: rows for table and charts, curves, wires, the baseline and the Pareto front.

Records are read once, one at a time, so that a results folder of any size is gone through in little memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from edgewatt.results.columns import ABSENT, ColumnTable
from edgewatt.results.comparison import pareto_front
from edgewatt.results.gathering import About, Curves, WireMarks
from edgewatt.results.record import Record
from edgewatt.results.record_rows import NAMING, distinct_labels, row_of, shorten_names
from edgewatt.results.stored import unchanged
from edgewatt.results.swept import Axis, Configs, rows_with_axes

Row = dict[str, Any]


@dataclass(frozen=True)
class ReportData:
    """Plain values, ready for JSON.

    rows: one per record, baseline first where it is known; a row asked for is a dictionary. front: row numbers of the
    Pareto front of energy and time. io_curves, wires, convergence, spread: long tables for the charts (a dict per
    mark). axes: what was swept and has no column of its own in `row_of`; the rows hold it by its key. about: what the
    page says of the records as such.
    """

    title: str
    rows: ColumnTable
    baseline: int
    front: list[int]
    io_curves: list[Row]
    wires: list[Row]
    convergence: list[Row]
    failed: dict[str, str]
    axes: list[Axis] = field(default_factory=list)
    spread: list[Row] = field(default_factory=list)
    about: About = field(default_factory=About)

    @property
    def played(self) -> list[int]:
        """The numbers of the rows that have an energy; the others count I/Os alone."""
        return [number for number, spent in enumerate(self.rows.values("energy_pj")) if spent is not None]


def gather(
    records: Sequence[Record],
    *,
    title: str,
    baseline: str | None,
    failed: dict[str, str],
    sweeps: Sequence[str] | None = None,
) -> ReportData:
    """Collect what the report shows of some records. `baseline`: hash of the row that changes are against.

    records: read once in their order, then those few again whose wires are drawn. sweeps: of several results folders
    the one each record comes from.
    """
    rows, configs, about, curves, wires = ColumnTable(), Configs(), About(), Curves(), WireMarks()
    for number, record in enumerate(unchanged(records)):
        row = row_of(record)
        row["id"] = number
        if sweeps:
            row["sweep"] = sweeps[number]
        rows.append(row)
        configs.append(record.config)
        for each in (about, curves, wires):
            each.take(record, row)
    axes = rows_with_axes(rows, configs)
    renamed = shorten_names(rows)
    named = {axis.key: axis.title for axis in axes} | ({"sweep": "sweep"} if sweeps else {})
    labels = distinct_labels(rows, named)
    rows.put("label", (label or name[:8] for label, name in zip(labels, rows.values("hash"), strict=True)))
    base = next((i for i, name in enumerate(rows.values("hash")) if name == baseline), 0)
    first = rows[base]
    for key, change in (("energy_pj", "energy_change"), ("time_ns", "time_change"), ("io", "io_change")):
        if before := first.get(key):
            rows.put(change, (ABSENT if value is None else value / before - 1 for value in rows.values(key)))
    costs = list(zip(rows.values("time_ns"), rows.values("energy_pj"), strict=True))
    played = [number for number, (_, spent) in enumerate(costs) if spent is not None]
    front = [played[i] for i in pareto_front([costs[number] for number in played])]
    if front:
        on_front = set(front)
        rows.put("on_front", (True if number in on_front else ABSENT for number in range(len(rows))))
    by_energy = sorted(played, key=lambda number: costs[number][1])
    chosen = [*((base,) if base in set(played) else ()), *front, *by_energy]
    return ReportData(
        title,
        rows,
        base,
        front,
        curves.io_marks(renamed),
        wires.marks(chosen, records, rows),
        curves.convergence_marks(renamed),
        failed,
        axes,
        _spread(rows, axes),
        about,
    )


_SPREAD = (("energy_pj", "energy"), ("time_ns", "time"), ("io", "I/Os"))
MAX_GROUPS = 24
MAX_SEEDS = 200
"""Points of a group that are drawn; of more, evenly many from the least to the most."""


def _spread(rows: ColumnTable, axes: Sequence[Axis]) -> list[Row]:
    """Return a mark for each point of a group that differs in the seed alone, with the group's median and extremes.

    The seed is the point's own, or where no group has several of it that of what is generated.
    """
    keys = [*(key for key in NAMING if key not in ("seed", "name")), "sweep", *(axis.key for axis in axes)]
    keys = [key for key in dict.fromkeys(keys) if len(rows.distinct(key)) > 1]
    metric = next((m for m in _SPREAD if m[0] in rows.columns and ABSENT not in rows.distinct(m[0])), None)
    metric = metric or next((m for m in _SPREAD if m[0] in rows.columns), None)
    if metric is None:
        return []
    of_seed = "seed"
    repeated = _repeated(rows, keys, of_seed)
    for axis in axes:
        if not repeated and axis.key.endswith("_seed"):
            of_seed = axis.key
            repeated = _repeated(rows, [key for key in keys if key != of_seed], of_seed)
            keys = [key for key in keys if key != of_seed] if repeated else keys
    axes = [axis for axis in axes if axis.key != of_seed]
    groups: dict[int, list[tuple[float, int, int]]] = {name: [] for name in repeated}
    columns = zip(rows.values(metric[0]), rows.values(of_seed), _names(rows, keys), strict=True)
    for number, (value, seed, name) in enumerate(columns):
        if name in groups and value is not None:
            groups[name].append((value, number, seed))
    whole = [group for group in groups.values() if group]
    firsts = [{**rows[min(number for _, number, _ in group)], "seed": 0} for group in whole]
    labels = distinct_labels(firsts, {axis.key: axis.title for axis in axes}) if firsts else []
    marks = []
    for label, group, first in zip(labels, whole, firsts, strict=True):
        ranked = sorted(group)
        values = [value for value, _, _ in ranked]
        step = max(1.0, (len(ranked) - 1) / (MAX_SEEDS - 1))
        drawn = {round(k * step) for k in range(min(len(ranked), MAX_SEEDS))}
        for value, number, seed in sorted((ranked[k] for k in drawn), key=lambda each: each[1]):
            marks.append(
                {
                    "group": f"{label or first.get('ordering')} ({len(group)} seeds)", "id": number, "value": value,
                    "seed": seed, "title": metric[1], "median": median(values), "low": values[0], "high": values[-1],
                    "metric": metric[0],
                }
            )  # fmt: skip
    return marks


def _names(rows: ColumnTable, keys: Sequence[str]) -> Iterable[int]:
    """Yield what stands for each row's values of some keys."""
    for _, *values in zip(range(len(rows)), *map(rows.values, keys), strict=True):
        yield hash(tuple(values))


def _repeated(rows: ColumnTable, keys: Sequence[str], of_seed: str) -> list[int]:
    """Return the first groups of rows that have more than one seed, by their names."""
    if len(rows.distinct(of_seed)) < 2:
        return []
    seeds: dict[int, Any] = {}
    repeated: set[int] = set()
    for name, seed in zip(_names(rows, keys), rows.values(of_seed), strict=True):
        if seeds.setdefault(name, seed) != seed:
            repeated.add(name)
    return [name for name in seeds if name in repeated][:MAX_GROUPS]
