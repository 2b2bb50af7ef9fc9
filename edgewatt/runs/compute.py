"""One point becomes one record: its steps are made, or found where another point has made them (`point.steps`)."""

from __future__ import annotations

import importlib
import json
import pickle
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from edgewatt.config.kinds import registry
from edgewatt.results.record import Record, content_hash, of_our_shape
from edgewatt.results.store import Store, StoreError
from edgewatt.runs.memo import Memo
from edgewatt.runs.model import Point
from edgewatt.runs.plan import pieces_of, plugins_of
from edgewatt.runs.steps import OPTIONAL, Step, curve_seconds, inputs, name_of, own_steps, steps_of
from traces.base.errors import InputError
from traces.base.progress import Progress


class Computation:
    """The steps of one point, each made when its result is asked for."""

    def __init__(self, point: Point, memo: Memo, progress: Progress | None = None, keep: Collection[str] = ()) -> None:
        self.point, self.memo, self.progress, self.keep = point, memo, progress, frozenset(keep)
        self.steps = steps_of(point)
        self._results: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._contents: dict[str, str] = {}

    def __getitem__(self, name: str) -> Any:
        step = self.steps[name]
        if step is None:
            return None
        if step.name not in self._results:
            self._results[step.name] = self._result(step)
        return self._results[step.name]

    def worth_keeping(self, step: str) -> bool:
        return step in self.keep

    def _result(self, step: Step) -> Any:
        def make() -> Any:
            return step.make(self.point, self, self.progress)

        def pack() -> dict[str, np.ndarray]:
            return {"json": np.frombuffer(json.dumps(make()).encode(), np.uint8)}

        if step.keep == "nothing":
            return make()
        name = self._name(step)
        if step.keep == "memory":
            return self.memo.value(step.name, name, make)
        if step.keep == "arrays":

            def check(arrays: dict[str, np.ndarray]) -> None:
                if step.check is not None:
                    step.check(arrays, self)

            return self.memo.arrays(step.name, name, make, check, needed=self.worth_keeping(step.name))
        return _unpacked(self.memo.arrays(step.name, name, pack, _unpacked))

    def _name(self, step: Step) -> str:
        if step.name not in self._names:
            before = {key: f'"{self._seen(given)}"' for key, given in inputs(self.steps, step).items()}
            self._names[step.name] = name_of(self.point, step, before)
        return self._names[step.name]

    def _seen(self, step: Step) -> str:
        if step.content is None:
            return self._name(step)
        if step.name not in self._contents:
            self._contents[step.name] = step.content(self[step.name])
        return self._contents[step.name]


def _unpacked(arrays: dict[str, np.ndarray]) -> Mapping[str, Any]:
    try:
        return _parsed(arrays["json"].tobytes())
    except InputError:
        raise
    except (KeyError, ValueError, RecursionError) as error:
        raise InputError(f"no JSON: {type(error).__name__}") from None


@lru_cache(maxsize=64)
def _parsed(text: bytes) -> Mapping[str, Any]:
    """Return the result of a step, the same one for each of the points that share it."""
    result = json.loads(text)
    if not isinstance(result, dict):
        raise InputError(f"JSON of a {type(result).__name__}, a mapping is wanted")
    return result


def run_points(
    points: list[Point], *, stages: str | Path | None = None, progress: Progress | None = None
) -> list[Record]:
    memo = Memo(stages)
    records = []
    for number, point in enumerate(points):

        def inside(done: int, total: int | None, text: str, number: int = number) -> None:
            if progress is not None:  # the step under way, beside the number of points
                share = f"({100 * done / total:.0f} %)" if total else str(done)
                progress(number, len(points), f"{text} {share}".strip())

        if progress is not None:
            progress(number, len(points), "")
        record = compute(point, memo, inside)
        canonical = pickle.loads(pickle.dumps(dict(record.canonical)))  # the record's own, which may be changed
        records.append(Record(canonical, record.provenance))
    return records


def compute(point: Point, memo: Memo, progress: Progress | None = None, *, keep: Collection[str] = ()) -> Record:
    """Compute one point. keep: steps whose results other points need, so that they are worth keeping."""
    from edgewatt.results.record import environment, now

    start, cpu, made, damaged = time.perf_counter(), time.process_time(), dict(memo.made), len(memo.damaged)
    steps = Computation(point, memo, progress, keep)
    results: dict[str, Any] = {}
    for step in own_steps(steps.steps):
        if step.reports is not None and step.name not in OPTIONAL:
            results |= step.reports(steps[step.name])
    seconds = curve_seconds(steps["ordering"]) if point.order is not None else []
    canonical = {
        "config": point.config,
        "hash": point.hash,
        "seed": point.measure.seed,
        "results": results,
    }
    provenance = {
        **environment(),
        **({"plugins": point.plugins} if point.plugins else {}),
        "name": point.name,
        "paths": point.paths,
        "finished": now(),
        "duration_s": round(time.perf_counter() - start, 6),
        "cpu_s": round(time.process_time() - cpu, 6),
        "stages_computed": {kind: n - made.get(kind, 0) for kind, n in memo.made.items() if n > made.get(kind, 0)},
        **({"curve_seconds": seconds} if seconds else {}),
        **({"damaged_stages": memo.damaged[damaged:]} if len(memo.damaged) > damaged else {}),
    }
    return Record(canonical, provenance)


