"""A worker process of `traces.base.workers`: ``python -m traces.base.worker MODULE [READ,WRITE ...]``.

It answers pieces, each a length and a pickle of (function, arguments), in their order. Several workers are copies of
the first one, made when it has loaded. When the parent dies, the pipe closes and the worker ends at once.
"""

from __future__ import annotations

import gc
import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO

from traces.base.errors import EdgewattError
from traces.base.subprocesses import module_command

TOGETHER_S = 0.03
"""How long the answer of a small piece waits for the next, so that the parent is woken less often."""

Ends = tuple[int, int]
_outcomes: queue.SimpleQueue[bytes] | None = None
_idle = threading.Event()


def report(*values: Any) -> None:
    """Tell the parent of a piece that is under way (`hear` of Workers.map); elsewhere nothing happens."""
    if _outcomes is not None:
        _outcomes.put(_framed("report", values))


def main() -> None:
    """Serve pieces until standard input closes. Arguments: a module to load, and the pipe ends of further workers."""
    global _outcomes
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    own = os.dup(0), os.dup(1)
    module, further = sys.argv[1], [_ends(text) for text in sys.argv[2:]]
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # whatever a library prints must not mix with the answers
    if further:
        given = select.poll()
        for read, _ in (own, *further):
            given.register(read, select.POLLIN)
        load(module, lambda: not given.poll(0))
        own = _copied(module, own, further)
    pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(os.fdopen(own[0], "rb"), pieces), daemon=True).start()
    _outcomes = queue.SimpleQueue()
    threading.Thread(target=_tell, args=(os.fdopen(own[1], "wb"), _outcomes), daemon=True).start()
    load(module, pieces.empty)
    while True:
        piece = pieces.get()
        _idle.clear()
        _outcomes.put(_answer(piece))
        if pieces.empty():
            _idle.set()


def load(module: str, waiting: Callable[[], bool]) -> None:
    """Load a module, and what its function `load` says, as long as there is no piece to do."""
    if module and waiting():
        more = getattr(import_module(module), "load", None)
        if more is not None:
            more(waiting)


def _answer(packed: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(packed)
        return _framed("result", function(*arguments))
    except (Exception, SystemExit) as error:  # the code of others may end the program
        error.add_note("".join(traceback.format_exception(error)))
        try:
            framed = _framed("error", error)
            pickle.loads(framed[8:])
        except Exception:  # what cannot travel is told
            return _framed("error", EdgewattError(f"{type(error).__name__}: {error}"))
        return framed


def _framed(kind: str, value: Any) -> bytes:
    packed = pickle.dumps((kind, value), pickle.HIGHEST_PROTOCOL)
    return len(packed).to_bytes(8, "little") + packed


def _ends(text: str) -> Ends:
    read, write = map(int, text.split(","))
    for descriptor in (read, write):
        os.set_inheritable(descriptor, False)
    return read, write


def _copied(module: str, first: Ends, further: list[Ends]) -> Ends:
    """Become one of the workers, this process the first and copies of it the others; return its own pipe ends.

    Where something that was loaded runs a thread, a copy would lack it: the others are then started anew.
    """
    gc.freeze()  # or the first collection would write to, and copy, every page
    own, alone = first, len(os.listdir("/proc/self/task")) == 1
    for ends in further:
        if not alone:
            subprocess.Popen([*module_command("traces.base.worker"), module], stdin=ends[0], stdout=ends[1])
        elif os.fork() == 0:
            own = ends
            break
    for descriptor in {*first, *(end for ends in further for end in ends)} - {*own}:
        os.close(descriptor)
    return own


def _tell(stream: BinaryIO, outcomes: queue.SimpleQueue[bytes]) -> None:
    """Write answers, those of some milliseconds at once."""
    while True:
        frames = [outcomes.get()]
        _idle.wait(TOGETHER_S)
        while not outcomes.empty():
            frames.append(outcomes.get())
        try:
            stream.write(b"".join(frames))
            stream.flush()
        except BrokenPipeError:
            os._exit(0)


def _listen(stream: BinaryIO, pieces: queue.SimpleQueue[bytes]) -> None:
    while len(size := stream.read(8)) == 8:
        pieces.put(stream.read(int.from_bytes(size, "little")))
    os._exit(0)


if __name__ == "__main__":
    from traces.base.worker import main as serve  # the module that pieces import, not a second one

    serve()
