"""The page of a study of two orders: savings by machine and size, with the break-even line."""

from __future__ import annotations

from edgewatt.orders.break_even import METRICS, WORDS, BreakEven, BreakEvenPoint, change, kib
from edgewatt.pages.html.page import Page, text
from traces.base.units import describe_shares

LAYOUT_WORDS = {"auto": "chosen for each order"}

_STYLE = """
table.map td { text-align: right; }
table.map td.edge { border-right: 4px solid var(--ink); }
table.map th:first-child { text-align: left; white-space: normal; max-width: 24rem; }
"""


def break_even_page(study: BreakEven) -> str:
    """Return the page as HTML: one map per metric, rows the choices, columns the sizes."""
    choices = list(study.break_even)
    sizes = sorted({point.size_bytes for point in study.points})
    at = {(str(point.choice), point.size_bytes): point for point in study.points}
    maps = []
    for metric in METRICS:
        rows = []
        for choice in choices:
            last = study.break_even[choice][metric]
            cells = []
            for k, size in enumerate(sizes):
                point = at.get((choice, size))
                if point is None:
                    cells.append("<td></td>")
                    continue
                saving = point.saving(metric)
                after = sizes[k + 1] if k + 1 < len(sizes) else None
                edge = last is not None and size <= last and after is not None and after > last
                cells.append(
                    f'<td style="background:{_colour(saving)}"{" class=edge" if edge else ""} '
                    f'title="{text(_tip(point))}">{"* " if study.marked(point) else ""}{change(saving)}</td>'
                )
            says = "never pays" if last is None else kib(last)
            if metric in study.beyond[choice]:
                says = f"beyond {says}" if study.crossings[choice][metric] else "pays throughout"
            rows.append(f"<tr><th>{text(choice)}</th>{''.join(cells)}<td>{says}</td></tr>")
        heads = "".join(f'<th class="number">{kib(size)}</th>' for size in sizes)
        head = f'<thead><tr><th>machine</th>{heads}<th class="number">break-even</th></tr></thead>'
        whole = f'<table class="map">{head}<tbody>{"".join(rows)}</tbody></table>'
        maps.append(f'<h2>{WORDS[metric]}, change in %</h2><div class="scroll">{whole}</div>')
    marked = "* " if any(map(study.marked, study.points)) else ""
    made_for = f"<p>{text(marked + study.made_for)}</p>" if study.made_for else ""
    note = f"<p>{text(study.note)}</p>" if study.note else ""
    body = (
        f'<section class="verdict"><p>{text(study.verdict)}</p>{made_for}{note}</section>'
        f'<p class="hint">Layout: {text(LAYOUT_WORDS.get(study.layout, study.layout))}. Blue saves, red costs more. '
        "The thick line "
        "stands where the order stops paying; the last column has the size.</p>" + "".join(maps)
    )
    return Page(f"Does {study.names[0]} pay against {study.names[1]}?", body, style=_STYLE).html()


def _tip(point: BreakEvenPoint) -> str:
    bounds = (describe_shares(each["bound_by"]) for each in (point.order, point.against))
    return "M = {}; time bound by {} % (against: {} %)".format(point.memory, *bounds)


def _colour(saving: float) -> str:
    share = round(45 * min(abs(saving) / 0.5, 1.0))
    return f"color-mix(in srgb,{'#2f81f7' if saving > 0 else '#f04438'} {share}%,var(--page))"
