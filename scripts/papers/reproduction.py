"""Running a figure, a shipped sweep with the networks and iterations asked for, or a study, into a store of its own."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewatt.config.loading import read_with_paths
from edgewatt.results.record import Record
from edgewatt.results.store import Store
from edgewatt.runs.course import Results
from edgewatt.runs.plan import SweepPlan, load_sweep_document
from edgewatt.runs.sweep import TeamExecutor, sweep
from papers.claims import FIGURES, chosen
from papers.study import FULL_NETWORKS, STUDIES, StudyRun, run_study
from traces.base.document import Document
from traces.base.errors import InputError
from traces.base.progress import Progress

FULL_ITERATIONS = 1_000_000
"""The paper's number of iterations of Connection Reordering (Gleinig et al. 2023, section VI-A1)."""


@dataclass(frozen=True)
class Reproduction:
    """One figure's points and what is finished of them."""

    name: str
    plan: SweepPlan
    records: list[Record]
    results: Results | None = None

    @property
    def complete(self) -> bool:
        """Whether every point is finished."""
        return len(self.records) == len(self.plan.points)


def figure_plan(
    name: str,
    *,
    full: bool = False,
    iterations: int | None = None,
    seeds: int | None = None,
    overrides: Iterable[str] = (),
) -> SweepPlan:
    """Return the points of a figure.

    full: the paper's 1,000,000 iterations for the 10,000 of the file, our search without its limit, and the points that
    the file excludes, with FULL_NETWORKS a point; iterations: another number. seeds: the first so many networks of the
    file's five. overrides: as of a sweep; another grid has nothing to exclude. Raises InputError for an unknown name or
    bad number.
    """
    if full and iterations is not None:
        raise InputError("give either full or a number of iterations")
    (name,) = chosen([name])
    document = read_with_paths(FIGURES / f"{name}.yaml")
    if full or iterations is not None:
        _set_iterations(document, FULL_ITERATIONS if iterations is None else iterations)
    overrides = list(overrides)
    if full:
        _lift_moves(document)
    if full or any(text.startswith("grid") for text in overrides):
        document.data.pop("exclude", None)
    if full and seeds is None:
        seeds = FULL_NETWORKS
    if seeds is not None:
        _cut_seeds(document, seeds)
    return load_sweep_document(document, overrides)


def reproduce(
    name: str,
    *,
    results: str | Path = "results/papers",
    full: bool = False,
    iterations: int | None = None,
    seeds: int | None = None,
    overrides: Iterable[str] = (),
    run: bool = True,
    executor: str = "processes",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Reproduction | StudyRun:
    """Compute what is missing of a figure's sweep, or of a study, in the folder ``results/NAME``; return what is there.

    name: of `paper_figures`. run: False takes what is there. Others: see `figure_plan` and `edgewatt.sweep`; a study
    takes full, seeds and workers, and refuses overrides. Stopping at any moment loses the points in flight at most; the
    same call goes on.
    """
    if name in STUDIES:
        if overrides := list(overrides):
            raise InputError(f"{name} is a study: it has no values to replace (-s {overrides[0]})")
        TeamExecutor(executor, workers)  # refuses what a sweep refuses
        count = 0 if executor == "inline" else workers
        return run_study(name, results=results, full=full, seeds=seeds, run=run, workers=count, progress=progress)
    plan = figure_plan(name, full=full, iterations=iterations, seeds=seeds, overrides=overrides)
    store = Store(Path(results) / name)
    if run:
        _borrow(plan, store, Path(results))
    done = sweep(plan, results=store.folder, executor=executor, workers=workers, progress=progress) if run else None
    records = (store.get(point.hash) for point in plan.points)
    return Reproduction(name, plan, [record for record in records if record is not None], done)


def _borrow(plan: SweepPlan, store: Store, results: Path) -> None:
    """Take points that another figure has computed already: Figures 2 and 4 share their common setting."""
    store.open()
    for point in plan.points:
        if not store.holds(point.hash) and (record := finished(point.hash, results)) is not None:
            store.put(record)


def finished(point_hash: str, results: str | Path) -> Record | None:
    """Return a point that a figure in the folder ``results`` has computed, counted as today; None if there is none.

    Damaged records are none: the sweep of their figure computes them again.
    """
    for path in Path(results).glob(f"*/records/{point_hash}.json"):
        with suppress(InputError):
            if (record := Store(path.parents[1]).current(point_hash)) is not None:
                return record
    return None


def _set_iterations(document: Document, iterations: int) -> None:
    orderings: list[Any] = document.data["base"]["orderings"]
    for ordering in orderings:
        if isinstance(ordering, dict) and "iterations" in ordering:
            ordering["iterations"] = iterations


def _lift_moves(document: Document) -> None:
    for ordering in document.data["base"]["orderings"]:
        if isinstance(ordering, dict):
            ordering.pop("moves", None)


def _cut_seeds(document: Document, seeds: int) -> None:
    lists: dict[str, list[Any]] = document.data["zip"]
    most = min(map(len, lists.values()))
    if isinstance(seeds, bool) or not 1 <= seeds <= most:
        raise InputError(f"seeds is {seeds}: the sweep has 1 to {most} of them")
    for values in lists.values():
        del values[seeds:]
