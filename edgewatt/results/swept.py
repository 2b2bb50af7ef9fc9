"""What was swept: the configuration values in which points differ, each under a name that a person would use."""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgewatt.results.record import canonical_json
from edgewatt.results.record_rows import Rows, Table, config_columns, distinct_labels, flat, onchip_label, put_column

_COVERED = {  # beginning of a configuration key -> the column of `row_of` that tells it already
    "ordering": "ordering", "stride": "stride", "format": "format", "encoder": "encoder", "timing": "timing",
    "seed": "seed", "measure": "measure", "fast_memory.size": "memory", "fast_memory.policy": "policy",
    "dram.part": "part", "network.files.0.name": "network", "network.generate.kind": "network", "trace": "trace",
    "search.objective": "ordering",
}  # fmt: skip
_UNITS = {"bytes": "bytes", "bits": "bits", "ns": "ns", "cycles": "cycles", "s": "s", "mts": "MT/s", "v": "V"}


@dataclass(frozen=True)
class Axis:
    """One value that varies. key: its column in the rows; title: its name; values: one a record, None where absent."""

    key: str
    title: str
    values: list[Any]

    @property
    def numeric(self) -> bool:
        return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values if v is not None)


ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "absent"})()
_MOST_KNOWN = 4096


class Configs(Table):
    """Configurations of many records: sections that are alike are one object, so that memory holds each once."""

    absent = ABSENT

    def __init__(self, configs: Iterable[Mapping[str, Any]] = ()) -> None:
        self._known: dict[tuple[str, bytes], Any] = {}
        super().__init__(configs)

    def _kept(self, key: str, column: list[Any], value: Any) -> Any:
        if not isinstance(value, dict | list) or (column and column[-1] is value):
            return value
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        return self._known.setdefault((key, marshal.dumps(value, 2)), value)

    def only(self, rows: Sequence[int]) -> Configs:
        chosen = Configs()
        chosen._size = len(rows)
        chosen.columns = {section: [values[k] for k in rows] for section, values in self.columns.items()}
        return chosen

    def leaves(self, section: str) -> list[Mapping[str, Any]]:
        """Return of each configuration dotted key -> value of a section; alike sections give one mapping."""
        flats: dict[int, Mapping[str, Any]] = {id(ABSENT): {}}
        of = self.values(section)
        return [flats[id(v)] if id(v) in flats else flats.setdefault(id(v), flat(v, section)) for v in of]

    def leaf(self, key: str) -> list[Any]:
        values = self.columns.get(key, ())
        if values and not any(isinstance(value, dict | list) for value in values):
            return list(values)
        return [leaves.get(key, ABSENT) for leaves in self.leaves(key.partition(".")[0])]

    def varying(self) -> list[str]:
        found: list[tuple[int, int, int, str]] = []
        for rank, (section, given) in enumerate(self.columns.items()):
            if not any(isinstance(value, dict | list) for value in given):
                if len({_comparable(value) for value in given}) > 1:
                    found.append((next(k for k, value in enumerate(given) if value is not ABSENT), rank, 0, section))
                continue
            of = self.leaves(section)
            first: dict[int, int] = {}
            for row, leaves in enumerate(of):
                first.setdefault(id(leaves), row)
            if len(first) == 1:
                continue
            keys: dict[str, tuple[int, int]] = {}
            for row in first.values():
                for position, key in enumerate(of[row]):
                    keys.setdefault(key, (row, position))
            values = {key: {_comparable(of[row].get(key, ABSENT)) for row in first.values()} for key in keys}
            found += [(row, rank, position, key) for key, (row, position) in keys.items() if len(values[key]) > 1]
        return [key for *_, key in sorted(found)]

    def onchip(self) -> list[str | None]:
        return [onchip_label(config) if "caches" in config else None for config in self]


def _comparable(value: Any) -> Any:
    """Return what tells a leaf from others: 1, 1.0 and true are alike, as values compare."""
    return canonical_json(value) if isinstance(value, list | dict) else (type(value) is bool, value)


