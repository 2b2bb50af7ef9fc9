"""The two ways in which anything a user or a file names gets into a page: as text, and as data of a script."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

_ESCAPES = re.compile(r"\\\\|\\ud[89ab]..\\ud[c-f]..|(\\ud[89a-f]..|\\u202[89])")  # a backslash, a pair, what goes


def text(value: object) -> str:
    """Return a value as text of an HTML element or attribute; control characters but line ends are shown as such."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in str(value))
    return html.escape(shown)


def script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no '<', so neither an end tag nor a comment.

    Halves of a surrogate pair, which browsers crash on, and Unicode's line separators, which Vega cannot read inside a
    text, become U+FFFD.
    """
    raw = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    if "\\ud" in raw or "\\u202" in raw:
        raw = _ESCAPES.sub(lambda match: match[0] if match[1] is None else "\\ufffd", raw)
    return raw.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def json_pieces(value: Any) -> Iterator[str]:
    """Yield `script_json` of a value piece by piece; a function inside stands for what it returns, one at a time."""
    if callable(value):
        yield script_json(value())
    elif isinstance(value, dict) and any(callable(item) or isinstance(item, dict) for item in value.values()):
        before = "{"
        for key, item in value.items():
            yield f"{before}{script_json(key)}:"
            yield from json_pieces(item)
            before = ","
        yield "}"
    else:
        yield script_json(value)
