"""What was swept: the configuration values in which points differ, each under a name that a person would use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgewatt.results.record import canonical_json
from edgewatt.results.rows import config_columns, distinct_labels, flat, onchip_label

_COVERED = {  # beginning of a configuration key -> the column of `row_of` that tells it already
    "ordering": "ordering", "stride": "stride", "format": "format", "encoder": "encoder", "timing": "timing",
    "seed": "seed", "measure": "measure", "fast_memory.size": "memory", "fast_memory.policy": "policy",
    "dram.part": "part", "network.files.0.name": "network", "network.generate.kind": "network", "trace": "trace",
}  # fmt: skip
_UNITS = {"bytes": "bytes", "bits": "bits", "ns": "ns", "cycles": "cycles", "s": "s", "mts": "MT/s", "v": "V"}
_ABSENT = object()


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


def varying_keys(configs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each configuration, its leaves in the sections in which any two differ, by dotted key."""
    sections = dict.fromkeys(key for config in configs for key in config)
    seen = {key: {canonical_json(config.get(key)) for config in configs} for key in sections}
    differing = [key for key, values in seen.items() if len(values) > 1]
    known: dict[tuple[str, str], dict[str, Any]] = {}
    found = []
    for config in configs:
        leaves: dict[str, Any] = {}
        for key in differing:
            if key in config:
                name = (key, canonical_json(config[key]))
                if name not in known:
                    known[name] = flat(config[key], key)
                leaves |= known[name]
        found.append(leaves)
    return found


def swept_axes(configs: Sequence[Mapping[str, Any]]) -> list[Axis]:
    """Return what varies between configurations and has no column of its own in `row_of`, in their order.

    A value that only some points have (the ways of a cache beside no cache) counts where those that have it differ;
    where that leaves nothing, the section itself is the axis.
    """
    leaves = varying_keys(configs)
    keys = dict.fromkeys(key for values in leaves for key in values)
    axes: list[Axis] = []
    half: dict[str, list[str]] = {}
    for key in keys:
        if any(key == begin or key.startswith(f"{begin}.") for begin in _COVERED):
            continue
        if key.endswith("sha256"):
            if _tells_more(leaves, key):
                names = [str(v[key])[:8] if key in v else None for v in leaves]
                axes.append(Axis(column_name(key), title_of(key).replace("sha256", "content"), names))
            continue
        values = [v.get(key, _ABSENT) for v in leaves]
        distinct = {canonical_json(v) for v in values if v is not _ABSENT}
        if len(distinct) > 1:
            axes.append(Axis(column_name(key), title_of(key), [None if v is _ABSENT else _plain(v) for v in values]))
        elif any(v is _ABSENT for v in values):
            half.setdefault(_section(key), []).append(key)
    for section in half:
        if section in ("caches", "scratchpad"):
            labels = [onchip_label(config) if "caches" in config else None for config in configs]
            if len(set(labels)) > 1 and all(axis.key != "onchip" for axis in axes):
                axes.append(Axis("onchip", "on-chip memory", labels))
        elif not any(axis.key.startswith(column_name(section)) for axis in axes):
            labels = [_labelled(v, section) for v in leaves]
            if len(set(labels)) > 1:
                axes.append(Axis(column_name(section), title_of(section), labels))
    return axes


def rows_with_axes(rows: Sequence[dict[str, Any]], configs: Sequence[Mapping[str, Any]]) -> list[Axis]:
    """Put what was swept into rows of `row_of`, a column an axis, and return the axes."""
    axes = swept_axes(configs)
    for axis in axes:
        for row, value in zip(rows, axis.values, strict=True):
            if value is not None:
                row[axis.key] = value
    return axes


def point_names(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each point: the settings in which it differs from the others."""
    rows = [{"hash": "", **config_columns(config)} for config in configs]
    axes = rows_with_axes(rows, configs)
    return distinct_labels(rows, {axis.key: axis.title for axis in axes})


def _tells_more(leaves: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Return whether points with one name, and all else in its section alike, differ in the content of a file."""
    section = key.partition(".")[0]
    contents: dict[str, Any] = {}
    for values in leaves:
        others = canonical_json({k: v for k, v in values.items() if k.startswith(section) and k != key})
        if contents.setdefault(others, values.get(key)) != values.get(key):
            return True
    return False


def column_name(key: str) -> str:
    """Return a dotted key as a name without dots, which charts would read as a path."""
    return re.sub(r"\W+", "_", key)


def title_of(key: str) -> str:
    """Return a configuration key in words: ``caches.0.size_bytes`` is 'L1 size (bytes)'."""
    words = re.sub(r"^caches\.(\d+)\.?", lambda found: f"L{int(found[1]) + 1} ", key)
    for long, short in (("dram.controller.", "controller "), ("network.generate.", ""), ("network.", "")):
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
