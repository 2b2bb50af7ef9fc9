"""Sweeps: what a point costs beyond its computing; finished points; one worker."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count

import edgewatt as ew
from bench.harness import Case


def cases() -> Iterator[Case]:
    network = {"generate": {"kind": "random-layered", "n_layers": 3, "width": 16, "density": 0.3}}
    base = {"network": network, "fast_memory": {"size": 8}, "caches": [{"size_bytes": 1024, "ways": 2}]}
    grid = {"encoder": ["raw", "dbi-dc"], "seed": list(range(24)), "fast_memory.size": [6, 8]}

    def sweep(folder: str, **fields: str) -> None:
        ew.sweep({"base": {**base, **fields}, "grid": grid}, results=folder, executor="inline")

    with tempfile.TemporaryDirectory() as folder:
        runs = count()
        for timing in ("replay", "system"):
            work = lambda timing=timing: sweep(f"{folder}/{next(runs)}", timing=timing)  # noqa: E731
            yield Case(f"96 points, {timing}", work, 96, "point", rounds=5)
        yield Case("96 points, I/O model", lambda: sweep(f"{folder}/{next(runs)}", measure="io"), 96, "point", rounds=5)
        yield Case("96 finished points", lambda: sweep(f"{folder}/0", timing="replay"), 96, "point", rounds=5)
        yield Case("report", lambda: ew.report(f"{folder}/0", f"{folder}/page.html"), 96, "point", rounds=3)
