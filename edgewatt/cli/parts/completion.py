"""Names that the shell completes: members of kinds and shipped files, looked up when the key is pressed."""

from __future__ import annotations

from collections.abc import Callable


def names_of(what: str) -> Callable[[str], list[str]]:
    """Return a completion of the names that `edgewatt list WHAT` shows."""

    def complete(incomplete: str) -> list[str]:
        from edgewatt.catalogue import catalogue

        return [entry["name"] for entry in catalogue(what) if entry["name"].startswith(incomplete.lower())]

    return complete


def kinds(incomplete: str) -> list[str]:
    """Complete what `edgewatt list` can list."""
    from edgewatt.catalogue import lists

    return [name for name in (*lists(), "schema") if name.startswith(incomplete)]
