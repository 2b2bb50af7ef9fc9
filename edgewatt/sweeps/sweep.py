"""Sweeps: what a sweep file expands to, and running its points into a store so that they can be stopped at any moment.

    base     a run configuration, or the path of one        exclude  points to leave out
    grid     key: [values], every combination               list     further points, each a mapping of key: value
    zip      key: [values], side by side

Keys are dotted (``dram.part``). The combinations of grid and zip, and the entries of list, are changes to the base;
``orderings``, ``strides`` and ``formats`` of each result expand as in a run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgewatt.config.document import ConfigError, Document, Mark, Place, printable, shown, undotted
from edgewatt.config.loading import apply_overrides, as_document, complete, read_with_paths
from edgewatt.config.points import Point, expand
from edgewatt.config.problems import validate
from edgewatt.config.sections import keys_of
from edgewatt.config.sweep_file import SweepConfig
from edgewatt.point.shared_passes import shared_passes
from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store
from edgewatt.sweeps.executors import Executor, make_executor
from traces.base.errors import InputError

MAX_POINTS = 1_000_000
_SHOWN_PROBLEMS = 40

Progress = Callable[[int, int | None, str], None]


@dataclass(frozen=True)
class SweepPlan:
    """The points of a sweep, each once, in the order written."""

    name: str
    points: list[Point]


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
        run = complete(document)
        return SweepPlan(run.name, _unique(expand(run)))
    apply_overrides(document, own)
    settings = validate(SweepConfig, document)
    base = _base(document, settings.base)
    points: list[Point] = []
    problems: set[tuple[Mark, str]] = set()
    for variant in _variants(document, settings):
        try:
            changed = base.copy()
            for place, part, mark in variant:
                changed.put(place, part, mark)
            apply_overrides(changed, every)
            points += expand(complete(changed))
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


# -- running ---------------------------------------------------------------------------------------------------------


@dataclass
class Results:
    """What a sweep left in its store. Records are sorted by hash, whatever order they were computed in.

    computed, reused: points computed now, points found finished. failed: hash -> why. damaged: records that were found
    damaged and computed again, by file.
    """

    store: Store
    points: list[Point]
    computed: int = 0
    reused: int = 0
    failed: dict[str, dict[str, Any]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    @property
    def records(self) -> list[Record]:
        """The finished points of this sweep, sorted by hash."""
        found = (self.store.get(name) for name in sorted({point.hash for point in self.points} - self.failed.keys()))
        return [record for record in found if record is not None]

    def __len__(self) -> int:
        return len(self.points)


def sweep(
    config: str | Path | Mapping[str, Any] | SweepPlan,
    *,
    results: str | Path,
    executor: str | Executor = "processes",
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    fsync: bool = False,
    overrides: Iterable[str] = (),
    progress: Progress | None = None,
) -> Results:
    """Compute every point of a sweep that the store `results` does not hold yet.

    executor: 'processes' (`workers` of them, default one per core), 'inline', 'dask' (a local cluster, or the one at
    `scheduler`). resume: False computes finished points again. retry_failed: points that failed before, too.
    A point that raises is recorded with its traceback and stops no other. Stopping at any moment, even by ``kill -9``,
    loses the points in flight at most. Raises ConfigError for a bad file, StoreError when the store cannot be written.
    """
    plan = config if isinstance(config, SweepPlan) else load_sweep(config, overrides)
    run_by = make_executor(executor, workers=workers, scheduler=scheduler) if isinstance(executor, str) else executor
    store = Store(results, fsync=fsync).open()
    store.sweep_leftovers()
    store.put_plan(plan.name, [point.hash for point in plan.points])
    found = Results(store, plan.points)
    todo = _todo(found, resume, retry_failed)
    report = progress or (lambda done, total, text: None)
    report(len(plan.points) - len(todo), len(plan.points), "")

    shared = shared_passes(plan.points) if todo else set()

    def tasks() -> Iterator[dict[str, Any]]:
        for point in leaders_first(todo):
            if resume and store.path(point.hash).exists() and str(store.path(point.hash)) not in found.damaged:
                found.reused += 1  # another sweep on this store finished it meanwhile
                continue
            yield make_task(point, stages=str(store.folder / "stages"), keep_pass=point.hash in shared)

    outcomes = run_by.run(tasks())
    try:
        for outcome in outcomes:
            if "failure" in outcome:
                found.failed[outcome["hash"]] = outcome["failure"]
                store.put_failure(outcome["hash"], outcome["failure"])
            else:
                store.put(Record(**outcome["record"]))
                found.computed += 1
            done = found.computed + found.reused + len(found.failed)
            report(done, len(plan.points), f"{len(found.failed)} failed" if found.failed else "")
    finally:
        close = getattr(outcomes, "close", None)
        if close is not None:
            close()  # ends the workers at once, also on Ctrl-C or a full disk
    return found


def _todo(found: Results, resume: bool, retry_failed: bool) -> list[Point]:
    if not resume:
        return found.points
    failed = {} if retry_failed else found.store.failed()
    todo = []
    for point in found.points:
        try:
            record = found.store.get(point.hash)
        except InputError:
            found.damaged.append(str(found.store.path(point.hash)))
            record = None
        if record is not None:
            found.reused += 1
        elif point.hash in failed:
            found.failed[point.hash] = failed[point.hash]
        else:
            todo.append(point)
    return todo


def make_task(point: Point, *, stages: str | None, keep_pass: bool = False) -> dict[str, Any]:
    """Return what an executor needs to compute a point, as JSON values."""
    return {
        "hash": point.hash,
        "config": point.config,
        "paths": point.paths,
        "name": point.name,
        "stages": stages,
        "keep_pass": keep_pass,
    }


def leaders_first(points: list[Point]) -> list[Point]:
    """Put one point of every distinct ordering first, so that workers do not wait for each other's orderings."""
    from edgewatt.point.work import ordering_identity

    leaders: list[Point] = []
    others: list[Point] = []
    seen: set[str] = set()
    for point in points:
        key = content_hash(ordering_identity(point.config)) if "ordering" in point.config else point.hash
        (others if key in seen else leaders).append(point)
        seen.add(key)
    return leaders + others
