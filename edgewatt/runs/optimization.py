"""Searching a sweep's space for the Pareto front, under constraints: exhaustively where it is small, else with Optuna.

A sweep file with one more section:

    optimize: {objectives: [energy_pj, time_ns], constraints: ["time_ns <= 1.01 x baseline"], trials: 100, sampler: tpe}

The space is the sweep's `grid` and the lists of its base (orderings, strides, formats). Every point lands in the store,
so a search that is stopped goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewatt.config.loading import as_document, changes_of, validate
from edgewatt.config.models import OptimizeSection
from edgewatt.results.comparison import pareto_front
from edgewatt.results.record import Record
from edgewatt.results.record_rows import METRICS, metrics_of, per_inference, row_of
from edgewatt.results.store import Store
from edgewatt.runs.model import Point
from edgewatt.runs.plan import SweepPlan, load_sweep_document, warn_of_ignored
from edgewatt.runs.sweep import sweep
from traces.base.document import Document
from traces.base.errors import InputError, MissingExtraError, unknown_name
from traces.base.progress import Progress

_GAINS = ("accuracy", "agreement")  # columns that may be bounded, of which more is better
_CONSTRAINT = re.compile(r"(\w+)\s*(<=|>=)\s*([0-9.eE+-]+)\s*(?:([x*])\s*baseline|(%)\s*of\s*baseline)?")


@dataclass(frozen=True)
class Constraint:
    text: str
    column: str
    at_most: bool
    limit: float
    relative: bool

    def violation(self, row: Mapping[str, Any], baseline: Mapping[str, Any]) -> float:
        limit = self.limit * _cost(baseline, self.column) if self.relative else self.limit
        return _cost(row, self.column) - limit if self.at_most else limit - _cost(row, self.column)


def _cost(row: Mapping[str, Any], name: str) -> float:
    if row[name] is None:
        lacks = {"accuracy": "a network without labels", "area_um2": "a technology without areas"}
        why = lacks.get(name, "an address-only trace")
        raise InputError(f"{why} has no {name}: set optimize.objectives and constraints without it")
    return float(row[name])


@dataclass(frozen=True)
class Front:
    """Records of the Pareto front by the first objective, all records tried, the baseline, how it was made."""

    front: list[Record]
    tried: list[Record]
    baseline: Record
    text: str

    def as_json(self) -> dict[str, Any]:
        rows = [row_of(record) for record in self.front]
        return {"text": self.text, "baseline": row_of(self.baseline), "front": rows, "tried": len(self.tried)}


def parse_constraint(text: str) -> Constraint:
    """Read 'COLUMN <= NUMBER', 'COLUMN <= FACTOR x baseline' or '... % of baseline'. Raises InputError."""
    match = _CONSTRAINT.fullmatch(" ".join(text.replace("×", "x").split()))
    try:
        if match is None:
            raise ValueError
        limit = float(match[3]) / (100.0 if match[5] else 1.0)
    except ValueError:
        raise InputError(
            f"cannot read the constraint {text!r}: write 'time_ns <= 1.01 x baseline' or 'io <= 90000'"
        ) from None
    column = {"time": "time_ns", "energy": "energy_pj", "area": "area_um2"}.get(match[1], match[1])
    if column not in (*METRICS, *_GAINS):
        raise unknown_name("column", match[1], (*METRICS, *_GAINS))
    return Constraint(text, column, match[2] == "<=", limit, bool(match[4] or match[5]))


def optimize(
    config: str | Path | Mapping[str, Any],
    *,
    results: str | Path,
    overrides: Iterable[str] = (),
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Front:
    """Search for the Pareto front of a sweep file's space and return it; every point tried is in the store `results`.

    config: a file, a shipped name or a mapping. overrides: KEY=VALUE texts. executor: as of `sweep`. The first point of
    the space is the baseline. Raises ConfigError for a bad file, MissingExtraError where the space
    is too large for `trials` and Optuna is absent.
    """
    document = as_document(config)
    plan, section = _read(document, overrides)
    for name in section.objectives:
        if name not in METRICS:
            raise document.fail(("optimize", "objectives"), str(unknown_name("column", name, METRICS)))
    try:
        constraints = [parse_constraint(text) for text in section.constraints]
    except InputError as error:
        raise document.fail(("optimize", "constraints"), str(error)) from None
    known = [name for name in METRICS if all(name in metrics_of(point.config) for point in plan.points)]
    known += _GAINS if all(point.measure.accuracy for point in plan.points) else ()
    for name in [*section.objectives, *(constraint.column for constraint in constraints)]:
        if name not in known:
            raise InputError(
                f"points of this file have no {name} (they have {', '.join(known)}): set optimize.objectives"
                + (", or accuracy: true" if name in ("accuracy_loss", *_GAINS) else "")
            )

    def compute(points: list[Point]) -> dict[str, Record]:
        part = SweepPlan(plan.name, points)
        swept = sweep(part, results=results, executor=executor, workers=workers)
        if plan.points[0].hash in swept.failed:
            raise InputError(f"the baseline failed: {swept.failed[plan.points[0].hash].get('error')}")
        return {record.hash: record for record in swept.records}

    space = plan.points
    warn_of_ignored(space)
    if len(space) <= section.trials:
        tried = compute(space)
        text = f"all {len(space)} points of the space computed"
    else:
        tried = _search(space, section, constraints, compute, progress)
        text = f"{len(tried)} of {len(space)} points tried ({section.sampler}, seed {section.seed})"
    tried = {point.hash: tried[point.hash] for point in space if point.hash in tried}
    baseline = tried[space[0].hash]
    front = feasible_front(list(tried.values()), baseline, section.objectives, constraints)
    if constraints:
        text += "; " + ", ".join(section.constraints)
    Store(results).put_plan(plan.name, list(tried))  # in the plan's order, whose first point is what others are against
    return Front(front, list(tried.values()), baseline, text)


def feasible_front(
    records: list[Record], baseline: Record, objectives: list[str], constraints: list[Constraint]
) -> list[Record]:
    base = per_inference(row_of(baseline))
    rows = [(record, per_inference(row_of(record))) for record in sorted(records, key=lambda r: r.hash)]
    kept = [(record, row) for record, row in rows if all(c.violation(row, base) <= 0 for c in constraints)]
    return [kept[i][0] for i in pareto_front([[_cost(row, name) for name in objectives] for _, row in kept])]


def _read(document: Document, overrides: Iterable[str]) -> tuple[SweepPlan, OptimizeSection]:
    mine = [text for text in overrides if text.startswith("optimize.")]
    document.apply(changes_of(mine, document))
    section = OptimizeSection()
    if "optimize" in document.data:
        section = validate(OptimizeSection, document.at(("optimize",)))
    return load_sweep_document(document, [text for text in overrides if text not in mine]), section


def _search(
    space: list[Point],
    section: OptimizeSection,
    constraints: list[Constraint],
    compute: Callable[[list[Point]], dict[str, Record]],
    progress: Progress | None,
) -> dict[str, Record]:
    """Let Optuna propose points in batches; the axes are the configuration values that vary over the space."""
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("optuna", "optimize") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    axes, index = _axes(space)
    names = list(axes)
    tried = compute([space[0]])
    base = per_inference(row_of(tried[space[0].hash]))

    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=section.seed, n_startup_trials=min(10, section.trials)),
        "nsga2": lambda: optuna.samplers.NSGAIISampler(seed=section.seed),
        "random": lambda: optuna.samplers.RandomSampler(seed=section.seed),
    }
    study = optuna.create_study(sampler=samplers[section.sampler](), directions=["minimize"] * len(section.objectives))
    misses = 0
    while len(tried) < section.trials and misses < 20:
        trials, points = [], []
        for _ in range(section.batch):
            trial = study.ask()
            choice = tuple(trial.suggest_categorical(name, list(range(len(axes[name])))) for name in names)
            trials.append((trial, index.get(choice)))
            point = index.get(choice)
            if point is not None and point.hash not in tried and point not in points:
                points.append(point)
        points = points[: section.trials - len(tried)]
        misses = 0 if points else misses + 1
        tried |= compute(points) if points else {}
        for trial, point in trials:
            record = tried.get(point.hash) if point is not None else None
            if record is None:  # excluded, failed or over the budget
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                continue
            row = per_inference(row_of(record))
            for constraint in constraints:
                trial.set_constraint(constraint.text, constraint.violation(row, base))
            study.tell(trial, [_cost(row, name) for name in section.objectives])
        if progress is not None:
            progress(len(tried), section.trials, "points tried")
    return tried


def _axes(space: list[Point]) -> tuple[dict[str, list[str]], dict[tuple[int, ...], Point]]:
    from edgewatt.results.record import canonical_json

    texts = [{key: canonical_json(value) for key, value in _parts(point.config)} for point in space]
    keys = sorted({key for text in texts for key in text})
    axes = {key: list(dict.fromkeys(text.get(key, "") for text in texts)) for key in keys}
    axes = {key: values for key, values in axes.items() if len(values) > 1}
    level = {key: {value: i for i, value in enumerate(values)} for key, values in axes.items()}
    index = {
        tuple(level[key][text.get(key, "")] for key in axes): point for text, point in zip(texts, space, strict=True)
    }
    return axes, index


def _parts(config: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping) and key not in ("ordering", "stride", "network"):
            yield from ((f"{key}.{name}", item) for name, item in value.items() if (key, name) != ("dram", "sha256"))
        else:
            yield key, value
