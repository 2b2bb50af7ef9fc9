"""Errors a user can mend: each says where, what is wrong and, where known, what to do."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_LONGEST, _MOST = 60, 80  # characters of a name, and names, that a message lists
_RUN, _LINE = 260, 1200  # characters of a message without white space (more than a file's name has), and of a line
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class EdgewattError(Exception):
    """Base of every error this suite raises on purpose."""


class InputError(EdgewattError, ValueError):
    """Something the user gave cannot be used. The command line prints it and exits with status 2.

    Control characters, which names in hostile files may hold, are written as escapes: none reaches a terminal. What it
    quotes of a file is cut where it is endless.
    """

    def __init__(self, *given: object) -> None:
        super().__init__(*(cut(each.translate(_ESCAPES)) if isinstance(each, str) else each for each in given))


def cut(text: str) -> str:
    """Return a message whose lines people can read: endless words and lines lose their middle; paths stay whole."""
    if len(text) <= _RUN:
        return text
    text = re.sub(rf"[^\s/\\]{{{_RUN + 1},}}", lambda run: f"{run[0][:100]}...{run[0][-20:]}", text)
    lines = text.split("\n")
    return "\n".join(line if len(line) <= _LINE else f"{line[:900]} ... {line[-200:]}" for line in lines)


class EdgewattWarning(UserWarning):
    """Base of every warning this suite gives on purpose; the command line prints it as one line."""


class IgnoredSettingWarning(EdgewattWarning):
    """A setting that varies, or was asked for, has no influence on what is shown."""


class WastedRoomWarning(EdgewattWarning):
    """Room of a memory stays empty, and a setting would fill it."""


class MissingExtraError(EdgewattError, ImportError):
    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package!r}: {install_command(extra)}")


def install_command(extra: str) -> str:
    root = Path(__file__).parents[2]
    if not (root / "setup.cfg").is_file():
        return f"pip install 'edgewatt[{extra}]'"
    python, here = Path(sys.executable), Path.cwd()
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    where = "." if root == here else str(root)
    return f"{shown} -m pip install -e '{where}[{extra}]'"


def brief(error: BaseException) -> str:
    text = "".join(c if c.isprintable() else " " for c in str(error))
    return " ".join(text.split())[:200] or type(error).__name__


def shown(value: object, limit: int = 60) -> str:
    """Return a value as messages show it: quoted, printable, at most `limit` characters, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # what cannot be shown is told by its type
        name = type(value).__name__
        return f"an {name}" if name[0] in "aeiou" else f"a {name}"
    text = text if text.isprintable() else ascii(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def printable(path: object) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(path))


def did_you_mean(name: object, *known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest known name, else the known names, to end a message with.

    known: names, the first of which that are close are meant; the last are those that are listed.
    """
    names: list[str] = []
    for each in known:
        names = sorted({one[:_LONGEST] for one in each})  # they may come from a file
        begun = [one for one in names if len(str(name)) > 2 and one.lower().startswith(str(name).lower())]
        close = begun or difflib.get_close_matches(str(name)[:_LONGEST], names[:1000], n=1)
        if close:
            return f" (did you mean {close[0]!r}?)"
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f" (known: {', '.join(names[:_MOST])}{more})" if names else ""


def unknown_name(what: str, name: object, known: Iterable[str]) -> InputError:
    return InputError(f"unknown {what} {name!r}{did_you_mean(name, known)}")
