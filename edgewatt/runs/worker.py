"""Worker processes: ``python -m edgewatt.runs.worker`` reads a task a line and answers an outcome a line, both JSON.

Several workers are copies of the first one, made when it has loaded: what all need is loaded once, and lies in memory
once. The record of a task that names a store is written there, not answered. Their parent pins BLAS threads to one
through the environment. When the parent dies, the pipe closes and the worker ends at once, in the middle of a task if
need be: a point is either in the store or not.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from edgewatt.results.record import Record
from edgewatt.results.store import Store, StoreError
from traces.base.children import module_command

TOGETHER_S = 0.03
"""How long the answer of a small task waits for the next, so that the parent is woken less often."""


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


def main() -> None:
    """Serve tasks until standard input closes. Arguments: READ,WRITE, the pipe ends of each further worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    own = os.dup(0), os.dup(1)
    further = [_ends(text) for text in sys.argv[1:]]
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers

    from edgewatt.runs.compute import answer

    if further:
        given = select.poll()
        for read, _ in (own, *further):
            given.register(read, select.POLLIN)
        load(lambda: not given.poll(0))
        own = _copied(own, further)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(own[0], "rb"), tasks), daemon=True).start()
    outcomes: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    idle = threading.Event()
    threading.Thread(target=_tell, args=(os.fdopen(own[1], "wb"), outcomes, idle), daemon=True).start()
    load(tasks.empty)
    while True:
        task = json.loads(tasks.get())
        idle.clear()
        outcome = stored(answer(task), task.get("results"), task.get("fsync", False))
        outcomes.put(json.dumps(outcome, allow_nan=False).encode() + b"\n")
        if tasks.empty():
            idle.set()


Ends = tuple[int, int]


def _ends(text: str) -> Ends:
    read, write = map(int, text.split(","))
    for descriptor in (read, write):
        os.set_inheritable(descriptor, False)
    return read, write


def _copied(first: Ends, further: list[Ends]) -> Ends:
    """Become one of the workers, this process the first and copies of it the others; return its own pipe ends.

    Where something that was loaded runs a thread, a copy would lack it: the others are then started anew.
    """
    gc.freeze()  # or the first collection would write to, and copy, every page
    own, alone = first, len(os.listdir("/proc/self/task")) == 1
    for ends in further:
        if not alone:
            subprocess.Popen(module_command("edgewatt.runs.worker"), stdin=ends[0], stdout=ends[1])
        elif os.fork() == 0:
            own = ends
            break
    for descriptor in {*first, *(end for ends in further for end in ends)} - {*own}:
        os.close(descriptor)
    return own


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
            Store(results, fsync=fsync, shared=True).put(record)
        except StoreError as error:
            return {"hash": outcome["hash"], "unwritten": str(error)}
    return told


def _listen(stream: BinaryIO, tasks: queue.SimpleQueue[bytes]) -> None:
    for line in stream:
        tasks.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
