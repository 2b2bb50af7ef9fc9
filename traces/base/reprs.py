"""How results look in a session: one short line, and a small table in a notebook."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping

_MOST = 60  # characters of a value in the line


class OneLineRepr(ABC):
    """A class that says what it is in few words, by its `_repr_fields`; dataclasses have ``repr=False``."""

    @abstractmethod
    def _repr_fields(self) -> Mapping[str, object]:
        """Return what matters, by name, the most telling first; None leaves a fact out."""

    def __repr__(self) -> str:
        facts = {name: _text(value) for name, value in self._repr_fields().items() if value is not None}
        return f"<{type(self).__name__} {', '.join(f'{name} {value[:_MOST]}' for name, value in facts.items())}>"

    def _repr_html_(self) -> str:
        """Return a small table; whatever a file named is text."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>"
            f"{html.escape(_text(value))}</td></tr>"
            for name, value in self._repr_fields().items()
            if value is not None
        )
        return f"<table><thead><tr><th colspan='2'>{type(self).__name__}</th></tr></thead><tbody>{rows}</tbody></table>"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if isinstance(value, float) else str(value)
    return "".join(c if c.isprintable() else " " for c in text)
