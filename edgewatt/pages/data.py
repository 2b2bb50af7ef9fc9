"""What the report shows: rows for table and charts, curves, the baseline and the Pareto front. Records are read one
at a time, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgewatt._version import COUNTS_VERSION
from edgewatt.results.comparison import pareto_front
from edgewatt.results.record import Record
from edgewatt.results.record_rows import NAMING, Table, distinct_labels, flat, per_inference, row_of, shorten_names
from edgewatt.results.swept import Axis, Configs, rows_with_axes
from edgewatt.results.verdict import Measured, Verdict

Row = dict[str, Any]

MAX_CURVES = 24
MOST_RECORDS = 1 << 20
"""Characters of whole records that a page carries."""
SIGNIFICANT = 7
"""Digits of numbers on a page."""
_FORM = f".{SIGNIFICANT}g"
MOST_VALUES = 50
"""Values of a setting that a page lists."""


class Curves:
    """I/Os against memory size.

    Curves are from each record's own, and across records that differ in their memory; of several records at one size
    the fewest.
    """

    def __init__(self) -> None:
        self._stride: Any = None
        self._marks: dict[tuple[Any, ...], dict[Any, Row]] = {}
        self._order: dict[str, int] = {}

    def take(self, record: Record, row: Row) -> None:
        if "io" not in row:
            return
        self._stride = row["stride"] if self._stride is None else self._stride
        if row["stride"] != self._stride:
            return
        index = self._order.setdefault(row["ordering"], len(self._order))
        series = (row["network"], index, row["policy"])
        if series not in self._marks and len(self._marks) >= MAX_CURVES:
            last = max(self._marks)
            if series > last:
                return
            del self._marks[last]
        marks = self._marks.setdefault(series, {})
        for size, reads, writes in record.results["io_curve"] or [[row["memory"], row["reads"], row["writes"]]]:
            if size in marks and marks[size]["io"] <= reads + writes:
                continue  # the fewest of several points, as of seeds
            marks[size] = {
                "id": row["id"],
                "series": row["ordering"],
                "network": row["network"],
                "policy": row["policy"],
                "memory": size,
                "io": reads + writes,
                "lower": row["io_lower"],
                "upper": row["io_upper"],
            }

    def io_marks(self, renamed: Mapping[str, Mapping[str, str]]) -> list[Row]:
        short = renamed.get("ordering", {})
        return [
            {**marks[size], "series": short.get(marks[size]["series"], marks[size]["series"])}
            for _, marks in sorted(self._marks.items())
            for size in sorted(marks)
        ]


class About:
    def __init__(self) -> None:
        self.count = self.older = 0
        self.whole: dict[str, Any] = {}
        self._length = 0
        self._duration_s = 0.0
        self._same: dict[str, Any] = {}
        self._first: dict[str, Any] = {}
        self._values: dict[str, dict[str, None]] = {}  # of each section, the first few as JSON

    def take(self, record: Record, row: Row) -> None:
        if not self.count:
            self._same, self._first = dict(record.provenance), dict(record.config)
        self._same = {k: v for k, v in self._same.items() if k in record.provenance and record.provenance[k] == v}
        self._duration_s += float(record.provenance.get("duration_s") or 0.0)
        self.older += record.counts_version < COUNTS_VERSION
        for key in self._first.keys() | record.config.keys():
            if key not in self._values and record.config.get(key) == self._first.get(key) and key in self._first:
                continue
            self._take_value(key, record.config.get(key))
        self.count += 1
        if self._length <= MOST_RECORDS:
            parts = [_short(record.config), _short(_a_line_a_term(record.results))]
            self._length += len(json.dumps(parts))
            self.whole[record.hash] = parts
            if self._length > MOST_RECORDS:
                self.whole = {}

    def _take_value(self, key: str, value: Any) -> None:
        if key not in self._values:  # the first in which it differs: all before had the first one's
            self._values[key] = {_as_json(self._first.get(key)): None}
        if len(self._values[key]) <= MOST_VALUES:
            self._values[key].setdefault(_as_json(value))

    def configuration(self) -> dict[str, Any]:
        common = {key: value for key, value in self._first.items() if key not in self._values}
        varying = {
            key: [json.loads(value) for value in list(values)[:MOST_VALUES]]
            + (["..."] if len(values) > MOST_VALUES else [])
            for key, values in sorted(self._values.items())
        }
        return {"all points": common, "varying": varying} if varying else common

    def provenance(self) -> dict[str, Any]:
        return {**self._same, "computing time of all points (s)": round(self._duration_s, 3)}


def _short(part: Mapping[str, Any]) -> dict[str, Any]:
    leaves = flat(part).items()
    return {k: rounded(v) for k, v in leaves if v is not None and not (isinstance(v, list) and len(v) > 8)}


def rounded(value: Any) -> Any:
    return float(format(value, _FORM)) if isinstance(value, float) else value


def _a_line_a_term(results: Mapping[str, Any]) -> Mapping[str, Any]:
    spent = results.get("energy_pj") or {}
    lines = {
        name: ", ".join(f"{key} {rounded(value)}" for key, value in term.items() if value is not None)
        for name, term in spent.get("terms", {}).items()
    }
    return {**results, "energy_pj": {**spent, "terms": lines}} if lines else results


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class ReportData:
    """Plain values, ready for JSON.

    rows: one per record, baseline first where it is known; a row asked for is a dictionary. front: row numbers of the
    Pareto front of energy and time. io_curves: a long table for a chart (a dict per mark). axes: what was
    swept and has no column of its own in `row_of`; the rows hold it by its key. groups: row numbers of points that
    differ in the seed alone. about: what the page says of the records as such. verdict: what to take on each hardware.
    earlier: records of earlier sweeps in the same folders, which are left out.
    """

    title: str
    rows: Table
    baseline: int
    front: list[int]
    io_curves: list[Row]
    failed: dict[str, str]
    axes: list[Axis] = field(default_factory=list)
    groups: list[list[int]] = field(default_factory=list)
    about: About = field(default_factory=About)
    verdict: Verdict = field(default_factory=Verdict)
    earlier: int = 0

    @property
    def played(self) -> list[int]:
        return [number for number, spent in enumerate(self.rows.values("energy_pj")) if spent is not None]


def gather(
    records: Iterable[Record],
    *,
    title: str,
    baseline: str | None,
    failed: dict[str, str],
    sweeps: Sequence[str] | None = None,
) -> ReportData:
    rows, configs, about, curves, measured = Table(), Configs(), About(), Curves(), Measured()
    for number, record in enumerate(records):
        row = per_inference(row_of(record))
        row["id"] = number
        if sweeps:
            row["sweep"] = sweeps[number]
        rows.append(row)
        configs.append(record.config)
        about.take(record, row)
        curves.take(record, row)
        measured.take(record, row, number)
    axes = rows_with_axes(rows, configs)
    bases = measured.baselines(len(rows))
    verdict = measured.verdict(rows, axes)
    renamed = shorten_names(rows)
    named = {axis.key: axis.title for axis in axes} | ({"sweep": "sweep"} if sweeps else {})
    labels = distinct_labels(rows, named)
    rows.put("label", (label or name[:8] for label, name in zip(labels, rows.values("hash"), strict=True)))
    base = next((i for i, name in enumerate(rows.values("hash")) if name == baseline), 0)
    for key, change in (("energy_pj", "energy_change"), ("time_ns", "time_change"), ("io", "io_change")):
        rows.put(change, _changes(rows.values(key), bases, base))
    costs = list(zip(rows.values("time_ns"), rows.values("energy_pj"), strict=True))
    played = [number for number, (_, spent) in enumerate(costs) if spent is not None]
    front = [played[i] for i in pareto_front([costs[number] for number in played])]
    if front:
        on_front = set(front)
        rows.put("on_front", [True if number in on_front else None for number in range(len(rows))])
    marks, groups = curves.io_marks(renamed), _groups(rows, axes)
    return ReportData(title, rows, base, front, marks, failed, axes, groups, about, verdict)


def _changes(values: list[Any], bases: Sequence[int | None], base: int) -> list[float | None]:
    before = (values[base if own is None else own] for own in bases)
    return [x / was - 1 if x is not None and was else None for x, was in zip(values, before, strict=True)]


MAX_GROUPS = 24


def _groups(rows: Table, axes: Sequence[Axis]) -> list[list[int]]:
    """Return the numbers of rows that differ in the seed alone, the first groups with more than one seed."""
    keys = [*(key for key in NAMING if key not in ("seed", "name")), "sweep", *(axis.key for axis in axes)]
    keys = [key for key in dict.fromkeys(keys) if len(set(rows.values(key))) > 1]
    for of_seed in ("seed", *(axis.key for axis in axes if axis.key.endswith("_seed"))):
        groups: dict[tuple[Any, ...], list[int]] = {}
        columns = map(rows.values, (key for key in keys if key != of_seed))
        for number, *values in zip(range(len(rows)), *columns, strict=True):
            groups.setdefault(tuple(values), []).append(number)
        seeds = rows.values(of_seed)
        several = [group for group in groups.values() if len({seeds[number] for number in group}) > 1]
        if several:
            return several[:MAX_GROUPS]
    return []
