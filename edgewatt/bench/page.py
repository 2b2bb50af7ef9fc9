"""The page of a comparison: bars, the roofline and the table, self-contained."""

from __future__ import annotations

import math
from pathlib import Path

from edgewatt.bench.comparison import OURS, Comparison, summary
from edgewatt.reporting.escaping import NO_SCRIPT
from edgewatt.reporting.escaping import text as escape
from traces.base.files import whole_file

WIDTH, BAR = 760, 26
PLOT_HEIGHT, LEFT, BOTTOM = 360, 70, 46
STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1c2733}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse}
td,th{padding:.25rem .8rem;text-align:left;border-bottom:1px solid #d8dee5}
td:nth-child(n+2){text-align:right;font-variant-numeric:tabular-nums}
.warn{background:#fdecd2;padding:.6rem 1rem}svg{max-width:100%;height:auto}
svg text{font:13px system-ui,sans-serif;fill:#1c2733}"""


def bench_page(results: list[Comparison], output: str | Path) -> str:
    """Write one HTML file for some comparisons and return its path."""
    parts = [f"<h1>Inference beside the libraries</h1><p>{escape(results[0].machine)}</p>"]
    for result in results:
        parts.append(_section(result))
    html = f"<!doctype html><html lang='en'><meta charset='utf-8'>{NO_SCRIPT}<title>edgewatt bench</title>"
    html += f"<style>{STYLE}</style>"
    with whole_file(output) as stream:
        stream.write((html + "".join(parts) + "</html>\n").encode())
    return str(output)


def _section(result: Comparison) -> str:
    words = (
        f"{result.connections:,} connections, batch {result.batch}, order: {result.order}, {result.lanes} lanes, "
        f"{result.simd}; {result.runs:,} runs, stream {result.stream_bytes:,} bytes, rows {result.arena_bytes:,} "
        "bytes. "
        f"{100 * result.fma_share:.0f} % of the multiply-add peak."
    )
    if result.predicted_microseconds:
        words += f" The cost model predicted {result.predicted_microseconds:.1f} us."
    warning = ""
    if not result.steady:
        warning = f"<p class='warn'>The A/A control is {result.aa:.2f}: not steady; do not believe the ratios.</p>"
    head = list(summary(result)[0])
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row.values()) + "</tr>" for row in summary(result)
    )
    missing = "".join(f"<p>Skipped: {escape(name)}: {escape(reason)}</p>" for name, reason in result.missing.items())
    table = f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>{rows}</table>"
    return (
        f"<h2>{escape(result.network)}</h2><p>{escape(words)}</p>{warning}{_bars(result)}{table}{missing}"
        f"<h2>Roofline</h2>{_roofline(result)}<p>Roofs are measured: reading from each level of memory, and "
        "multiply-adds on registers, one core. The marks are our kernel, by the bytes it takes from L1 (rows, stream) "
        "and, as the cost model counts them, from L2.</p>"
    )


def _bars(result: Comparison) -> str:
    longest = max(row.microseconds for row in result.rows)
    shapes = []
    for number, row in enumerate(result.rows):
        y = number * BAR
        width = max(2.0, 400 * row.microseconds / longest)
        colour = "#1f6f8b" if row.name.startswith(OURS) else "#9aa7b4"
        shapes.append(
            f"<text x='215' y='{y + 17}' text-anchor='end'>{escape(row.name)}</text>"
            f"<rect x='222' y='{y + 4}' width='{width:.1f}' height='{BAR - 8}' fill='{colour}'/>"
            f"<text x='{228 + width:.1f}' y='{y + 17}'>{row.microseconds:.1f} us, {row.times:.2f} x</text>"
        )
    height = BAR * len(result.rows) + 4
    return f"<svg viewBox='0 0 {WIDTH} {height}' role='img' aria-label='time per batch'>{''.join(shapes)}</svg>"


def _roofline(result: Comparison) -> str:
    limits = result.processor.limits
    ours = next(row for row in result.rows if row.name == OURS)
    passes = -(-result.batch // result.lanes)
    flops = 2.0 * result.connections * result.batch
    rows = result.connections * result.batch * 4 + result.stream_bytes * passes
    near = float(result.details.get("l2_bytes") or 0)
    low, high, bottom, top = 1 / 64, 64.0, 0.5, 2 ** math.ceil(math.log2(limits.fma_gflops * 1.2))
    span = PLOT_HEIGHT - BOTTOM - 10

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - 120) * math.log(max(low, min(high, value)) / low) / math.log(high / low)

    def y(value: float) -> float:
        return 10 + span - span * math.log(max(bottom, min(top, value)) / bottom) / math.log(top / bottom)

    shapes = []
    for name, speed in (("L1", limits.l1_gbs), ("L2", limits.l2_gbs), ("L3", limits.l3_gbs), ("DRAM", limits.dram_gbs)):
        ridge = min(high, limits.fma_gflops / speed)
        start = max(low, bottom / speed)
        shapes.append(
            f"<line x1='{x(start):.1f}' y1='{y(start * speed):.1f}' x2='{x(ridge):.1f}' y2='{y(ridge * speed):.1f}' "
            f"stroke='#5b6b7a'/><text x='{x(start) + 4:.1f}' y='{y(start * speed) - 6:.1f}'>"
            f"{name} {speed:.0f} GB/s</text>"
        )
    peak = limits.fma_gflops
    shapes.append(
        f"<line x1='{x(peak / limits.l1_gbs):.1f}' y1='{y(peak):.1f}' x2='{x(high):.1f}' y2='{y(peak):.1f}' "
        "stroke='#5b6b7a'/>"
        f"<text x='{x(high) + 4:.1f}' y='{y(peak) + 4:.1f}'>{peak:.0f} GFLOP/s</text>"
    )
    for label, n_bytes in (("from L1", rows), ("from L2", near)):
        if n_bytes > 0:
            at = flops / n_bytes
            shapes.append(
                f"<circle cx='{x(at):.1f}' cy='{y(ours.gflops):.1f}' r='5' fill='#c8553d'/>"
                f"<text x='{x(at) + 8:.1f}' y='{y(ours.gflops) + 16:.1f}'>{label}</text>"
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
    return f"<svg viewBox='0 0 {WIDTH} {PLOT_HEIGHT}' role='img' aria-label='roofline'>{''.join(shapes)}</svg>"
