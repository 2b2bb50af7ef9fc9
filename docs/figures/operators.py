"""Figures of the pages about operators and processors."""

from __future__ import annotations

from drawing import Picture, bars, lines

import edgewatt as ew


def operator_schedules() -> str:
    """Draw the bytes in memory at each step of two orders."""
    graph = ew.generators.randwire(n=32, seed=0)
    found = ew.schedule(graph)
    series = {}
    for name, order in (("as the file has them", None), ("scheduled", found.order)):
        use = ew.operators.footprint(graph, order).during_bytes
        points = [(x, bytes_ / 1e3) for i, bytes_ in enumerate(use) for x in (i, i + 1)]
        series[name] = points
    series["least peak of any order*"] = [
        (0, found.lower_bound_bytes / 1e3),
        (len(graph.nodes), found.lower_bound_bytes / 1e3),
    ]
    return lines(
        "A random wiring of 32 operators: activations in memory",
        series,
        "operator after operator",
        "kB",
        from_zero=True,
    )


def arena() -> str:
    """Draw six buffers in their least arena: address over time."""
    lower, upper, size = [0, 0, 1, 2, 3, 1], [2, 1, 4, 4, 6, 6], [3, 2, 4, 3, 3, 1]
    found = ew.allocate(lower, upper, size)
    picture = Picture(f"Six buffers in {found.height} bytes, which is proved least", 300)
    left, bottom, wide, high = 90, 256, 95, 200 / found.height
    for i, (a, b, n) in enumerate(zip(lower, upper, size, strict=True)):
        y = bottom - high * (int(found.offset[i]) + n)
        picture.rect(left + wide * a + 1, y + 1, wide * (b - a) - 2, high * n - 2, f"c{i % 5}", 3)
        picture.text(left + wide * (a + b) / 2, y + high * n / 2 + 5, i, "w", 14, "middle")
    for step in range(7):
        picture.text(left + wide * step, bottom + 18, step, size=12, anchor="middle")
    for address in range(0, found.height + 1, 2):
        picture.text(left - 8, bottom - high * address + 4, address, size=12, anchor="end")
    picture.line([(left, bottom - high * found.height), (left, bottom), (left + 6 * wide, bottom)])
    picture.text(left + 3 * wide, bottom + 38, "time", anchor="middle")
    picture.text(16, 156, "address")
    return str(picture)


def inference() -> str:
    """Draw the bytes that an inference streams, by order."""
    network = ew.load("configs/examples/networks/digits_small.npz")
    found = {}
    for method in ("two-optimal", "output-stationary", "learned", "by-source"):
        made = ew.compile_inference(network, ew.order(network, method, memory=113), lanes=64)
        found[f"{method}: {made.runs:,} runs"] = made.stream_bytes / 1e3
    return bars(
        "What a compiled order streams: a run costs 12 bytes, a connection 8",
        found,
        "kB for a pass over 64 input vectors",
        unit=" kB",
    )


FIGURES = {
    "operator-schedules": operator_schedules,
    "arena": arena,
    "inference": inference,
}