@lru_cache(maxsize=4)
def process_memo(folder: str | None) -> Memo:
    return Memo(folder)


def make_task(
    point: Point, *, stages: str | None, keep: Collection[str] = (), results: str | None = None, fsync: bool = False
) -> dict[str, Any]:
    """Return what an executor needs to compute a point, as JSON values."""
    return {
        "hash": point.hash,
        "config": point.config,
        "paths": point.paths,
        "name": point.name,
        "stages": stages,
        "keep": sorted(keep),
        "results": results,
        "fsync": fsync,
    }


def answer(task: Mapping[str, Any]) -> dict[str, Any]:
    """Compute one task of an executor: JSON values in, JSON values out. An exception becomes a recorded failure."""
    try:
        point = Point.of_task(task)
        record = compute(point, process_memo(task["stages"]), keep=task["keep"])
    except (Exception, SystemExit) as error:
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

    A search that a time limit cut may differ: `edgewatt.results.record_rows.describe_cut` says whether it was.

    The files are looked for where the record says they lay, then beside the record. An outside member that has changed
    since is a difference, too. Raises InputError if a file is missing or has another content.
    """
    from edgewatt.results.record_rows import flat
    from edgewatt.results.store import open_records

    if not isinstance(record, Record):
        path = Path(record)
        if path.is_dir():
            raise InputError(f"{path}: is a folder: name one record in it, such as records/HASH.json")
        (record,) = open_records(path)
        folder: Path | None = path.parent
    else:
        folder = None
    with of_our_shape(f"record {record.hash}"):
        paths = {
            kind: [name if folder is None else _find(name, folder) for name in names]
            for kind, names in record.provenance["paths"].items()
        }
        point = Point.from_config(
            record.config, paths, str(record.provenance.get("name", "")),
            plugins=plugins_of(record.config, paths, pieces_of(record.config.get("plugins", {}))),
        )  # fmt: skip
        again = compute(point, Memo())
    config = {key: value for key, value in record.config.items() if key != "plugins"}  # read or not, it is the same
    config |= {"plugins": point.plugins} if point.plugins else {}
    canonical = {**again.canonical, "config": config, "hash": content_hash(config)}
    before, after = flat(record.canonical), flat(json.loads(json.dumps(canonical)))
    return [
        {"key": key, "recorded": before.get(key), "repeated": after.get(key)}
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _find(name: str, folder: Path) -> str:
    local = folder / Path(name).name
    return str(local) if not Path(name).exists() and local.exists() else name


_MODULES = (
    "numpy.random", "ml_dtypes", "yaml", "simpy", "traces.trace.build", "hwmodel.dram.engine", "hwmodel.energy.total",
    "hwmodel.system.simulation", "cython_ext.cache.level", "reorder.order", "reorder.edges.bounds.bounds",
    "hwmodel.fastmemory.iomodel",
)  # fmt: skip
_KINDS = ("layouts", "formats", "encoders", "cache-policies", "generators", "orderings")


def load(waiting: Callable[[], bool]) -> None:
    """Load what most points need, as long as there is none to compute: the parent still finds out which there are."""
    from edgewatt.results.record import environment

    loads: list[Callable[[], object]] = [partial(importlib.import_module, name) for name in _MODULES]
    loads += [environment, *(partial(lambda kind: len(registry(kind)), kind) for kind in _KINDS)]
    for one in loads:
        if not waiting():
            break
        one()


def answer_stored(task: dict[str, Any]) -> dict[str, Any]:
    return stored(answer(task), task.get("results"), task.get("fsync", False))


def stored(outcome: dict[str, Any], results: str | None, fsync: bool) -> dict[str, Any]:
    if "record" not in outcome:
        return outcome
    record = Record(**outcome["record"])
    result = {
        "hash": outcome["hash"],
        "damaged": record.provenance.get("damaged_stages", []),
        "duration_s": record.provenance["duration_s"],
    }
    if results is not None:
        try:
            Store(results, fsync=fsync, shared=True).put(record)
        except StoreError as error:
            return {"hash": outcome["hash"], "unwritten": str(error)}
    return result
