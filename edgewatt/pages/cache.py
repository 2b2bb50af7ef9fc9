"""The page of `edgewatt cache`: the miss curve, and hits by level, stream and region. Self-contained HTML."""

from __future__ import annotations

import math

from edgewatt.pages.html.page import Page, plot, table, text
from hwmodel.replay.profile import CacheProfile, MissCurve

_WIDTH, _HEIGHT, _LEFT, _BELOW = 860, 300, 56, 40
_RIGHT, _ABOVE = 34, 16  # room for words that a phone shows larger


def cache_page(profile: CacheProfile, name: str) -> str:
    """Return the page of a profile as HTML; it loads nothing from elsewhere."""
    curve = profile.curve
    kind = "fully associative" if curve.sets == 1 else f"{curve.sets} sets"
    parts = [
        f'<section class="verdict"><p>{profile.accesses:,} accesses, {curve.lookups:,} line look-ups.</p></section>',
        f"<h2>Misses over size</h2><p>LRU, {curve.line_bytes}-byte lines, {kind}; exact at every size.</p>",
        f'<div class="card large-words">{_picture(curve)}</div>',
    ]
    for k, level in enumerate(profile.levels, 1):
        spec, counts = level.spec, level.counts
        parts.append(
            f"<h2>Level {k}: {spec.size_bytes:,} bytes, {spec.line_bytes}-byte lines, {spec.ways} ways, "
            f"{text(spec.policy)}</h2><p>{counts.hits:,} hits, {counts.misses:,} misses, {counts.evictions:,} "
            f"evictions, {counts.writebacks:,} write-backs.</p>"
        )
        for what, named in (("stream", level.streams), ("region", level.regions)):
            parted = [(n, f"{p.lookups:,}", f"{p.misses:,}", f"{p.hit_rate:.4f}") for n, p in named.items()]
            parts.append(table((what, "look-ups", "misses", "hit rate"), parted))
    points = zip(curve.size_bytes.tolist(), curve.misses.tolist(), strict=True)
    rows = [(f"{size:,}", f"{n:,}", f"{n / max(curve.lookups, 1):.4f}") for size, n in points]
    parts += ["<h2>The curve as numbers</h2>", table(("size in bytes", "misses", "miss ratio"), rows)]
    return Page(f"Caches on {name}", "".join(parts)).html()


def _picture(curve: MissCurve) -> str:
    """Return the curve as SVG: miss ratio over the logarithm of the size."""
    sizes = [math.log2(size) for size in curve.size_bytes.tolist()]
    ratios = [n / max(curve.lookups, 1) for n in curve.misses.tolist()]
    span = max(sizes[-1] - sizes[0], 1.0)

    def x(size: float) -> float:
        return _LEFT + (size - sizes[0]) / span * (_WIDTH - _LEFT - _RIGHT)

    def y(ratio: float) -> float:
        return _ABOVE + (1 - ratio) * (_HEIGHT - _BELOW - _ABOVE)

    line = " ".join(f"{x(s):.1f},{y(r):.1f}" for s, r in zip(sizes, ratios, strict=True))
    marks = [f'<circle cx="{x(s):.1f}" cy="{y(r):.1f}" r="3.5"/>' for s, r in zip(sizes, ratios, strict=True)]
    every = -(-len(sizes) // 8)
    ticks = [
        f'<text x="{x(s):.1f}" y="{_HEIGHT - 12}" text-anchor="middle">{_short(size)}</text>'
        for k, (s, size) in enumerate(zip(sizes, curve.size_bytes.tolist(), strict=True))
        if k % every == 0
    ]
    grid = [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(r):.1f}" y2="{y(r):.1f}" stroke="var(--line)"/>'
        f'<text x="{_LEFT - 8}" y="{y(r) + 4:.1f}" text-anchor="end">{r:.2f}</text>'
        for r in (0, 0.25, 0.5, 0.75, 1)
    ]
    curve_line = f'<polyline points="{line}" fill="none" stroke="var(--mark)" stroke-width="2"/>'
    shapes = f'{"".join(grid)}{curve_line}<g fill="var(--mark)">{"".join(marks)}</g>{"".join(ticks)}'
    return plot(_WIDTH, _HEIGHT, "miss ratio over cache size", shapes)


def _short(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"
