"""Studies: figures and tables of the papers that are no sweep over configurations, computed job by job.

A study names its jobs as JSON values, computes one at a time, and makes tables and the words beside printed claims from
all that are finished. A finished job is a record in the store of the study, so a study stops and goes on like a sweep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store
from traces.base.errors import EdgewattError, InputError
from traces.base.progress import Progress
from traces.base.registry import Registry
from traces.base.workers import Workers, available_cores

Job = Mapping[str, Any]
Done = list[tuple[Job, Mapping[str, Any]]]  # finished jobs and their results, in the order of the jobs


@dataclass(frozen=True)
class Drawing:
    """A figure's chart. marks: (panel, x, series, y), x a number or a name; x, y: titles of the axes.

    bars: names stand one below the other, a bar a series. log: the axes with a logarithmic scale, of "xy".
    """

    figure: str
    x: str
    y: str
    marks: Sequence[tuple[str, float | str, str, float]]
    bars: bool = False
    log: str = ""


@dataclass(frozen=True)
class StudyTable:
    """What a study shows. rows: cells as text or numbers, one tuple a row. drawn: the figure that stands above them."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    drawn: Drawing | None = None


FULL_NETWORKS = 1
"""Networks behind each number of `full`, where no other number is asked for; the default selection has five."""


class Jobs(Protocol):
    """Names the jobs; `full` asks for more than fits in some minutes."""

    def __call__(self, full: bool) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class Study:
    """jobs, compute, tables: see the module. measures: name -> words for the paper's method, and for ours.

    version: raise it when the meaning of a result changes; finished jobs of another version are computed again.
    alone: jobs read a clock, so they are computed one after the other in this process.
    """

    jobs: Jobs
    compute: Callable[[Job], dict[str, Any]]
    tables: Callable[[Done], list[StudyTable]]
    measures: Mapping[str, Callable[[Done], tuple[str, str]]] = field(default_factory=dict)
    version: int = 1
    alone: bool = False


STUDIES: Registry[Study] = Registry("study", None, folder="papers.studies")
"""Ours alone: what a study shows stands beside the claims of scripts/papers/figures/figures.yaml."""


@dataclass(frozen=True)
class StudyRun:
    """A study's jobs and the records of those that are finished. failed: what went wrong, by job."""

    name: str
    jobs: list[dict[str, Any]]
    records: list[Record]
    failed: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every job is finished."""
        return len(self.records) == len(self.jobs)

    @property
    def done(self) -> Done:
        """The finished jobs with their results."""
        return [(record.config["job"], record.results) for record in self.records]


def run_study(
    name: str,
    *,
    results: str | Path,
    full: bool = False,
    seeds: int | None = None,
    run: bool = True,
    workers: int | None = None,
    progress: Progress | None = None,
) -> StudyRun:
    """Compute what is missing of a study in the folder ``results/NAME``.

    seeds: of jobs that have a seed, those with one of the first so many (None: all, with `full` FULL_NETWORKS).
    workers: processes; 0 computes in this one. A job that cannot be computed (EdgewattError) is reported and leaves the
    others alone. Results of an older COUNTS_VERSION are computed again.
    """
    study, store = STUDIES[name].item, Store(Path(results) / name)
    jobs = _jobs(name, full, seeds)
    identities = [_identity(name, job) for job in jobs]
    hashes = [content_hash(identity) for identity in identities]
    failed: list[str] = []
    if run:
        store.open()
        missing = [k for k, key in enumerate(hashes) if store.current(key) is None]
        for at, (k, outcome) in enumerate(_outcomes(name, jobs, missing, 0 if study.alone else workers)):
            if progress is not None:
                progress(len(jobs) - len(missing) + at + 1, len(jobs), "jobs finished")
            if isinstance(outcome, str):
                failed.append(f"{_label(jobs[k])}: {outcome}")
            else:
                store.put(_record(identities[k], hashes[k], *outcome))
        store.put_plan(name, hashes)
    records = (store.get(key) for key in hashes)
    return StudyRun(name, jobs, [record for record in records if record is not None], failed)


def missing_jobs(name: str, *, results: str | Path, full: bool = False, seeds: int | None = None) -> list[Job]:
    """Return the jobs of a study that `run_study` would compute."""
    store = Store(Path(results) / name)
    return [job for job in _jobs(name, full, seeds) if store.current(content_hash(_identity(name, job))) is None]


def _identity(name: str, job: Job) -> dict[str, Any]:
    return {"study": name, "version": STUDIES[name].item.version, "job": dict(job)}


def _jobs(name: str, full: bool, seeds: int | None) -> list[dict[str, Any]]:
    jobs = STUDIES[name].item.jobs(full)
    if seeds is None and not full:
        return jobs
    seeds = FULL_NETWORKS if seeds is None else seeds
    if isinstance(seeds, bool) or seeds < 1:
        raise InputError(f"seeds is {seeds}: it is at least 1")
    kept = sorted({job["seed"] for job in jobs if "seed" in job})[:seeds]
    return [job for job in jobs if job.get("seed") in (None, *kept)]


def compute_job(name: str, job: Job) -> tuple[dict[str, Any], float] | str:
    """Compute one job; return its result and CPU seconds, or why it cannot be computed."""
    start = time.process_time()
    try:
        return STUDIES[name].item.compute(job), time.process_time() - start
    except EdgewattError as error:
        return str(error)


def _outcomes(name: str, jobs: Sequence[Job], missing: list[int], workers: int | None) -> Iterator[tuple[int, Any]]:
    if workers == 0 or len(missing) < 2:
        yield from ((k, compute_job(name, jobs[k])) for k in missing)
        return
    with Workers(workers or available_cores(), "processes") as team:
        yield from team.map(compute_job, ((k, (name, jobs[k])) for k in missing), len(missing))


def _record(identity: dict[str, Any], key: str, result: dict[str, Any], cpu_s: float) -> Record:
    from edgewatt.results.record import environment, now

    canonical = {"config": identity, "hash": key, "seed": 0, "results": result}
    return Record(canonical, {**environment(), "finished": now(), "cpu_s": round(cpu_s, 6)})


def _label(job: Job) -> str:
    return ", ".join(str(value) for value in job.values())
