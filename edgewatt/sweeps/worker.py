"""A worker process: ``python -m edgewatt.sweeps.worker`` reads a task a line and answers an outcome a line, both JSON.

The record of a task that names a store is written there, not answered. Its parent pins BLAS threads to one through the
environment. When the parent dies, the pipe closes and the worker ends at once, in the middle of a task if need be: a
point is either in the store or not.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from edgewatt.results.record import Record
from edgewatt.results.store import Store, StoreError

TOGETHER_S = 0.015
"""How long the answer of a small task waits for the next, so that the parent is woken less often."""


_MODULES = (
    "numpy.random",
    "ml_dtypes",
    "yaml",
    "simpy",
    "traces.access.build",
    "hwmodel.dram.engine",
    "hwmodel.energy.replay",
    "hwmodel.system.simulation",
    "cython_ext.cache.level",
    "reorder.order",
    "reorder.limits.bounds",
    "hwmodel.fastmemory.iomodel",
)
_KINDS = ("layouts", "formats", "encoders", "cache-policies", "generators", "orderings")


def main() -> None:
    """Serve tasks until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, tasks), daemon=True).start()

    from edgewatt.point.compute import answer

    outcomes: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    idle = threading.Event()
    threading.Thread(target=_tell, args=(answers, outcomes, idle), daemon=True).start()
    load(tasks.empty)
    while True:
        task = json.loads(tasks.get())
        idle.clear()
        outcome = stored(answer(task), task.get("results"), task.get("fsync", False))
        outcomes.put(json.dumps(outcome, allow_nan=False).encode() + b"\n")
        if tasks.empty():
            idle.set()


def load(waiting: Callable[[], bool]) -> None:
    """Load what most points need, as long as there is none to compute: the parent still finds out which there are."""
    from edgewatt.config.kinds import registry
    from edgewatt.results.provenance import environment

    loads: list[Callable[[], object]] = [partial(importlib.import_module, name) for name in _MODULES]
    loads += [environment, *(partial(lambda kind: len(registry(kind)), kind) for kind in _KINDS)]
    for one in loads:
        if not waiting():
            break
        one()


def _tell(stream: BinaryIO, outcomes: queue.SimpleQueue[bytes], idle: threading.Event) -> None:
    """Write outcomes, those of some milliseconds at once."""
    while True:
        lines = [outcomes.get()]
        idle.wait(TOGETHER_S)
        while not outcomes.empty():
            lines.append(outcomes.get())
        try:
            stream.write(b"".join(lines))
            stream.flush()
        except BrokenPipeError:
            os._exit(0)


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
            Store(results, fsync=fsync).put(record)
        except StoreError as error:
            return {"hash": outcome["hash"], "unwritten": str(error)}
    return told


def _listen(stream: BinaryIO, tasks: queue.SimpleQueue[bytes]) -> None:
    for line in stream:
        tasks.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
