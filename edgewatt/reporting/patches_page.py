"""The page of `edgewatt patches`: the front of peak memory, multiplications and joules, and every plan on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgewatt.reporting.escaping import text
from edgewatt.reporting.frame import asset, frame


def patches_page(title: str, words: Sequence[str], plans: Sequence[Mapping[str, Any]]) -> str:
    """Return the page as HTML; it asks nothing of the network.

    plans: peak (bytes), factor, multiplications, offchip (bytes), uj (microjoules or None), blocks (text), by peak.
    """
    columns = ("peak B", "multiplications", "factor", "off-chip B", "µJ", "blocks")
    rows = []
    for p in plans:
        cells = [f"{p['peak']:,}", f"{p['multiplications']:,}", f"{p['factor']:.3f}", f"{p['offchip']:,}"]
        cells.append("-" if p["uj"] is None else f"{p['uj']:,.2f}")
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        rows.append(f'<tr>{numbers}<td class="blocks">{text(p["blocks"])}</td></tr>')
    body = asset("patches_page.html").format(
        words="".join(f"<p>{text(line)}</p>" for line in words),
        head="".join(f"<th>{name}</th>" for name in columns),
        rows="".join(rows),
    )
    style, script = asset("patches_page.css"), asset("patches_page.js")
    return frame(title, body, style=style, data={"plans": list(plans)}, scripts=[script])
