"""What a worker process of a sweep loads, and how it answers: the record of a task that names a store is written there.

A process that is killed has written it or not: a point is either in the store or missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from edgewatt.results.record import Record
from edgewatt.results.store import Store, StoreError
from edgewatt.runs.compute import answer

_MODULES = (
    "numpy.random",
    "ml_dtypes",
    "yaml",
    "simpy",
    "traces.trace.build",
    "hwmodel.dram.engine",
    "hwmodel.energy.replay",
    "hwmodel.system.simulation",
    "cython_ext.cache.level",
    "reorder.order",
    "reorder.edges.bounds.bounds",
    "hwmodel.fastmemory.iomodel",
)
_KINDS = ("layouts", "formats", "encoders", "cache-policies", "generators", "orderings")


def load(waiting: Callable[[], bool]) -> None:
    """Load what most points need, as long as there is none to compute: the parent still finds out which there are."""
    from edgewatt.config.kinds import registry
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
    """Write the record of an outcome into its store, if there is one; return what the parent has to know of it."""
    if "record" not in outcome:
        return outcome
    record = Record(**outcome["record"])
    told = {
        "hash": outcome["hash"],
        "damaged": record.provenance.get("damaged_stages", []),
        "duration_s": record.provenance["duration_s"],
    }
    if results is not None:
        try:
            Store(results, fsync=fsync, shared=True).put(record)
        except StoreError as error:
            return {"hash": outcome["hash"], "unwritten": str(error)}
    return told
