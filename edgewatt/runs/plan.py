"""What a sweep file expands to.

    base     a run configuration, or the path of one        exclude  points to leave out
    grid     key: [values], every combination               list     further points, each a mapping of key: value
    zip      key: [values], side by side

Keys are dotted (``dram.part``). The combinations of grid and zip, and the entries of list, are changes to the base;
``orderings``, ``strides`` and ``formats`` of each result expand as in a run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewatt.config.loading import apply_overrides, as_document, read_with_paths
from edgewatt.config.models import RunConfig
from edgewatt.config.problems import KnownSections, validate
from edgewatt.config.sections import keys_of
from edgewatt.config.sweep_file import SweepConfig
from edgewatt.runs.expand import points_of
from edgewatt.runs.model import Point
from traces.base.document import ConfigError, Document, Mark, Place, undotted
from traces.base.errors import printable, shown
from traces.base.files import need_regular
from traces.base.shown import Shown

MAX_POINTS = 1_000_000
_SHOWN_PROBLEMS = 40


@dataclass(frozen=True)
class SweepPlan(Shown):
    """The points of a sweep, each once, in the order written."""

    name: str
    points: list[Point]

    __repr__ = Shown.__repr__

    def _facts(self) -> dict[str, object]:
        return {"name": self.name, "points": len(self.points)}


def load_sweep(config: str | Path | Mapping[str, Any], overrides: Iterable[str] = ()) -> SweepPlan:
    """Read a sweep file (or a run file: its small grid is a sweep too) and expand it.

    Raises ConfigError with every problem at its file, line and column.
    """
    return load_sweep_document(as_document(config), overrides)


def load_sweep_document(document: Document, overrides: Iterable[str] = ()) -> SweepPlan:
    """Expand a sweep that has been read already."""
    own = [
        text
        for text in overrides
        if text.split("=")[0].split(".")[0] in keys_of(SweepConfig) and "base" in document.data
    ]
    every = [text for text in overrides if text not in own]
    if "base" not in document.data:
        apply_overrides(document, every)
        run = points_of(document)
        return SweepPlan(run[0].name, _unique(run))
    apply_overrides(document, own)
    settings = validate(SweepConfig, document)
    base = _base(document, settings.base)
    points: list[Point] = []
    problems: set[tuple[Mark, str]] = set()
    known = KnownSections(RunConfig)
    for variant in _variants(document, settings):
        try:
            changed = base.copy()
            for place, part, mark in variant:
                changed.put(place, part, mark)
            apply_overrides(changed, every)
            points += points_of(changed, known)
        except ConfigError as error:
            problems.update(error.problems)
            if len(problems) > _SHOWN_PROBLEMS:
                break
        if len(points) > MAX_POINTS:
            raise document.fail((), f"more than {MAX_POINTS} points: cut the grid into several sweeps")
    if problems:
        raise ConfigError(problems)
    points = _without(points, document, settings)
    if not points:
        raise document.fail(("exclude",), "every point is excluded", key=True)
    return SweepPlan(settings.name or base.data.get("name", ""), _unique(points))


def _base(document: Document, base: Any) -> Document:
    if isinstance(base, str):
        if not base.endswith((".yaml", ".yml")):
            raise document.fail(("base",), f"expected a mapping or the path of a .yaml file, not {shown(base)}")
        need_regular(base)
        try:
            return read_with_paths(base)
        except ConfigError as error:
            if not Path(base).exists():
                raise document.fail(("base",), f"no such file: {printable(base)}") from None
            raise error
    if not isinstance(base, dict):
        raise document.fail(("base",), "expected a mapping or the path of a .yaml file")
    return document.at(("base",))


Change = tuple[Place, Document, Mark]


def _variants(document: Document, settings: SweepConfig) -> Iterator[list[Change]]:
    def change(place: Place, key: str) -> Change:
        return undotted(key), document.at(place), document.mark(place)

    lengths = {key: len(values) for key, values in settings.side_by_side.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{key} has {n}" for key, n in lengths.items())
        raise document.fail(
            ("zip",), f"lists under 'zip' go side by side and must be equally long, but {text}", key=True
        )
    axes = [[[change(("grid", key, i), key)] for i in range(len(values))] for key, values in settings.grid.items()]
    if lengths:
        axes.append(
            [
                [change(("zip", key, i), key) for key in settings.side_by_side]
                for i in range(next(iter(lengths.values())))
            ]
        )
    total = 1
    for axis in axes:
        total *= len(axis)
    if total > MAX_POINTS:
        raise document.fail(("grid",), f"{total} combinations: cut the grid into several sweeps", key=True)
    if axes or not settings.further:
        for combination in itertools.product(*axes):
            yield [item for part in combination for item in part]
    for i, entry in enumerate(settings.further):
        yield [change(("list", i, key), key) for key in entry]


def _without(points: list[Point], document: Document, settings: SweepConfig) -> list[Point]:
    used = [False] * len(settings.exclude)
    kept = []
    for point in points:
        hits = [
            i for i, rule in enumerate(settings.exclude) if all(_agrees(point.config, k, v) for k, v in rule.items())
        ]
        for i in hits:
            used[i] = True
        if not hits:
            kept.append(point)
    for i, hit in enumerate(used):
        if not hit:
            raise document.fail(("exclude", i), "leaves out nothing: no point has these values")
    return kept


_SINGULAR = {"orderings": "ordering", "strides": "stride", "formats": "format"}


def _agrees(config: Mapping[str, Any], key: str, wanted: Any) -> bool:
    """Return whether a point's configuration has a value; kinds may be named alone, mappings given in part."""
    value: Any = config
    for step in undotted(key):
        step = _SINGULAR.get(step, step) if isinstance(step, str) else step
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return all(item in value and value[item] == expected for item, expected in wanted.items())
    if isinstance(value, Mapping):
        return wanted in (value.get("kind"), value.get("stride"))
    return bool(value == wanted)


def _unique(points: list[Point]) -> list[Point]:
    return list({point.hash: point for point in reversed(points)}.values())[::-1]
