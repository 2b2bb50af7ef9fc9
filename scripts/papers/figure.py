"""A figure of a paper: jobs that are computed one by one, the rows that they become, and what is drawn of them.

A job is a JSON object; all of a figure's jobs and nothing else are its configuration: captions, axes and the question
whether a claim may be compared come from the jobs that were run. A finished job is a record in the figure's store, so a
figure stops at any moment and continues where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from edgewatt.results.record import Record, content_hash
from edgewatt.results.store import Store
from traces.base.errors import EdgewattError, InputError
from traces.base.progress import Progress
from traces.base.workers import Workers, available_cores

Job = Mapping[str, Any]
Row = dict[str, Any]

EFFORT = ("seed", "iterations", "moves", "effort", "solutions", "drawn", "orders", "processor")
"""Keys of a job that are no setting of a figure: how many networks, how long a search, on which processor."""
MEASURED_ON = "an AMD EPYC VM (Zen 5), 2 cores, 2026-11-26"
FULL_NETWORKS = 1
"""Networks behind each number of `full`, where no other number is asked for; the default selection has five."""


@dataclass(frozen=True)
class Paper:
    """Where figures and claims come from. key: how figures name it."""

    key: str
    title: str
    authors: str
    year: int
    source: str

    @property
    def short(self) -> str:
        """How it is cited, such as 'Gleinig 2023'."""
        return f"{self.authors.split(',')[0].split('. ')[-1]} {self.year}"

    @property
    def bibtex(self) -> str:
        """An entry for a list of references."""
        authors = " and ".join(self.authors.split(", "))
        fields = {"title": self.title, "author": authors, "year": self.year, "note": self.source}
        return "\n".join([f"@misc{{{self.key},", *(f"  {k} = {{{v}}}," for k, v in fields.items()), "}"])


@dataclass(frozen=True)
class Chart:
    """Medians over rows. x, series, panel: fields of a row; y: one field, or one for each line; over: what divides it.

    where: values that a row must have. bars: names stand one below the other. log: the logarithmic axes, of "xy".
    """

    number: str
    x: str
    y: tuple[str, ...]
    title: str
    series: str = ""
    panel: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    over: str = ""
    bars: bool = False
    log: str = ""


@dataclass(frozen=True)
class Table:
    """Medians of fields over the rows that are alike in others."""

    title: str
    by: tuple[str, ...]
    values: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """jobs(full): the jobs; `full` asks for more than fits in some minutes. rows(job, result): what a job found.

    number: of the paper. reading: what is not as in the paper, and what its text leaves open. seconds: CPU seconds of a
    job as measured, in the default selection and with `full`. version: raise it when the meaning of a result changes.
    alone: jobs read a clock, so they are computed one after the other in this process. store: the folder and name of
    its records, for figures that share jobs (default: its own name).
    """

    name: str
    paper: str
    number: str
    title: str
    reading: str
    jobs: Callable[[bool], list[dict[str, Any]]]
    compute: Callable[[Job], dict[str, Any]]
    rows: Callable[[Job, Mapping[str, Any]], list[Row]]
    shows: tuple[Chart | Table, ...]
    seconds: tuple[float, float]
    version: int = 1
    alone: bool = False
    store: str = ""

    def identity(self, job: Job) -> dict[str, Any]:
        """Return what a finished job is found by."""
        return {"study": self.store or self.name, "version": self.version, "job": dict(job)}

    def open(self, results: str | Path) -> Store:
        """Return where its records are."""
        return Store(Path(results) / (self.store or self.name))


@dataclass(frozen=True)
class Run:
    """The jobs that were asked for and the records of those that are finished. failed: what went wrong."""

    figure: Figure
    jobs: list[dict[str, Any]]
    records: list[Record]
    failed: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The figure's name."""
        return self.figure.name

    @property
    def complete(self) -> bool:
        """Whether every job is finished, and there is one."""
        return 0 < len(self.jobs) == len(self.records)

    @property
    def rows(self) -> list[Row]:
        """What the finished jobs found."""
        found = ((record.config["job"], record.results) for record in self.records)
        return [{"figure": self.name, **row} for job, result in found for row in self.figure.rows(job, result)]

    @property
    def state(self) -> Literal["whole", "part", "other"]:
        """Whether the settings that were run are those of the figure, a part of them, or others too."""
        ours = {_setting(job) for job in self.jobs}
        plans = [{_setting(job) for job in self.figure.jobs(full)} for full in (False, True)]
        if not ours <= plans[0] | plans[1]:
            return "other"
        return "whole" if self.complete and any(plan <= ours for plan in plans) else "part"

    @property
    def unplanned(self) -> list[str]:
        """What is not of the figure's settings, in words."""
        plan = {(key, content_hash(value)) for full in (False, True) for job in self.figure.jobs(full)
                for key, value in job.items()}  # fmt: skip
        asked = ((key, value) for job in self.jobs for key, value in job.items() if key not in EFFORT)
        others = dict.fromkeys(f"{key} {_plain(v)}" for key, v in asked if (key, content_hash(v)) not in plan)
        return list(others) or ["another combination of settings"]

    @property
    def caption(self) -> str:
        """The configuration that was run, in words."""
        jobs = [record.config["job"] for record in self.records]
        keys = dict.fromkeys(key for job in jobs for key in job if key not in ("processor", "content"))
        return "; ".join(f"{key.replace('_', ' ')} {_values(job[key] for job in jobs if key in job)}" for key in keys)


