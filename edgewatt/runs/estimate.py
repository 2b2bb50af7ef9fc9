"""What a sweep would cost: its points, the stages they share, and a time estimated from finished points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgewatt.results.record import NewerRecordError, Record
from edgewatt.results.store import Store
from edgewatt.runs.model import Point
from edgewatt.runs.plan import SweepPlan
from edgewatt.runs.steps import STEPS, identities
from traces.base.errors import InputError
from traces.base.workers import available_cores

MOST_TIMED = 200  # finished points that a time is estimated from


def estimate(plan: SweepPlan, results: str | Path, workers: int | None = None) -> dict[str, Any]:
    """Return points, points to do, distinct stages and seconds, with a sentence that says what the time is based on.

    plan: of `load_sweep`. Finished points of the folder `results` are the basis; without any there are no seconds.
    Raises InputError for a folder that is none.
    """
    workers = workers or available_cores()
    store = Store(results)
    finished = {point.hash: _finished(store, point.hash) for point in plan.points}
    todo = [point for point in plan.points if finished[point.hash] is None]
    timed = [r for r in finished.values() if r is not None and r.provenance.get("duration_s")][:MOST_TIMED]
    measured = [(_kind(record.config), float(record.provenance["duration_s"])) for record in timed]
    counts: dict[str, Any] = {
        "points": len(plan.points),
        "to_do": len(todo),
        "stages": _stages(plan.points),
        "workers": workers,
    }
    if not todo:
        return {**counts, "seconds": 0.0, "text": "everything is computed"}
    if not measured:
        return {**counts, "seconds": None, "text": "no point is finished yet, from which the time could be estimated"}
    mean = sum(s for _, s in measured) / len(measured)
    by_kind: dict[str, list[float]] = {}
    for point_kind, seconds in measured:
        by_kind.setdefault(point_kind, []).append(seconds)
    total = sum(sum(by_kind[k]) / len(by_kind[k]) if (k := _kind(p.config)) in by_kind else mean for p in todo)
    missing = sorted({_kind(p.config) for p in todo} - by_kind.keys())
    caution = f" (not measured: {', '.join(missing)})" if missing else ""
    by = f"{workers} worker{'s' * (workers > 1)}, from {len(measured)} finished points"
    text = f"about {_duration(total / workers)} on {by}{caution}"
    return {**counts, "seconds": total / workers, "text": text}


def _kind(config: Mapping[str, Any]) -> str:
    return str(config["ordering"]["kind"]) if "ordering" in config else "trace"


def _stages(points: list[Point]) -> dict[str, int]:
    by_point = [identities(point) for point in points]
    return {
        step.shared_as: len({names[step.name] for names in by_point if step.name in names})
        for step in STEPS.values()
        if step.shared_as
    }


def _finished(store: Store, name: str) -> Record | None:
    try:
        return store.get(name) if store.is_current(name) else None
    except NewerRecordError:
        raise
    except InputError:
        return None  # damaged: it is computed again


def _duration(seconds: float) -> str:
    for limit, factor, unit in ((100, 1, "s"), (100 * 60, 60, "min"), (72 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 86400:.3g} days"
