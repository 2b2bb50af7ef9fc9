"""Errors a user can mend: each says where, what is wrong and, where known, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class EdgewattError(Exception):
    """Base of every error this suite raises on purpose."""


class InputError(EdgewattError, ValueError):
    """Something the user gave cannot be used. The command line prints it and exits with status 2.

    Control characters, which names in hostile files may hold, are written as escapes: none reaches a terminal.
    """

    def __init__(self, *given: object) -> None:
        super().__init__(*(each.translate(_ESCAPES) if isinstance(each, str) else each for each in given))


class EdgewattWarning(UserWarning):
    """Base of every warning this suite gives on purpose; the command line prints it as one line."""


class DamageWarning(EdgewattWarning):
    """A damaged file was set aside and what it held is made again."""


class IgnoredSettingWarning(EdgewattWarning):
    """A setting that varies, or was asked for, has no influence on what is shown."""


class MissingExtraError(EdgewattError, ImportError):
    """An optional dependency is absent; the message holds the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package!r}: pip install 'edgewatt[{extra}]'")


def brief(error: BaseException) -> str:
    """Return a library's message fit for one line: without control characters, at most 200 characters."""
    text = "".join(c if c.isprintable() else " " for c in str(error))
    return " ".join(text.split())[:200] or type(error).__name__


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest known name, else the known names, to end a message with."""
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(names)})" if names else ""


def unknown_name(what: str, name: object, known: Iterable[str]) -> InputError:
    """Build the error for a name that no registry holds, with a suggestion."""
    return InputError(f"unknown {what} {name!r}{did_you_mean(name, known)}")
