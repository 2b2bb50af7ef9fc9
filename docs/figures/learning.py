"""Figures of the pages about learning."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from drawing import lines

CURVES = Path(__file__).with_name("eon.json")  # of bench_eon.py of version 0.2.0, every fourth iteration


def eon() -> str:
    """Draw how EON learns: misses of its samples over EGO's, medians over the networks of a kind."""
    kinds: dict[str, list[list[tuple[int, float]]]] = {}
    for run in json.loads(CURVES.read_text()):
        kinds.setdefault(run["kind"], []).append([(at, mean / run["ego"]) for at, mean in run["mean"]])
    series = {
        kind: [(steps[0][0], median(share for _, share in steps)) for steps in zip(*runs, strict=True)]
        for kind, runs in kinds.items()
    }
    ends = [points[k][0] for points in [next(iter(series.values()))] for k in (0, -1)]
    return lines(
        "How EON learns: mean misses of the orders it draws, over EGO's",
        {**series, "EGO*": [(at, 1.0) for at in ends]},
        "iterations of 64 orders",
        "misses over EGO's",
    )


FIGURES = {"eon": eon}
