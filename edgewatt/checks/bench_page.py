"""The page of a comparison: bars, the roofline and the table, self-contained."""

from __future__ import annotations

import math
from pathlib import Path

from edgewatt.checks.bench import OURS, BenchComparison, summary
from edgewatt.pages.html.page import Page, plot, table, text
from traces.base.files import whole_file
from traces.base.units import duration

WIDTH, BAR = 760, 26
PLOT_HEIGHT, LEFT, BOTTOM = 360, 70, 46
STYLE = """
.warn { background: var(--card); border-left: 4px solid var(--bad); padding: .6rem 1rem; }
svg.plot { max-width: 60rem; }
svg.plot .over { paint-order: stroke; stroke: var(--card); stroke-width: 4px; stroke-linejoin: round; }
"""


def bench_page(results: list[BenchComparison], output: str | Path) -> str:
    """Write one HTML file for some comparisons and return its path."""
    body = "".join(map(_section, results))
    page = Page("Inference beside the libraries", body, subtitle=results[0].machine, style=STYLE)
    with whole_file(output) as stream:
        stream.write(page.html().encode("utf-8", "backslashreplace"))
    return str(output)


def _section(result: BenchComparison) -> str:
    words = (
        f"{result.connections:,} connections, batch {result.batch}, order: {result.order}, {result.lanes} lanes, "
        f"{result.simd}; {result.runs:,} runs, stream {result.stream_bytes:,} bytes, rows {result.arena_bytes:,} "
        "bytes. "
        f"{100 * result.fma_share:.0f} % of the multiply-add peak."
    )
    warning = ""
    if not result.steady:
        warning = f"<p class='warn'>The A/A control is {result.aa:.2f}: not steady; do not believe the ratios.</p>"
    rows = summary(result)
    listed = table(list(rows[0]), [list(map(str, row.values())) for row in rows])
    missing = "".join(f"<p>Skipped: {text(name)}: {text(reason)}</p>" for name, reason in result.missing.items())
    return (
        f"<h2>{text(result.network)}</h2><p>{text(words)}</p>{warning}<div class='card'>{_bars(result)}</div>"
        f"<p></p>{listed}{missing}"
        f"<h2>Roofline</h2><div class='card'>{_roofline(result)}</div>"
        "<p>Roofs are measured: reading from each level of memory, and "
        "multiply-adds on registers, one core. "
        "The mark is our kernel, by the bytes it takes from L1 (rows, stream).</p>"
    )


def _bars(result: BenchComparison) -> str:
    longest = max(row.microseconds for row in result.rows)
    shapes = []
    for number, row in enumerate(result.rows):
        y = number * BAR
        width = max(2.0, 400 * row.microseconds / longest)
        colour = "var(--mark)" if row.name.startswith(OURS) else "var(--line)"
        shapes.append(
            f"<text x='215' y='{y + 17}' text-anchor='end'>{text(row.name)}</text>"
            f"<rect x='222' y='{y + 4}' width='{width:.1f}' height='{BAR - 8}' fill='{colour}'/>"
            f"<text x='{228 + width:.1f}' y='{y + 17}'>{duration(1e3 * row.microseconds)}, {row.times:.2f} x</text>"
        )
    height = BAR * len(result.rows) + 4
    return plot(WIDTH, height, "time per batch", "".join(shapes))


def _roofline(result: BenchComparison) -> str:
    limits = result.limits
    ours = next(row for row in result.rows if row.name == OURS)
    passes = -(-result.batch // result.lanes)
    flops = 2.0 * result.connections * result.batch
    rows = result.connections * result.batch * 4 + result.stream_bytes * passes
    low, high, bottom, top = 1 / 64, 64.0, 0.5, 2 ** math.ceil(math.log2(limits.fma_gflops * 1.2))
    span = PLOT_HEIGHT - BOTTOM - 10

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - 120) * math.log(max(low, min(high, value)) / low) / math.log(high / low)

    def y(value: float) -> float:
        return 10 + span - span * math.log(max(bottom, min(top, value)) / bottom) / math.log(top / bottom)

    slope = math.degrees(math.atan2(y(2) - y(1), x(2) - x(1)))  # of every roof of memory: labels go along them
    shapes = []
    for name, speed in (("L1", limits.l1_gbs), ("L2", limits.l2_gbs), ("L3", limits.l3_gbs), ("DRAM", limits.dram_gbs)):
        ridge = min(high, limits.fma_gflops / speed)
        start = max(low, bottom / speed)
        left, foot = x(start), y(start * speed)
        shapes.append(
            f"<line x1='{left:.1f}' y1='{foot:.1f}' x2='{x(ridge):.1f}' y2='{y(ridge * speed):.1f}' "
            f"stroke='var(--soft)'/><text transform='translate({left:.1f} {foot:.1f}) rotate({slope:.1f})' "
            f"x='6' y='-5'>{name} {speed:.0f} GB/s</text>"
        )
    peak = limits.fma_gflops
    shapes.append(
        f"<line x1='{x(peak / limits.l1_gbs):.1f}' y1='{y(peak):.1f}' x2='{x(high):.1f}' y2='{y(peak):.1f}' "
        "stroke='var(--soft)'/>"
        f"<text x='{x(high) + 4:.1f}' y='{y(peak) + 4:.1f}'>{peak:.0f} GFLOP/s</text>"
    )
    shapes.append(
        f"<circle cx='{x(flops / rows):.1f}' cy='{y(ours.gflops):.1f}' r='5' fill='var(--warm)'/>"
        f"<text class='over' x='{x(flops / rows) + 8:.1f}' y='{y(ours.gflops) + 16:.1f}'>from L1</text>"
    )
    for power in range(-6, 7, 2):
        at = 2.0**power
        label = f"{at:g}" if at >= 1 else f"1/{round(1 / at)}"
        shapes.append(f"<text x='{x(at):.1f}' y='{PLOT_HEIGHT - 22}' text-anchor='middle'>{label}</text>")
    value = 1.0
    while value <= top:
        shapes.append(f"<text x='{LEFT - 8}' y='{y(value) + 4:.1f}' text-anchor='end'>{value:g}</text>")
        value *= 4
    shapes.append(f"<text x='{WIDTH / 2}' y='{PLOT_HEIGHT - 4}' text-anchor='middle'>operations per byte</text>")
    return plot(WIDTH, PLOT_HEIGHT, "roofline", "".join(shapes))
