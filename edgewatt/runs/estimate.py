"""What a sweep would cost: its points, the stages they share, and a time estimated from points that were measured."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from edgewatt.results.record import NewerRecordError, Record
from edgewatt.results.store import Store
from edgewatt.runs.compute import make_task
from edgewatt.runs.model import Point
from edgewatt.runs.plan import SweepPlan
from edgewatt.runs.steps import STEPS, identities
from traces.base.errors import InputError
from traces.base.workers import Workers, available_cores

PROBE_S = 10.0  # points are tried for this long, in a worker that is then ended


def estimate(plan: SweepPlan, results: str | Path, workers: int | None = None) -> dict[str, Any]:
    """Return points, points to do, distinct stages and seconds, with a sentence that says what the time is based on.

    Finished points of the results folder are the basis if there are any; else points are computed for up to ten
    seconds, one of each ordering method in turn, without keeping them.
    """
    workers = workers or available_cores()
    store = Store(results)
    finished = {point.hash: _finished(store, point.hash) for point in plan.points}
    todo = [point for point in plan.points if finished[point.hash] is None]
    measured = _recorded([record for record in finished.values() if record is not None])
    basis = f"{len(measured)} finished points"
    if not measured and todo:
        measured, basis = _probe(todo)
    counts: dict[str, Any] = {
        "points": len(plan.points),
        "to_do": len(todo),
        "stages": _stages(plan.points),
        "workers": workers,
    }
    if not todo:
        return {**counts, "seconds": 0.0, "text": "everything is computed"}
    if not measured:
        return {**counts, "seconds": None, "text": f"no point finished within {PROBE_S:g} s: no estimate of the time"}
    mean = sum(s for _, s in measured) / len(measured)
    by_kind: dict[str, list[float]] = {}
    for point_kind, seconds in measured:
        by_kind.setdefault(point_kind, []).append(seconds)
    total = sum(sum(by_kind[k]) / len(by_kind[k]) if (k := _kind(p.config)) in by_kind else mean for p in todo)
    missing = sorted({_kind(p.config) for p in todo} - by_kind.keys())
    caution = f" (not measured: {', '.join(missing)})" if missing else ""
    text = f"about {_duration(total / workers)} on {workers} worker{'s' * (workers > 1)}, from {basis}{caution}"
    return {**counts, "seconds": total / workers, "text": text}


def _kind(config: Mapping[str, Any]) -> str:
    return str(config["ordering"]["kind"]) if "ordering" in config else "trace"


def _stages(points: list[Point]) -> dict[str, int]:
    """Return, for each step that points share, how many results of it differ."""
    by_point = [identities(point) for point in points]
    return {
        step.shared_as: len({names[step.name] for names in by_point if step.name in names})
        for step in STEPS.values()
        if step.shared_as
    }


def _finished(store: Store, name: str) -> Record | None:
    try:
        return store.current(name)
    except NewerRecordError:
        raise
    except InputError:
        return None  # damaged: it is computed again


def _recorded(finished: list[Record], most: int = 200) -> list[tuple[str, float]]:
    timed = [record for record in finished if record.provenance.get("duration_s")]
    return [(_kind(record.config), float(record.provenance["duration_s"])) for record in timed[:most]]


def _probe(todo: list[Point]) -> tuple[list[tuple[str, float]], str]:
    """Compute a few points in a worker process, round robin over the ordering methods, until time is up."""
    import tempfile

    from edgewatt.runs.worker import answer_stored

    by_kind: dict[str, list[Point]] = {}
    for point in todo:
        by_kind.setdefault(_kind(point.config), []).append(point)
    queue = [point for turn in zip_longest(*map(_spread, by_kind.values())) for point in turn if point]
    measured: list[tuple[str, float]] = []
    end = time.monotonic() + PROBE_S
    with tempfile.TemporaryDirectory() as folder, Workers(1, "processes", load="edgewatt.runs.worker") as team:
        calls = ((_kind(point.config), (make_task(point, stages=folder),)) for point in queue)
        for kind, outcome in team.map(answer_stored, calls, lost=lambda *_: {}, until=end):
            if "duration_s" in outcome:
                measured.append((kind, float(outcome["duration_s"])))
    return measured, f"{len(measured)} points tried just now"


def _spread(points: list[Point]) -> list[Point]:
    """Return at most four points from all over a sweep: the first ones are often the smallest."""
    n = len(points)
    return [points[i] for i in dict.fromkeys((n // 2, 0, n - 1, n // 4))]


def _duration(seconds: float) -> str:
    for limit, factor, unit in ((100, 1, "s"), (100 * 60, 60, "min"), (72 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 86400:.3g} days"
