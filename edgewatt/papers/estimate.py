"""What a figure or study will take: what is missing of it, times the CPU seconds that such points took when measured.

The seconds stand in configs/papers/figures.yaml (`cpu_s`): means over what was run on the machine that MEASURED_ON
names; the largest points of Figures 2a, 2b and 6 with --full are scaled from smaller ones by their connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgewatt.papers.claims import CpuSeconds, load_catalogue
from edgewatt.papers.reproduction import figure_plan
from edgewatt.papers.study import STUDIES, missing_jobs
from edgewatt.results.store import Store
from edgewatt.sweeps.executors import available_cores

MEASURED_ON = "a 2-core AMD EPYC VM (Zen 5), 2026-11-22"
DEFAULT_ITERATIONS = 10_000


def cpu_seconds_left(name: str, *, results: str | Path = "results/papers", **settings: Any) -> float:
    """Return about how many CPU seconds `reproduce` will spend on a figure or study, with these settings of it.

    settings: full, iterations, seeds and overrides. What is finished in the folder ``results/NAME`` counts nothing.
    """
    catalogue, full = load_catalogue(), bool(settings.get("full"))
    if name in STUDIES:
        jobs = missing_jobs(name, results=results, full=full, seeds=settings.get("seeds"))
        return len(jobs) * _of(catalogue.studies[name].cpu_s, full)
    seconds, store = catalogue.figures[name].cpu_s, Store(Path(results) / name)
    scale = (settings.get("iterations") or DEFAULT_ITERATIONS) / DEFAULT_ITERATIONS
    left = 0.0
    for point in figure_plan(name, **settings).points:
        if not store.path(point.hash).exists():
            ordering = point.config["ordering"]
            left += _of(seconds[ordering["kind"]], full) * (scale if "iterations" in ordering else 1.0)
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
    left = {name: cpu_seconds_left(name, results=results, **settings) for name in names}
    alone = sum(seconds for name, seconds in left.items() if name in STUDIES and STUDIES[name].item.alone)
    total = sum(left.values())
    if total <= 30:
        return ""
    shared = f", {words(alone + (total - alone) / cores)} with {cores} workers" if cores > 1 else ""
    return f"about {words(total)} of CPU time to go{shared} (as measured on {MEASURED_ON})"