def swept_axes(configs: Configs | Iterable[Mapping[str, Any]]) -> list[Axis]:
    """Return what varies between configurations and has no column of its own in `row_of`, in their order.

    A value that only some points have (the ways of a cache beside no cache) counts where those that have it differ;
    where that leaves nothing, the section itself is the axis.
    """
    configs = configs if isinstance(configs, Configs) else Configs(configs)
    axes: list[Axis] = []
    half: dict[str, list[str]] = {}
    for key in configs.varying():
        if any(key == begin or key.startswith(f"{begin}.") for begin in (*_COVERED, "plugins")):
            continue  # plugins: which distributions made the members that other columns name
        values = configs.leaf(key)
        if key.endswith("sha256"):
            if _tells_more(configs, key):
                names = [None if v is ABSENT or v is None else str(v)[:8] for v in values]
                axes.append(Axis(column_name(key), title_of(key).replace("sha256", "content"), names))
        elif len({_comparable(v) for v in values if v is not ABSENT}) > 1:
            axes.append(Axis(column_name(key), title_of(key), [None if v is ABSENT else _plain(v) for v in values]))
        else:
            parts = key.split(".")
            section = parts[0] if parts[0] in ("caches", "scratchpad") else ".".join(parts[:2])
            half.setdefault(section, []).append(key)
    for section in half:
        onchip = section in ("caches", "scratchpad")
        if onchip and any(axis.key == "onchip" for axis in axes):
            continue
        if not onchip and any(axis.key.startswith(column_name(section)) for axis in axes):
            continue
        labels = configs.onchip() if onchip else _labels(configs, section)
        if len(set(labels)) > 1:
            name, title = ("onchip", "on-chip memory") if onchip else (column_name(section), title_of(section))
            axes.append(Axis(name, title, labels))
    return axes


def rows_with_axes(rows: Rows, configs: Configs | Iterable[Mapping[str, Any]]) -> list[Axis]:
    axes = swept_axes(configs)
    for axis in axes:
        put_column(rows, axis.key, axis.values)
    return axes


def point_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [{"hash": "", **config_columns(config)} for config in configs]
    axes = rows_with_axes(rows, configs)
    return distinct_labels(rows, {axis.key: axis.title for axis in axes})


def _tells_more(configs: Configs, key: str) -> bool:
    contents: dict[str, Any] = {}
    for leaves in {id(leaves): leaves for leaves in configs.leaves(key.partition(".")[0])}.values():
        rest = canonical_json({k: v for k, v in leaves.items() if k != key and v is not None})
        content = leaves.get(key)
        if contents.setdefault(rest, content) != content:
            return True
    return False


def column_name(key: str) -> str:
    return "billed_idle" if key == "idle" else re.sub(r"\W+", "_", key)  # `idle` is what it came to


def title_of(key: str) -> str:
    words = re.sub(r"^caches\.(\d+)\.?", lambda match: f"L{int(match[1]) + 1} ", key)
    for long, short in (("dram.controller.", "controller "), ("network.generate.", ""), ("network.", "")):
        if words.removeprefix(long) in _COVERED:  # a point has a seed, and a format, of its own
            short = "network "
        words = words.replace(long, short)
    name, _, unit = words.rpartition("_")
    if name and unit in _UNITS:
        words = f"{name} ({_UNITS[unit]})"
    return re.sub(r"[._]+", " ", words).strip()


def _labels(configs: Configs, section: str) -> list[str]:
    words: dict[int, str] = {}
    of = configs.leaves(section.partition(".")[0])
    usual = "default" if any(leaves.get(section) is not None for leaves in of) else "none"  # a value, not a section
    for leaves in of:
        if id(leaves) not in words:
            parts = [
                f"{title_of(key.removeprefix(section + '.'))} {value}" if key != section else str(value)
                for key, value in leaves.items()
                if (key == section or key.startswith(f"{section}.")) and value is not None
            ]
            words[id(leaves)] = ", ".join(parts)[:60] or usual
    return [words[id(leaves)] for leaves in of]


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else canonical_json(value)
