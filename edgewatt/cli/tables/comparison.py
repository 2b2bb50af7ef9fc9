"""What changed between two records or results folders, as `edgewatt compare` shows it."""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import Any

from edgewatt.cli.parts.output import put, show_table
from edgewatt.results.comparison import Comparison
from edgewatt.results.record_rows import compact
from traces.base.units import SCALES, energy, engineering

MOST_SHOWN = 1000  # points that are printed; more are for `--json`


def show_comparison(pairs: Comparison) -> None:
    """Print what changed from A to B over all points, then in detail for the one that changes most."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    every = {
        "io": "I/Os %", "ones": "ones %", "toggles": "toggles %", "io_energy_pj": "IO energy %",
        "energy_pj": "energy %", "time_ns": "time %",
    }  # fmt: skip
    moved: set[str] = set()
    shown: list[tuple[float, int, str, list[float | None]]] = []  # a heap of the points that change most
    largest, most = pairs[0], -1.0
    for number, pair in enumerate(pairs):
        change = max((abs(c["percent"] or 0) for c in pair["changes"].values()), default=0)
        if change > most:
            largest, most = pair, change
        moved |= {name for name in every if name not in moved and _moved(pair, name)}
        cells = [pair["changes"].get(name, {}).get("percent") for name in every]
        (heappush if len(shown) < MOST_SHOWN else heappushpop)(shown, (change, -number, pair["point"], cells))
    if len(pairs) > 1:
        names = [name for name in every if name in moved]
        kept = [k for k, name in enumerate(every) if name in moved]
        rows = [
            (point, *(_signed(cells[k]) for k in kept))
            for _, _, point, cells in sorted(shown, key=lambda each: -each[1])
        ]
        heads = ("point", *(every[name] for name in names))
        if names:
            show_table(heads, rows, title=f"{len(pairs)} points, change from A to B", numeric=heads[1:])
        if names and len(pairs) > len(shown):
            put(console, f"shown: the {len(shown)} points that change most; --json has all")
        same = [every[name].removesuffix(" %") for name in every if name not in names and name in pairs[0]["changes"]]
        if same:
            put(console, f"the same in every point: {', '.join(same)}")
        put(console, pairs.says)
    if len(pairs) > 1 and most == 0 and not any(pair["differs"] for pair in pairs):
        put(console, "nothing differs: settings, counts, energies and times of every point are the same", style="bold")
        return
    chosen = "the point that changes most" if most > 0 else "the first point"
    title = largest["point"] if len(pairs) == 1 else f"in detail, {chosen}: {largest['point']}"
    put(console, title, style="bold")
    for key, values in largest["differs"].items():
        a, b = (str(value)[:12] if key.endswith("sha256") else value for value in values)
        put(console, f"  {key}: {a} -> {b}")
    rows = [
        (name.rpartition("_")[0].replace("_", " ") or name, *_both(name, c), _signed(c["percent"]))
        if name.rpartition("_")[2] in SCALES else (name.replace("_", " "), *_both(name, c), _signed(c["percent"]))
        for name, c in largest["changes"].items() if _moved(largest, name)
    ]  # fmt: skip
    if not rows:
        put(console, "  every count, energy and time is the same")
        return
    show_table(("metric", "A", "B", "change %"), rows, numeric=("A", "B", "change %"))
    because = largest["because"][:8]
    if because:
        rows = [(t["term"], compact(t["count_a"]), compact(t["count_b"]), _plus(t["pj"])) for t in because]
        show_table(("energy term", "count A", "count B", "change"), rows, numeric=("count A", "count B", "change"))


def _moved(pair: dict[str, Any], name: str) -> bool:
    change = pair["changes"].get(name)
    return change is not None and change["a"] != change["b"]


def _both(name: str, change: dict[str, Any]) -> list[str]:
    """Return A and B of a metric, with their unit."""
    values = [change["a"], change["b"]]
    scale = SCALES.get(name.rpartition("_")[2])
    return [engineering(value * scale[0], scale[1]) for value in values] if scale else [compact(v) for v in values]


def _plus(pj: float) -> str:
    return f"{'+' if pj > 0 else ''}{energy(pj)}"


def _signed(change: float | None) -> str:
    return "-" if change is None else "0" if abs(change) < 0.05 else f"{change:+.1f}"
