"""The frame of every page: one template and one stylesheet; a page is one file that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edgewatt.pages.html.escaping import json_pieces, text
from edgewatt.pages.html.vega import libraries


@dataclass(frozen=True)
class Page:
    """A heading, the switch of light and dark, and `body`.

    title, subtitle: plain text. body: HTML whose texts are escaped. style: rules of this page besides page.css.
    data: JSON for the script, in the element `data`; a function in it is called for its value. script: a module; the
    event `themechange` of the document tells it that colours changed. charts: with Vega, Vega-Lite and vega-embed
    (extra `report`), and charts.js at the beginning of the script.
    """

    title: str
    body: str
    subtitle: str | None = None
    style: str = ""
    data: Any = None
    script: str = ""
    charts: bool = False

    def html(self) -> str:
        """Return the page as one text."""
        return "".join(self.pieces())

    def pieces(self) -> Iterator[str]:
        """Yield the page piece by piece. Raises MissingExtraError for charts without the extra `report`."""
        before, behind = asset(__file__, "page.html").split("{scripts}")
        yield before.format(
            title=text(self.title),
            subtitle=f'<p class="sub">{text(self.subtitle)}</p>' if self.subtitle is not None else "",
            # Vega compiles its expressions: only pages with charts may evaluate text.
            evaluates=" 'unsafe-eval'" if self.charts else "",
            style=asset(__file__, "page.css") + self.style,
            body=self.body,
        )
        yield f"<script>{asset(__file__, 'theme.js')}</script>"
        if self.data is not None:
            yield '\n<script type="application/json" id="data">'
            yield from json_pieces(self.data)
            yield "</script>"
        if self.charts:
            yield f'\n<script type="module">{libraries()}</script>'
        script = "\n".join(filter(None, (asset(__file__, "charts.js") if self.charts else "", self.script)))
        if script:
            yield f'\n<script type="module">{script}</script>'
        yield behind


@cache
def asset(module: str, name: str) -> str:
    """Return the text of a file beside a module, which says where it is by its own `__file__`."""
    return (Path(module).parent / name).read_text("utf-8")
