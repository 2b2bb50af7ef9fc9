"""One point becomes one record: network, ordering, tuple order, I/O counts, replay, energy.

Every step is a stage with an identity of its own (see `edgewatt.stages`), so points that share a step share its work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgewatt.config.points import Point, expand
from edgewatt.record import Record
from edgewatt.stages import Stages
from edgewatt.workload import build_workload

Progress = Callable[[int, int | None, str], None]


def run(
    config: str | Path | Mapping[str, Any],
    *,
    results: str | Path | None = None,
    overrides: list[str] | None = None,
    progress: Progress | None = None,
) -> list[Record]:
    """Compute every ordering x stride x format of a configuration (YAML file or mapping), in the order written.

    results: folder to keep the records and shared stages in; None keeps nothing. Raises ConfigError naming file, line
    and column of every problem, and whatever a point raises.
    """
    from edgewatt.config.loading import apply_overrides, complete
    from edgewatt.store import Store
    from edgewatt.sweep import as_document

    document = as_document(config)
    apply_overrides(document, overrides or ())
    points = expand(complete(document))
    if results is None:
        return run_points(points, progress=progress)
    store = Store(results).open()
    records = run_points(points, stages=store.folder / "stages", progress=progress)
    store.put_plan(records[0].provenance["name"], [record.hash for record in records])
    for record in records:
        store.put(record)
    return records


def run_points(
    points: list[Point], *, stages: str | Path | None = None, progress: Progress | None = None
) -> list[Record]:
    """Compute points one after the other in this process; the first exception ends it."""
    shared = Stages(stages)
    records = []
    for number, point in enumerate(points):
        records.append(compute(point.config, point.paths, point.hash, point.name, shared))
        if progress is not None:
            progress(number + 1, len(points), "")
    return records


def compute(
    config: Mapping[str, Any], paths: Mapping[str, list[str]], config_hash: str, name: str, stages: Stages
) -> Record:
    """Compute one point."""
    start, cpu = time.perf_counter(), time.process_time()
    made, seconds = dict(stages.made), dict(stages.seconds)
    results: dict[str, Any] = {}
    trace, element_bytes, warnings, curve_seconds = build_workload(config, paths, stages)
    return Record({}, {})
