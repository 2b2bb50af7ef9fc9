"""One point becomes one record: network, ordering, tuple order, I/O counts, replay, energy.

Every step is a stage with an identity of its own (see `edgewatt.point.memo`): points that share a step share its work.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewatt.config.points import Point, expand
from edgewatt.point.memo import Stages
from edgewatt.point.work import count_work, describe, make_trace, make_work, open_recorded, work_hash
from edgewatt.results.record import Record, content_hash
from traces.access.trace import Trace
from traces.base.errors import InputError

if TYPE_CHECKING:
    from hwmodel.caches.cache_pass import KeptPass
    from hwmodel.machine import Machine

Progress = Callable[[int, int | None, str], None]

KEPT_PASS_BYTES = 64 << 20
"""Most bytes of a pass through the caches that is kept for other points: 1.1 million bursts of 32 bytes."""


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
    from edgewatt.config.loading import apply_overrides, as_document, complete
    from edgewatt.results.store import Store

    document = as_document(config)
    apply_overrides(document, overrides or ())
    points = expand(complete(document))
    if results is None:
        return run_points(points, progress=progress)
    store = Store(results).open()
    records = run_points(points, stages=store.folder / "stages", progress=progress)
    store.put_plan(points[0].name, [record.hash for record in records])
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

        def inside(done: int, total: int | None, text: str, number: int = number) -> None:
            if progress is not None:  # the step under way, beside the number of points
                progress(number, len(points), f"{text} {done}{f' of {total}' if total else ''}")

        if progress is not None:
            progress(number, len(points), "")
        records.append(compute(point.config, point.paths, point.hash, point.name, shared, inside))
    return records


def compute(
    config: Mapping[str, Any],
    paths: Mapping[str, list[str]],
    config_hash: str,
    name: str,
    stages: Stages,
    progress: Progress | None = None,
    *,
    keep_pass: bool = False,
) -> Record:
    """Compute one point. keep_pass: other points need its pass through the caches, so it is worth keeping."""
    from edgewatt.results.provenance import environment, now

    start, cpu, made = time.perf_counter(), time.process_time(), dict(stages.made)
    seconds: dict[str, list[float]] = {}
    results = _simulate(config, paths, stages, seconds, progress, keep_pass)
    canonical = {"config": config, "hash": config_hash, "seed": config["seed"], "results": results}
    provenance = {
        **environment(),
        "name": name,
        "paths": paths,
        "finished": now(),
        "duration_s": round(time.perf_counter() - start, 6),
        "cpu_s": round(time.process_time() - cpu, 6),
        "stages_computed": {kind: n - made.get(kind, 0) for kind, n in stages.made.items() if n > made.get(kind, 0)},
        **seconds,
    }
    return Record(canonical, provenance)


def _simulate(
    config: Mapping[str, Any],
    paths: Mapping[str, list[str]],
    stages: Stages,
    seconds: dict[str, list[float]],
    progress: Progress | None,
    keep_pass: bool,
) -> dict[str, Any]:
    from edgewatt.point.machine import build_machine, simulate

    results: dict[str, Any] = {}
    if "trace" in config:
        trace_hash, make = content_hash(config["trace"]), lambda: open_recorded(config, paths)
    else:
        work = make_work(config, paths, stages, progress)
        results = {
            "network": describe(work.network),
            **count_work(config, work, stages),
            "ordering": {"curve": work.curve, "truncated": work.truncated},
            "tuple_order": work.tuple_order,
        }
        if work.curve_seconds:
            seconds["curve_seconds"] = work.curve_seconds
        if config["measure"] == "io":
            return results
        trace_hash, make = work_hash(config, work), lambda: make_trace(config, work)
    machine = build_machine(config, paths)
    keys = ("caches", "bus", "encoder", "engine", "dram", "timing")
    identity = {"trace": trace_hash, "element_bytes": machine.element_bytes, **{key: config[key] for key in keys}}

    def play() -> dict[str, np.ndarray]:
        kept = _kept_pass(trace_hash, make, machine, stages) if keep_pass and config["timing"] == "replay" else None
        found = simulate(kept or stages.value("trace", trace_hash, make), machine, config["timing"], progress)
        return {"results": np.frombuffer(json.dumps(found).encode(), np.uint8)}

    played = stages.arrays("replay", identity, play)
    return {**results, **json.loads(played["results"].tobytes())}


def _kept_pass(trace_hash: str, make: Callable[[], Trace], machine: Machine, stages: Stages) -> KeptPass | None:
    """Return the pass of a trace through a machine's caches, made by whoever came first; None if it is too large."""
    from hwmodel.caches.cache_pass import KeptPass, depends_on, keep

    def send() -> dict[str, np.ndarray]:
        return keep(stages.value("trace", trace_hash, make), machine, KEPT_PASS_BYTES) or {}

    arrays = stages.arrays("cache_pass", {"trace": trace_hash, **depends_on(machine)}, send)
    return KeptPass(arrays) if arrays else None


@lru_cache(maxsize=4)
def _stages(folder: str | None) -> Stages:
    """Return this process's stages, kept from task to task so that networks and orderings stay in memory."""
    return Stages(folder)


def work(task: Mapping[str, Any]) -> dict[str, Any]:
    """Compute one task of an executor: JSON values in, JSON values out. An exception becomes a recorded failure."""
    try:
        record = compute(
            task["config"],
            task["paths"],
            task["hash"],
            task["name"],
            _stages(task["stages"]),
            keep_pass=task["keep_pass"],
        )
    except Exception as error:
        failure = {
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(limit=20),
            "config": task["config"],
            "name": task["name"],
        }
        return {"hash": task["hash"], "failure": failure}
    return {"hash": task["hash"], "record": {"canonical": record.canonical, "provenance": record.provenance}}


def rerun(record: str | Path | Record) -> list[dict[str, Any]]:
    """Repeat the run behind a record; return what differs in its canonical part (nothing, if all is well).

    The files are looked for where the record says they lay, then beside the record. Raises InputError if one is missing
    or has another content.
    """
    from edgewatt.results.comparison import flat

    if not isinstance(record, Record):
        path = Path(record)
        if path.is_dir():
            raise InputError(f"{path}: is a folder: name one record in it, such as records/HASH.json")
        try:
            record = Record.from_bytes(path.read_bytes(), str(path))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
        paths = {
            kind: [_find(name, path.parent) for name in names] for kind, names in record.provenance["paths"].items()
        }
    else:
        paths = dict(record.provenance["paths"])
    again = compute(record.config, paths, record.hash, str(record.provenance.get("name", "")), Stages())
    before, after = flat(record.canonical), flat(json.loads(json.dumps(again.canonical)))
    return [
        {"key": key, "recorded": before.get(key), "repeated": after.get(key)}
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _find(name: str, folder: Path) -> str:
    beside = folder / Path(name).name
    return str(beside) if not Path(name).exists() and beside.exists() else name
