"""Pages about orders: savings of a study with the break-even line, and what training lowers over CPU time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgewatt.orders.pays import METRICS, WORDS, PayPoint, Pays, change, kib
from edgewatt.pages.html.page import Page, plot, table, text
from traces.base.units import shares_in_words

LAYOUT_WORDS = {"auto": "chosen for each order"}

_STYLE = """
table.map td { text-align: right; }
table.map td.edge { border-right: 4px solid var(--ink); }
table.map th:first-child { text-align: left; white-space: normal; max-width: 24rem; }
"""


def pays_page(study: Pays) -> str:
    """Return the page as HTML: one map per metric, rows the choices, columns the sizes; nothing is loaded from outside.

    Blue saves, red costs more; the thick line is the break-even size, found by bisection between the sizes shown unless
    each of these has its own order.
    """
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


def _tip(point: PayPoint) -> str:
    """Return what a cell says when it is pointed at: the memory, and what bounds the time of both orders."""
    bounds = (shares_in_words(each["bound_by"]) for each in (point.order, point.against))
    return "M = {}; time bound by {} % (against: {} %)".format(point.memory, *bounds)


def _colour(saving: float) -> str:
    """Return blue for savings and red for losses, fullest at 50 per cent, on the page's own ground (light or dark)."""
    share = round(45 * min(abs(saving) / 0.5, 1.0))
    return f"color-mix(in srgb,{'#2f81f7' if saving > 0 else '#f04438'} {share}%,var(--page))"


if TYPE_CHECKING:
    from reorder.eon.training import TrainingState

_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT = 860, 340, 64, 40, 16
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")  # Okabe and Ito 2008


@dataclass(frozen=True)
class Curve:
    """(CPU seconds, value) points of one training. seed: which colour, counted from 0; not a seed of random numbers."""

    seed: int
    title: str
    points: list[tuple[float, float]]
    width: float


def eon_page(name: str, memory: int, runs: Sequence[TrainingState], rows: Sequence[tuple[str, int]]) -> str:
    """Return the page of EON's runs on a network as HTML; it loads nothing from elsewhere. rows: (order, misses)."""
    words = (
        f"Misses of an order in an LRU cache of {memory - 1} neurons. Thick: the mean of the orders that an iteration "
        "draws; thin: the order that takes the likeliest connections, the best so far; dashed: EGO."
    )
    done = [run for run in runs if run.curve]
    curves = [
        Curve(
            k,
            f"seed {run.seed}",
            [(p.seconds, p.best_likeliest if thin else p.mean) for p in run.curve],
            1 if thin else 2.5,
        )
        for k, run in enumerate(done)
        for thin in (False, True)
    ]
    ego = dict(rows).get("ego")
    heads = ("seed", "iterations", "CPU seconds", "mean at the end", "likeliest", "best sample")
    runs_table = [
        (run.seed, f"{run.iteration:,}", f"{run.seconds:.0f}", f"{p.mean:.0f}", f"{p.best_likeliest:,}", f"{p.best:,}")
        for run in done
        for p in run.curve[-1:]
    ]
    body = [
        _top(words, _picture(curves, "misses over CPU seconds", ",.0f", None if ego is None else float(ego))),
        "<h2>Runs</h2>",
        table(heads, runs_table),
        "<h2>Beside other orders</h2>",
        table(("order", "misses"), [(order, f"{n:,}") for order, n in rows]),
    ]
    return Page(f"EON on {name}", "".join(body)).html()


def _top(words: str, picture: str) -> str:
    return f'<section class="verdict"><p>{text(words)}</p></section><div class="card">{picture}</div>'


def _picture(curves: Sequence[Curve], label: str, style: str, mark: float | None) -> str:
    """Return a drawing of the curves; mark: a value for a dashed line; style: of the numbers at the side."""
    points = [point for curve in curves for point in curve.points]
    if not points:
        return "<p>No iteration was finished.</p>"
    longest = max(seconds for seconds, _ in points) or 1.0
    values = [value for _, value in points] + ([] if mark is None else [mark])
    low, high = min(values), max(values)
    span = high - low or 1.0

    def x(seconds: float) -> float:
        return _LEFT + seconds / longest * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return 10 + (high - value) / span * (_HEIGHT - _BELOW - 10)

    lines = []
    for curve in curves:
        places = " ".join(f"{x(seconds):.1f},{y(value):.1f}" for seconds, value in curve.points)
        colour = _COLOURS[curve.seed % len(_COLOURS)]
        lines.append(
            f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{curve.width}">'
            f"<title>{text(curve.title)}</title></polyline>"
        )
    if mark is not None:
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(mark):.1f}" y2="{y(mark):.1f}" stroke="var(--soft)" '
            'stroke-dasharray="6 4"/>'
        )
    lines += [
        f'<text x="{_LEFT - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:{style}}</text>'
        for v in (low, (low + high) / 2, high)
    ]
    lines += [
        f'<text x="{x(s):.1f}" y="{_HEIGHT - 18}" text-anchor="{"end" if s == longest else "middle"}">{s:.3g} s</text>'
        for s in (0, longest / 4, longest / 2, 3 * longest / 4, longest)
    ]
    return plot(_WIDTH, _HEIGHT, label, "".join(lines))
