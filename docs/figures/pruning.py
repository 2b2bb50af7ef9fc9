"""The figure of the page about pruning for a memory."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

from drawing import lines

MEASURED = Path(__file__).with_name("pruning.json")  # of scripts/prune_study.py


def pruning() -> str:
    """Draw accuracy over energy: means over seeds, a point for each memory."""
    groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for row in json.loads(MEASURED.read_text()):
        groups.setdefault((row["pattern"], row["memory"]), []).append((row["energy_uj"], row["accuracy"]))
    series: dict[str, list[tuple[float, float]]] = {}
    for (pattern, _), rows in groups.items():
        series.setdefault(pattern, []).append((mean(e for e, _ in rows), mean(a for _, a in rows)))
    return lines(
        "Accuracy over energy: pruned freely, in windows",
        {name: sorted(points) for name, points in series.items()},
        "energy of a pass of 128 vectors (uJ)",
        "% right",
    )


FIGURES = {"pruning": pruning}
