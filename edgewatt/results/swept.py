"""What was swept: the configuration values in which points differ, each under a name that a person would use."""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgewatt.results.columns import ABSENT, Column, ColumnTable
from edgewatt.results.record import canonical_json
from edgewatt.results.record_rows import config_columns, distinct_labels, flat, onchip_label

_COVERED = {  # beginning of a configuration key -> the column of `row_of` that tells it already
    "ordering": "ordering", "stride": "stride", "format": "format", "encoder": "encoder", "timing": "timing",
    "seed": "seed", "measure": "measure", "fast_memory.size": "memory", "fast_memory.policy": "policy",
    "dram.part": "part", "network.files.0.name": "network", "network.generate.kind": "network", "trace": "trace",
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
        """Whether every value is a number."""
        return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values if v is not None)


class Configs:
    """Configurations by their leaves, a column a dotted key: many of them in little memory.

    Most sections are those of the configuration before: their columns stay behind until somebody asks.
    """

    def __init__(self, configs: Iterable[Mapping[str, Any]] = ()) -> None:
        self._leaves, self.onchip = ColumnTable(), ColumnTable()
        self._last: dict[
            str, tuple[Any, bytes, list[Column]]
        ] = {}  # of each section its value, so written, and columns
        self._known: dict[tuple[str, bytes], dict[str, Any]] = {}
        for config in configs:
            self.append(config)

    def __len__(self) -> int:
        return len(self._leaves)

    @property
    def leaves(self) -> ColumnTable:
        """The columns, a row a configuration."""
        for section in self._last:
            self._catch_up(section)
        return self._leaves

    def append(self, config: Mapping[str, Any]) -> None:
        """Add a configuration. A section that is the same object as in the one before it has not changed."""
        changed: dict[str, Any] = {}
        parts: list[tuple[str, bytes, dict[str, Any]]] = []
        for section, value in config.items():
            last = self._last.get(section)
            if last is not None and last[0] is value:
                continue
            written = marshal.dumps(value, 2)
            if last is None or last[1] != written:
                self._catch_up(section)
                parts.append((section, written, self._flat(section, written, value)))
                changed |= parts[-1][2]
            else:
                self._last[section] = value, *last[1:]
        if len(self._last) + len(parts) > len(config):
            for section in self._last.keys() - config.keys():
                self._catch_up(section)
                del self._last[section]
        self._leaves.append(changed)
        for section, written, leaves in parts:
            self._last[section] = config[section], written, [self._leaves.columns[key] for key in leaves]
        self.onchip.append({"label": onchip_label(config)} if "caches" in config else {})

    def _flat(self, section: str, written: bytes, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict | list):
            return {section: value}
        name = (section, written)  # the sections of one sweep are few
        if name not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[name] = flat(value, section)
        return self._known[name]

    def _catch_up(self, section: str) -> None:
        """Let the columns of a section say that it stayed as it was up to the last row."""
        for column in self._last[section][2] if section in self._last else ():
            column.repeat(len(self._leaves) - len(column))

    def only(self, rows: Sequence[int]) -> Configs:
        """Return some of them."""
        chosen = Configs()
        chosen._leaves, chosen.onchip = self.leaves.only(rows), self.onchip.only(rows)
        return chosen

    def varying(self) -> list[str]:
        """Return the keys of the leaves in which any two differ."""
        return [key for key in self.leaves.columns if len(self.leaves.distinct(key)) > 1]


_MOST_KNOWN = 4096


