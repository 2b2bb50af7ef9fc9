"""Child processes: they run none of the modules that happen to lie in the current folder, and end with their parent."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_OUR_FOLDER = str(Path(__file__).parents[2])


@contextlib.contextmanager
def safe_children() -> Iterator[None]:
    """Let Python processes that are started inside begin without the current folder on their path (`python -P`)."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def end_with_parent() -> None:
    """Let this process of a pool end when its parent has: a parent that is killed cannot tell its pool."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


_waited = 0.0


def cpu_seconds() -> float:
    """CPU seconds of this process; seconds in which it waited for a process aside count too."""
    return time.process_time() + _waited


def call_aside(seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return function(*arguments), both as `pickle` takes them, of a process of its own: for what cannot be stopped.

    That process does not run the caller's main module again, which need not guard itself. Raises what the function
    raises; TimeoutError after `seconds` or where the process dies: it has ended then.
    """
    global _waited
    import pickle
    import subprocess

    began = time.perf_counter()
    process = subprocess.Popen(
        module_command("traces.base.children"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        answer = process.communicate(pickle.dumps((function, arguments)), timeout=max(seconds, 0.0))[0]
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"not done after {seconds:.1f} s") from error
    finally:
        process.kill()
        process.communicate()
        _waited += time.perf_counter() - began
    if process.returncode:
        raise TimeoutError("the process has died")
    failed, result = pickle.loads(answer)
    if failed is not None:
        raise failed
    return result


def _answer() -> None:
    """Do the one call that standard input holds."""
    import pickle
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    to = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not mix with the answer
    function, arguments = pickle.loads(sys.stdin.buffer.read())
    answer: tuple[Exception | None, Any]
    try:
        answer = None, function(*arguments)
    except Exception as error:
        answer = error, None
    with os.fdopen(to, "wb") as stream:
        stream.write(pickle.dumps(answer))


def forget_current_folder() -> None:
    """Take what `python -m` put first off the path: the current folder. Where we ourselves lie in it, it goes last."""
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0] or ".") == os.path.realpath("."):
        first = sys.path.pop(0)
        if os.path.realpath(first or ".") == os.path.realpath(_OUR_FOLDER):
            sys.path.append(first)


def module_command(module: str) -> list[str]:
    """Return the command that runs one of our modules with the path of this process, the library's own modules first.

    What this process found on its path is found by the child, too, but never in place of Python's or installed modules;
    our own packages are the same files as here.
    """
    own = next((p for p in sys.path if p and os.path.realpath(p) == os.path.realpath(_OUR_FOLDER)), _OUR_FOLDER)
    more = [os.path.abspath(p) for p in sys.path]
    start = (
        "import sys; "
        f"own, more = {own!r}, {more!r}; "
        "installed = [i for i, p in enumerate(sys.path) if p.endswith(('site-packages', 'dist-packages'))]; "
        "at = installed[0] if installed else len(sys.path); "
        "sys.path.insert(at, own); "
        "sys.path += [p for p in more if p not in sys.path]; "
        f"from runpy import run_module; run_module({module!r}, run_name='__main__')"
    )
    return [sys.executable, "-P", "-c", start]


if __name__ == "__main__":
    _answer()
