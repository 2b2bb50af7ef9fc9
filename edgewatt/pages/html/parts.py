"""Tables and drawings, as all pages show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgewatt.pages.html.escaping import text


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table that scrolls in its place: first column texts, the others numbers. Cells are plain text."""
    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    whole = f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{whole}</div>'


def plot(width: float, height: float, label: str, shapes: str) -> str:
    """Return a drawing that is as wide as its place."""
    return f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-label="{text(label)}">{shapes}</svg>'
