"""A worker process: ``python -m edgewatt.sweeps.worker`` reads a task a line and answers an outcome a line, both JSON.

Its parent pins BLAS threads to one through the environment. When the parent dies, the pipe closes and the worker ends
at once, in the middle of a task if need be: a point is either in the store or not.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any, BinaryIO


def main() -> None:
    """Serve tasks until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    tasks: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, tasks), daemon=True).start()

    from edgewatt.point.compute import answer

    while True:
        outcome = packed(answer(json.loads(tasks.get())))
        try:
            answers.write(json.dumps(outcome, allow_nan=False).encode() + b"\n")
            answers.flush()
        except BrokenPipeError:
            os._exit(0)


def packed(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome with the text of the record's file for the record: the parent need not read and write it."""
    from edgewatt.results.record import Record

    if "record" not in outcome:
        return outcome
    record = Record(**outcome["record"])
    return {
        "hash": outcome["hash"],
        "packed": record.to_bytes().decode("utf-8", "surrogatepass"),
        "damaged": record.provenance.get("damaged_stages", []),
        "duration_s": record.provenance["duration_s"],
    }


def _listen(stream: BinaryIO, tasks: queue.Queue[bytes]) -> None:
    for line in stream:
        tasks.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
