"""What every page is made of: texts and data that cannot get out of their place, tables, charts, and the frame."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from traces.base.errors import MissingExtraError

_ESCAPES = re.compile(r"\\\\|\\ud[89ab]..\\ud[c-f]..|(\\ud[89a-f]..|\\u202[89])")  # a backslash, a pair, what goes


def text(value: object) -> str:
    """Return a value as text of an HTML element or attribute; control characters but line ends are shown as such."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in str(value))
    return html.escape(shown)


def script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no '<', so neither an end tag nor a comment.

    Halves of a surrogate pair, and line separators that Vega cannot read, become U+FFFD.
    """
    raw = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    if "\\ud" in raw or "\\u202" in raw:
        raw = _ESCAPES.sub(lambda match: match[0] if match[1] is None else "\\ufffd", raw)
    return raw.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def need_charts() -> None:
    if find_spec("vl_convert") is None:
        raise MissingExtraError("vl-convert-python", "report")


@cache
def libraries() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script. Raises MissingExtraError without the extra `report`."""
    need_charts()
    import vl_convert

    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table that scrolls in its place: first column texts, the others numbers. Cells are plain text."""
    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    whole = f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{whole}</div>'


def plot(width: float, height: float, label: str, shapes: str) -> str:
    return f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-label="{text(label)}">{shapes}</svg>'


@dataclass(frozen=True)
class Page:
    """A heading, the switch of light and dark, and `body`.

    title, subtitle: plain text. body: HTML whose texts are escaped. style: rules of this page besides page.css.
    data: JSON for the script, in the element `data`. script: a module; the
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
        before, behind = asset(__file__, "page.html").split("{scripts}")
        head = before.format(
            title=text(self.title),
            subtitle=f'<p class="sub">{text(self.subtitle)}</p>' if self.subtitle is not None else "",
            # Vega compiles its expressions: only pages with charts may evaluate text.
            evaluates=" 'unsafe-eval'" if self.charts else "",
            style=asset(__file__, "page.css") + self.style,
            body=self.body,
        )
        parts = [head, f"<script>{asset(__file__, 'theme.js')}</script>"]
        if self.data is not None:
            parts.append(f'\n<script type="application/json" id="data">{script_json(self.data)}</script>')
        if self.charts:
            parts.append(f'\n<script type="module">{libraries()}</script>')
        script = "\n".join(filter(None, (asset(__file__, "charts.js") if self.charts else "", self.script)))
        if script:
            parts.append(f'\n<script type="module">{script}</script>')
        return "".join([*parts, behind])


@cache
def asset(module: str, name: str) -> str:
    """Return the text of a file beside a module, which says where it is by its own `__file__`."""
    return (Path(module).parent / name).read_text("utf-8")
