"""The frame of every page: one template and one stylesheet; a page is one file that asks nothing of the network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edgewatt.reporting.escaping import json_pieces, text
from traces.base.errors import EdgewattError, MissingExtraError


def frame(
    title: str,
    body: str,
    *,
    subtitle: str | None = None,
    style: str = "",
    data: Any = None,
    scripts: Sequence[str] = (),
    charts: bool = False,
) -> str:
    """Return a page as one text: see `framed`."""
    return "".join(framed(title, body, subtitle=subtitle, style=style, data=data, scripts=scripts, charts=charts))


def framed(
    title: str,
    body: str,
    *,
    subtitle: str | None = None,
    style: str = "",
    data: Any = None,
    scripts: Sequence[str] = (),
    charts: bool = False,
) -> Iterator[str]:
    """Yield a page piece by piece: heading, switch of light and dark, `body`.

    title, subtitle: plain text. body: HTML whose texts are escaped. style: rules of this page besides frame.css.
    data: JSON for the scripts, in the element `data`; a function in it is called for its value. scripts: modules in
    this order; the event `themechange` of the document tells them that colours changed. charts: with Vega, Vega-Lite
    and vega-embed (extra `report`).
    """
    # Vega compiles its expressions: only pages with charts may evaluate text.
    before, behind = (
        asset("frame.html")
        .format(
            title=text(title),
            subtitle=f'<p class="sub">{text(subtitle)}</p>' if subtitle is not None else "",
            evaluates=" 'unsafe-eval'" if charts else "",
            style=asset("frame.css") + style,
            body=body,
            scripts=_SCRIPTS,
        )
        .rsplit(_SCRIPTS, 1)
    )
    yield before
    yield f"<script>{asset('theme.js')}</script>"
    if data is not None:
        yield '\n<script type="application/json" id="data">'
        yield from json_pieces(data)
        yield "</script>"
    if charts:
        yield f'\n<script type="module">{libraries()}</script>'
    for script in scripts:
        yield f'\n<script type="module">{script}</script>'
    yield behind


_SCRIPTS = "\0scripts\0"  # no text of a page has a zero in it


@cache
def asset(name: str) -> str:
    """Return the text of a file beside this module."""
    return (Path(__file__).parent / name).read_text("utf-8")


_BUNDLE = """
import os, sys, vl_convert
try:
    sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())
    sys.stdout.flush()
except BrokenPipeError:  # who asked was ended
    os._exit(1)
"""


def need_charts() -> None:
    """Raise MissingExtraError where no chart can be drawn: before hours of work for a page of them."""
    if find_spec("vl_convert") is None:
        raise MissingExtraError("vl-convert-python", "report")


@cache
def libraries() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script. Raises MissingExtraError without the extra `report`."""
    need_charts()
    # In a process of its own: bundling takes 150 MB, which this one would never give back.
    # In a group of its own: Ctrl-C is for this process, which ends the other.
    made = subprocess.run([sys.executable, "-P", "-c", _BUNDLE], stdout=subprocess.PIPE, check=False, process_group=0)
    if made.returncode:
        raise EdgewattError("vl-convert-python cannot give the scripts of a page's charts: install it again")
    script = made.stdout.decode()
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table that scrolls in its place: first column texts, the others numbers. Cells are plain text."""
    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    whole = f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{whole}</div>'


def plot(width: float, height: float, label: str, shapes: str) -> str:
    """Return a drawing that is as wide as its place."""
    return f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-label="{text(label)}">{shapes}</svg>'
