"""The page of `edgewatt learn eon`: misses over CPU time, a curve a seed, beside the misses of other orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgewatt.reporting.escaping import text
from edgewatt.reporting.frame import frame, plot, table

if TYPE_CHECKING:
    from reorder.learning.eon.training import State

_WIDTH, _HEIGHT, _LEFT, _BELOW = 860, 340, 64, 40
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")  # Okabe and Ito 2008


def learning_page(name: str, memory: int, runs: Sequence[State], rows: Sequence[tuple[str, int]]) -> str:
    """Return the page as HTML; it asks the network for nothing. rows: (order, misses)."""
    words = (
        f"Misses of an order in an LRU cache of {memory - 1} neurons. Thick: the mean of the 32 orders of an "
        "iteration; thin: the best so far; dashed: EGO."
    )
    ego = dict(rows).get("ego")
    runs_table = [
        (
            str(run.seed),
            f"{run.iteration:,}",
            f"{run.seconds:.0f}",
            f"{run.curve[-1].mean:.0f}",
            f"{run.curve[-1].best:,}",
        )
        for run in runs
        if run.curve
    ]
    body = [
        f'<section class="verdict"><p>{text(words)}</p></section>',
        f'<div class="card">{_picture(runs, ego)}</div>',
        "<h2>Runs</h2>",
        table(("seed", "iterations", "CPU seconds", "mean at the end", "best"), runs_table),
        "<h2>Beside other orders</h2>",
        table(("order", "misses"), [(order, f"{n:,}") for order, n in rows]),
    ]
    return frame(f"EON on {name}", "".join(body))


def _picture(runs: Sequence[State], ego: int | None) -> str:
    looks = [look for run in runs for look in run.curve]
    if not looks:
        return "<p>No iteration was finished.</p>"
    longest = max(look.seconds for look in looks) or 1.0
    values = [*(look.mean for look in looks), *(look.best for look in looks), *([] if ego is None else [ego])]
    low, high = min(values), max(values)
    span = max(high - low, 1.0)

    def x(seconds: float) -> float:
        return _LEFT + seconds / longest * (_WIDTH - _LEFT - 16)

    def y(value: float) -> float:
        return 10 + (high - value) / span * (_HEIGHT - _BELOW - 10)

    lines = []
    for k, run in enumerate(runs):
        colour = _COLOURS[k % len(_COLOURS)]
        for width, series in (
            (2.5, [(p.seconds, p.mean) for p in run.curve]),
            (1, [(p.seconds, p.best) for p in run.curve]),
        ):
            points = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in series)
            lines.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}">'
                f"<title>seed {run.seed}</title></polyline>"
            )
    if ego is not None:
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 16}" y1="{y(ego):.1f}" y2="{y(ego):.1f}" stroke="var(--soft)" '
            'stroke-dasharray="6 4"/>'
        )
    ticks = [
        f'<text x="{_LEFT - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:,.0f}</text>'
        for v in (low, (low + high) / 2, high)
    ] + [
        f'<text x="{x(s):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{s:.0f} s</text>'
        for s in (0, longest / 4, longest / 2, 3 * longest / 4, longest)
    ]
    return plot(_WIDTH, _HEIGHT, "misses over CPU seconds", "".join(lines) + "".join(ticks))
