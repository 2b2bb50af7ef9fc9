"""The page of `edgewatt token`: the answer, bars and tables of energy, every tensor. Self-contained HTML."""

from __future__ import annotations

from collections.abc import Sequence

from edgewatt.pages.html.page import Page, plot, table, text
from traces.base.units import energy

_WIDTH, _BAR, _LEFT, _LONGEST = 760, 26, 190, 430
Heads = tuple[str, ...]


def token_page(
    title: str,
    subtitle: str,
    lines: Sequence[str],
    parts: Sequence[tuple[str, Heads, Sequence[Sequence[object]], Sequence[float]]],
    tensors: tuple[Heads, Sequence[Sequence[object]]],
    left_out: int,
) -> str:
    body = f'<section class="verdict">{"".join(f"<p>{text(line)}</p>" for line in lines)}</section>'
    for heading, heads, rows, pj in parts:
        bars = _bars([str(row[0]) for row in rows], pj, heading)
        body += f'<h2>{text(heading)}</h2><div class="card">{bars}</div><p></p>{table(heads, rows)}'
    more = f" {left_out:,} with less energy are left out." if left_out else ""
    body += f"<h2>Tensors</h2><p>Terms of data wires by what each tensor's bits do, all others by bursts.{more}</p>"
    return Page(title, body + table(*tensors), subtitle=subtitle).html()


def _bars(names: Sequence[str], pj: Sequence[float], label: str) -> str:
    longest = max(pj, default=0.0) or 1.0
    shapes = []
    for k, (name, each) in enumerate(zip(names, pj, strict=True)):
        y, width = k * _BAR, max(1.0, _LONGEST * each / longest)
        shapes.append(
            f"<text x='{_LEFT - 8}' y='{y + 17}' text-anchor='end'>{text(name)}</text>"
            f"<rect x='{_LEFT}' y='{y + 4}' width='{width:.1f}' height='{_BAR - 8}' fill='var(--mark)'/>"
            f"<text x='{_LEFT + 8 + width:.1f}' y='{y + 17}'>{energy(each)}</text>"
        )
    return plot(_WIDTH, _BAR * len(names) + 4, label, "".join(shapes))
