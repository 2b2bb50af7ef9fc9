"""The page of `edgewatt patches`: the front of peak memory, multiplications and joules, and every plan on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgewatt.pages.html.page import Page, asset, text
from traces.base.units import engineering, in_one_unit


def plan_table(plans: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and cells of the table of plans, their energies in one unit."""
    unit, energies = in_one_unit([plan["uj"] for plan in plans], 1e-6, "J")
    cells: list[tuple[str, ...]] = [
        (f"{p['peak']:,}", f"{p['multiplications']:,}", f"{p['factor']:.3f}", f"{p['offchip']:,}", spent, p["blocks"])
        for p, spent in zip(plans, energies, strict=True)
    ]
    return ("peak B", "multiplications", "factor", "off-chip B", unit, "blocks"), cells


def patches_page(title: str, words: Sequence[str], plans: Sequence[Mapping[str, Any]]) -> str:
    """Return the page as HTML; it loads nothing from elsewhere.

    plans: peak (bytes), factor, multiplications, offchip (bytes), uj (microjoules or None), blocks (text), by peak.
    """
    columns, table = plan_table(plans)
    rows = []
    for *cells, blocks in table:
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        rows.append(f'<tr>{numbers}<td class="blocks">{text(blocks)}</td></tr>')
    body = asset(__file__, "patches.html").format(
        words="".join(f"<p>{text(line)}</p>" for line in words),
        head="".join(f"<th>{name}</th>" for name in columns),
        rows="".join(rows),
    )
    style, script = asset(__file__, "patches.css"), asset(__file__, "patches.js")
    shown = [{**plan, "energy": _energy(plan["uj"])} for plan in plans]
    return Page(title, body, style=style, data={"plans": shown}, script=script).html()


def _energy(uj: float | None) -> str:
    return engineering(None if uj is None else uj * 1e-6, "J", 4)
