"""What a figure or study will take: what is missing of it, times the CPU seconds that such points took when measured.

The seconds stand in figures/figures.yaml (`cpu_s`): means over what was run on the machine that MEASURED_ON
names; the largest points of Figures 2a, 2b and 6 with --full are scaled from smaller ones by their connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewatt.results.record import content_hash
from papers.claims import CpuSeconds, load_catalogue
from papers.reproduction import figure_plan, finished
from papers.study import STUDIES, missing_jobs
from traces.base.workers import available_cores

MEASURED_ON = "a 2-core AMD EPYC VM (Zen 5), 2026-11-22"
DEFAULT_ITERATIONS = 10_000


def cpu_seconds_left(name: str, *, results: str | Path = "results/papers", **settings: Any) -> float:
    """Return about how many CPU seconds `reproduce` will spend on a figure or study, with these settings of it.

    settings: full, iterations, seeds and overrides. What is finished in the folder ``results`` counts nothing.
    """
    return sum(_left(name, results, settings).values())


def _left(name: str, results: str | Path, settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of each point or job that is missing, by its hash: figures share some of their points."""
    catalogue, full = load_catalogue(), bool(settings.get("full"))
    if name in STUDIES:
        jobs = missing_jobs(name, results=results, full=full, seeds=settings.get("seeds"))
        each = _of(catalogue.studies[name].cpu_s, full)
        return {content_hash({"study": name, "job": dict(job)}): each for job in jobs}
    seconds = catalogue.figures[name].cpu_s
    scale = (settings.get("iterations") or DEFAULT_ITERATIONS) / DEFAULT_ITERATIONS
    left = {}
    for point in figure_plan(name, **settings).points:
        if finished(point.hash, results) is None:
            ordering = point.config["ordering"]
            left[point.hash] = _of(seconds[ordering["kind"]], full) * (scale if "iterations" in ordering else 1.0)
    return left


def _of(seconds: CpuSeconds, full: bool) -> float:
    return seconds.full if full else seconds.default


def words(seconds: float) -> str:
    """Return a span of time as people say it: 50 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def time_left(names: Sequence[str], *, results: str, workers: int | None, **settings: Any) -> str:
    """Say about how long the figures will take, '' for less than half a minute; settings: of `cpu_seconds_left`."""
    cores = workers or available_cores()
    left = {name: _left(name, results, settings) for name in names}
    alone = sum(sum(left[name].values()) for name in names if name in STUDIES and STUDIES[name].item.alone)
    total = sum({point: seconds for missing in left.values() for point, seconds in missing.items()}.values())
    if total <= 30:
        return ""
    shared = f", {words(alone + (total - alone) / cores)} with {cores} workers" if cores > 1 else ""
    return f"about {words(total)} of CPU time to go{shared} (as measured on {MEASURED_ON})"
