"""What is kept of records as they pass by: curves, wires, and what a page says of the records as such."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from edgewatt._version import COUNTS_VERSION
from edgewatt.results.columns import ColumnTable
from edgewatt.results.record import Record, canonical_json
from edgewatt.results.record_rows import flat

Row = dict[str, Any]

MAX_WIRE_POINTS = 24
MAX_CURVES = 24
MOST_RECORDS = 1 << 20
"""Characters of whole records that a page carries."""
MOST_VALUES = 50
"""Values of a setting that a page lists."""


class Curves:
    """I/Os against memory size, and searches against their work.

    I/O curves are from each record's own, and across records that differ in their memory. Tuple orders move few I/Os:
    the first stride stands for all.
    """

    def __init__(self) -> None:
        self._stride: Any = None
        self._marks: dict[tuple[Any, ...], dict[Any, Row]] = {}
        self._order: dict[str, int] = {}
        self._searches: dict[tuple[Any, str], list[Row]] = {}

    def take(self, record: Record, row: Row) -> None:
        """Look at a record and its row."""
        if "io" in row:
            self._stride = row["stride"] if self._stride is None else self._stride
            if row["stride"] == self._stride:
                self._take_io(record, row)
        curve = record.results.get("ordering", {}).get("curve") or []
        if len(curve) >= 2 and len(self._searches) < MAX_CURVES:
            about = f"M {row['memory']}, {row['policy']}, seed {row['seed']}"
            self._searches[row["network"], f"{row['ordering']}, {about}"] = [
                {"id": row["id"], "ordering": row["ordering"], "about": about, "network": row["network"],
                 "work": max(1, work), "objective": objective}
                for work, objective in curve
            ]  # fmt: skip

    def _take_io(self, record: Record, row: Row) -> None:
        place = self._order.setdefault(row["ordering"], len(self._order))
        series = (row["network"], place, row["policy"])
        if series not in self._marks and len(self._marks) >= MAX_CURVES:
            last = max(self._marks)
            if series > last:
                return
            del self._marks[last]
        marks = self._marks.setdefault(series, {})
        for size, reads, writes in record.results["io_curve"] or [[row["memory"], row["reads"], row["writes"]]]:
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
        """Return a mark for each memory size of the first MAX_CURVES curves. renamed: orderings under shorter names."""
        short = renamed.get("ordering", {})
        return [
            {**marks[size], "series": short.get(marks[size]["series"], marks[size]["series"])}
            for _, marks in sorted(self._marks.items())
            for size in sorted(marks)
        ]

    def convergence_marks(self, renamed: Mapping[str, Mapping[str, str]]) -> list[Row]:
        """Return a mark for each step of the first MAX_CURVES searches. renamed: orderings under shorter names."""
        short = renamed.get("ordering", {})
        return [
            {"id": m["id"], "series": f"{short.get(m['ordering'], m['ordering'])}, {m['about']}",
             "network": m["network"], "work": m["work"], "objective": m["objective"]}
            for curve in self._searches.values() for m in curve
        ]  # fmt: skip


class WireMarks:
    """Toggles and ones of every wire; of each record, what tells its wires from others' is kept."""

    def __init__(self) -> None:
        self._seen = ColumnTable()

    def take(self, record: Record, row: Row) -> None:
        """Look at a record and its row."""
        wires = record.results["bus"]["wires"] if "energy_pj" in row else None
        digest = blake2b(canonical_json(wires).encode(), digest_size=6).digest() if wires else b""
        self._seen.append({"wires": int.from_bytes(digest, "big")})

    def marks(self, order: Sequence[int], records: Sequence[Record], rows: ColumnTable) -> list[Row]:
        """Return the marks of records in this order, up to MAX_WIRE_POINTS whose wires differ.

        Points that differ only in what no wire sees (the I/O model's memory) look the same.
        """
        marks: list[Row] = []
        shown: set[int] = set()
        if not order:
            return marks
        digests = self._seen.columns["wires"]
        for i in order:
            if not digests[i] or digests[i] in shown:
                continue
            shown.add(digests[i])
            if len(shown) > MAX_WIRE_POINTS:
                break
            bus = records[i].results["bus"]
            beats = max(1, bus["beats"])
            for group, counts in bus["wires"].items():
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


class About:
    """What all records share and what varies, how they were made, and the records themselves where they are few."""

    def __init__(self) -> None:
        self.count = self.older = 0
        self.whole: dict[str, Any] = {}
        self._length = 0
        self._duration_s = 0.0
        self._same: dict[str, Any] = {}
        self._first: dict[str, Any] = {}
        self._values: dict[str, dict[str, None]] = {}  # of each section, the first few as JSON

    def take(self, record: Record, row: Row) -> None:
        """Look at a record."""
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
            parts = [_short(part) for part in (record.config, record.results)]
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
        """Return the sections that all points share, and the values of the others."""
        common = {key: value for key, value in self._first.items() if key not in self._values}
        varying = {
            key: [json.loads(value) for value in list(values)[:MOST_VALUES]]
            + (["..."] if len(values) > MOST_VALUES else [])
            for key, values in sorted(self._values.items())
        }
        return {"all points": common, "varying": varying} if varying else common

    def provenance(self) -> dict[str, Any]:
        """Return what all records say of how they were made, and the time they took together."""
        return {**self._same, "computing time of all points (s)": round(self._duration_s, 3)}


def _short(part: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in flat(part).items() if v is not None and not (isinstance(v, list) and len(v) > 8)}


def _as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