def swept_axes(configs: Configs | Iterable[Mapping[str, Any]]) -> list[Axis]:
    """Return what varies between configurations and has no column of its own in `row_of`, in their order.

    A value that only some points have (the ways of a cache beside no cache) counts where those that have it differ;
    where that leaves nothing, the section itself is the axis.
    """
    configs = configs if isinstance(configs, Configs) else Configs(configs)
    leaves = configs.leaves
    axes: list[Axis] = []
    half: dict[str, list[str]] = {}
    for key in configs.varying():
        if any(key == begin or key.startswith(f"{begin}.") for begin in _COVERED):
            continue
        if key.endswith("sha256"):
            if _tells_more(leaves, key):
                names = [None if v is None else str(v)[:8] for v in leaves.values(key)]
                axes.append(Axis(column_name(key), title_of(key).replace("sha256", "content"), names))
            continue
        distinct = leaves.distinct(key)
        if len(distinct) - (ABSENT in distinct) > 1:
            column = leaves.columns[key]
            values = [None if v is ABSENT else _plain(v) for v in (column[k] for k in range(len(leaves)))]
            axes.append(Axis(column_name(key), title_of(key), values))
        else:
            half.setdefault(_section(key), []).append(key)
    for section in half:
        if section in ("caches", "scratchpad"):
            labels = list(configs.onchip.values("label"))
            if len(set(labels)) > 1 and all(axis.key != "onchip" for axis in axes):
                axes.append(Axis("onchip", "on-chip memory", labels))
        elif not any(axis.key.startswith(column_name(section)) for axis in axes):
            labels = [_labelled(v, section) for v in leaves]
            if len(set(labels)) > 1:
                axes.append(Axis(column_name(section), title_of(section), labels))
    return axes


def rows_with_axes(rows: Sequence[dict[str, Any]], configs: Configs | Iterable[Mapping[str, Any]]) -> list[Axis]:
    """Put what was swept into rows of `row_of`, a column an axis, and return the axes."""
    axes = swept_axes(configs)
    for axis in axes:
        if isinstance(rows, ColumnTable):
            rows.put(axis.key, (ABSENT if value is None else value for value in axis.values))
            continue
        for row, value in zip(rows, axis.values, strict=True):
            if value is not None:
                row[axis.key] = value
    return axes


def point_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each point: the settings in which it differs from the others."""
    rows = [{"hash": "", **config_columns(config)} for config in configs]
    axes = rows_with_axes(rows, configs)
    return distinct_labels(rows, {axis.key: axis.title for axis in axes})


def _tells_more(leaves: ColumnTable, key: str) -> bool:
    """Return whether points with one name, and all else in its section alike, differ in the content of a file."""
    section = key.partition(".")[0]
    others = [other for other in leaves.columns if other.startswith(section) and other != key]
    contents: dict[int, Any] = {}
    for content, *values in zip(leaves.values(key), *map(leaves.values, others), strict=True):
        rest = hash(canonical_json(values))  # the text itself would be kept for every point
        if contents.setdefault(rest, content) != content:
            return True
    return False


def column_name(key: str) -> str:
    """Return a dotted key as a name without dots, which charts would read as a path."""
    return re.sub(r"\W+", "_", key)


def title_of(key: str) -> str:
    """Return a configuration key in words: ``caches.0.size_bytes`` is 'L1 size (bytes)'."""
    words = re.sub(r"^caches\.(\d+)\.?", lambda match: f"L{int(match[1]) + 1} ", key)
    for long, short in (("dram.controller.", "controller "), ("network.generate.", ""), ("network.", "")):
        if words.removeprefix(long) in _COVERED:  # a point has a seed, and a format, of its own
            short = "network "
        words = words.replace(long, short)
    name, _, unit = words.rpartition("_")
    if name and unit in _UNITS:
        words = f"{name} ({_UNITS[unit]})"
    return re.sub(r"[._]+", " ", words).strip()


def _section(key: str) -> str:
    """Return the part of the configuration that a key stands or falls with."""
    parts = key.split(".")
    return parts[0] if parts[0] in ("caches", "scratchpad") else ".".join(parts[:2])


def _labelled(leaves: Mapping[str, Any], section: str) -> str:
    said = [
        f"{title_of(key.removeprefix(section + '.'))} {value}"
        for key, value in leaves.items()
        if key.startswith(f"{section}.") and value is not None
    ]
    return ", ".join(said)[:60] or "none"


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else canonical_json(value)