def _setting(job: Job) -> str:
    return content_hash({key: value for key, value in job.items() if key not in EFFORT})


def _values(values: Iterable[Any]) -> str:
    found = list(dict.fromkeys(_plain(value) for value in values))
    if len(found) > 3 and found == [str(k) for k in range(int(found[0]) if found[0].isdigit() else 0, len(found) + 1)]:
        return f"{found[0]} to {found[-1]}"
    return ", ".join(found)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(map(_plain, value))})"
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def planned(
    figure: Figure, *, full: bool = False, iterations: int | None = None, seeds: int | None = None,
    overrides: Iterable[str] = (),
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the jobs of a figure.

    iterations: another number of them. seeds: of jobs that have one, the first so many. overrides: KEY=VALUE for a key
    of its jobs (what stands before a dot is left out), a list for a job each. Raises InputError.
    """
    if full and iterations is not None:
        raise InputError("give either full or a number of iterations")
    jobs = figure.jobs(full)
    if iterations is not None:
        jobs = [job | {"iterations": iterations} if "iterations" in job else job for job in jobs]
    drawn = sorted({job["seed"] for job in jobs if "seed" in job})
    if seeds is None and full:
        seeds = FULL_NETWORKS
    if seeds is not None:
        if isinstance(seeds, bool) or not seeds >= 1:
            raise InputError(f"seeds is {seeds}: it is at least 1")
        jobs = [job for job in jobs if job.get("seed") in (None, *drawn[:seeds])]
    for text in overrides:
        jobs = _overridden(figure, jobs, text)
    return list({content_hash(job): job for job in jobs}.values())


def _overridden(figure: Figure, jobs: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    from edgewatt.cli.parts.output import read_value, split_parameter

    path, value = split_parameter(text)
    key, value = path.split(".")[-1], read_value(value)
    known = sorted({key for job in jobs for key in job})
    if key not in known:
        raise InputError(f"{figure.name} has no {key} to replace; its jobs have {', '.join(known)}")
    is_list = isinstance(value, list) and not any(isinstance(job.get(key), list) for job in jobs)
    values = value if is_list else [value]
    return [job | {key: one} if key in job else job for one in values for job in jobs]


def run_figure(
    figure: Figure, *, results: str | Path, run: bool = True, workers: int | None = None,
    progress: Progress | None = None, **settings: Any,
) -> Run:  # fmt: skip
    """Compute what is missing of a figure; return what is there.

    settings: of `planned`. run: False takes what is there. workers: processes; 0: this one. A job that cannot be
    computed (EdgewattError) is reported and leaves the others alone; results of an older COUNTS_VERSION are computed
    again.
    """
    jobs, store = planned(figure, **settings), figure.open(results)
    identities = [figure.identity(job) for job in jobs]
    hashes = [content_hash(identity) for identity in identities]
    failed: list[str] = []
    if run:
        store.open()
        missing = [k for k, key in enumerate(hashes) if not store.is_current(key)]
        calls = ((k, (figure.name, jobs[k])) for k in missing)
        executor = "inline" if figure.alone or workers == 0 else "processes"
        with Workers(workers or available_cores(), executor) as team:
            for at, (k, outcome) in enumerate(team.map(compute_job, calls, len(missing))):
                if progress is not None:
                    progress(len(jobs) - len(missing) + at + 1, len(jobs), "jobs finished")
                if isinstance(outcome, str):
                    failed.append(f"{', '.join(map(_plain, jobs[k].values()))}: {outcome}")
                else:
                    store.put(_record(identities[k], hashes[k], *outcome))
    records = (store.get(key) for key in hashes)
    return Run(figure, jobs, [record for record in records if record is not None], failed)


def seconds_left(figures: Sequence[Figure], results: str | Path, **settings: Any) -> float:
    """Return about how many CPU seconds the missing jobs of some figures take; jobs that they share count once."""
    left: dict[str, float] = {}
    for figure in figures:
        store, each = figure.open(results), figure.seconds[bool(settings.get("full"))]
        hashes = (content_hash(figure.identity(job)) for job in planned(figure, **settings))
        left = {key: each for key in hashes if not store.is_current(key)} | left
    return sum(left.values())


def compute_job(name: str, job: Job) -> tuple[dict[str, Any], float] | str:
    """Compute one job; return its result and CPU seconds, or why it cannot be computed."""
    from papers.catalogue import FIGURES

    start = time.process_time()
    try:
        return FIGURES[name].compute(job), time.process_time() - start
    except EdgewattError as error:
        return str(error)
    except (TypeError, ValueError, KeyError) as error:  # a value that the reader replaced
        return f"{type(error).__name__}: {error}"


def _record(identity: dict[str, Any], key: str, result: dict[str, Any], cpu_s: float) -> Record:
    from edgewatt.results.record import environment, now

    canonical = {"config": identity, "hash": key, "seed": 0, "results": result}
    return Record(canonical, {**environment(), "finished": now(), "cpu_s": round(cpu_s, 6)})
