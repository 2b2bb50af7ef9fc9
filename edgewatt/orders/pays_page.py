"""A self-contained page of a study: the verdict, and a map of the savings with the break-even line."""

from __future__ import annotations

from edgewatt.orders.pays import METRICS, WORDS, Pays, kib
from edgewatt.reporting.escaping import NO_SCRIPT
from edgewatt.reporting.escaping import text as escape

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:0 0 2em}
td,th{padding:.35em .7em;text-align:right;font-variant-numeric:tabular-nums}
th:first-child{text-align:left}td.edge{border-right:4px solid #111}caption{text-align:left;font-weight:600}
.note{color:#555}"""


def pays_page(found: Pays) -> str:
    """Return the page as HTML: one map per metric, rows the choices, columns the sizes; nothing is loaded from outside.

    Blue saves, red costs more; the thick line is the break-even size, found by bisection between the sizes shown.
    """
    choices = list(found.break_even)
    sizes = sorted({point.size_bytes for point in found.points})
    at = {(str(point.choice), point.size_bytes): point for point in found.points}
    maps = []
    for metric in METRICS:
        rows = []
        for choice in choices:
            last = found.break_even[choice][metric]
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
                    f'title="{escape(f"M = {point.memory}")}">{-100 * saving:+.1f}</td>'
                )
            says = "never pays" if last is None else "pays throughout" if metric in found.beyond[choice] else kib(last)
            rows.append(f"<tr><th>{escape(choice)}</th>{''.join(cells)}<td>{says}</td></tr>")
        heads = "".join(f"<th>{kib(size)}</th>" for size in sizes)
        maps.append(
            f"<table><caption>{WORDS[metric]}, change in %</caption><tr><th>machine</th>{heads}<th>break-even</th></tr>"
            + "".join(rows)
            + "</table>"
        )
    title = f"Does {escape(found.names[0])} pay against {escape(found.names[1])}?"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">{NO_SCRIPT}<title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(found.verdict)}</p>"
        f'<p class="note">Both orders in layout {escape(found.layout)}. The thick line stands where the order stops '
        "paying; the last column has the size.</p>" + "".join(maps) + "</html>\n"
    )


def _colour(saving: float) -> str:
    """Return blue for savings and red for losses, full at 50 per cent."""
    share = min(abs(saving) / 0.5, 1.0)
    rest = round(255 - 135 * share)
    return f"rgb({rest},{rest + (255 - rest) // 3},255)" if saving > 0 else f"rgb(255,{rest},{rest})"
