"""Child processes: they run none of the modules that happen to lie in the current folder, and end with their parent."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

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


def forget_current_folder() -> None:
    """Take what `python -m` put first off the path: the current folder. Where we ourselves lie in it, it goes last."""
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0] or ".") == os.path.realpath("."):
        first = sys.path.pop(0)
        if os.path.realpath(first or ".") == os.path.realpath(_OUR_FOLDER):
            sys.path.append(first)


def module_command(module: str) -> list[str]:
    """Return the command that runs one of our modules with the path of this process.

    Python's own and installed modules come first: none of a folder on the path takes their place.
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
