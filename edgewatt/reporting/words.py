"""The summary in words: what was best, by how much, and at what cost."""

from __future__ import annotations

from typing import Any

from edgewatt.config.kinds import AS_GIVEN
from edgewatt.reporting.chart import in_order, titles, varying_fields
from edgewatt.reporting.data import ReportData
from edgewatt.results.rows import value_in_words
from traces.base.units import duration, energy

Row = dict[str, Any]


def summary(data: ReportData) -> list[str]:
    """Return sentences about the rows of a report, plain text."""
    rows = [row for row in data.rows if "energy_pj" in row]
    if not rows:
        counted = f"{len(data.rows)} points, counted with the I/O model alone."
        return [counted, *swept_words(data), *_work_words(data)]
    base = data.rows[data.baseline]
    base = base if base in rows else rows[0]
    best, fastest = (
        min(rows, key=lambda r: (r["energy_pj"], r["time_ns"])),
        min(rows, key=lambda r: (r["time_ns"], r["energy_pj"])),
    )
    said = [
        f"{len(rows)} points. Changes are against the baseline, {base['label']}: {_cost(base)}.",
        *swept_words(data),
    ]
    if len(rows) == 1:
        return said + _work_words(data)
    if best is base:
        said.append("No point needs less energy than the baseline.")
    else:
        said.append(
            f"Least energy: {best['label']}, {_cost(best)}; that is {_change(best, 'energy_change')} energy "
            f"and {_change(best, 'time_change')} time."
        )
        said += _why(best, base)
    if fastest is base:
        said.append("No point is faster than the baseline.")
    elif fastest is not best:
        said.append(
            f"Least time: {fastest['label']}, {_cost(fastest)}; {_change(fastest, 'time_change')} time and "
            f"{_change(fastest, 'energy_change')} energy."
        )
    free = [r for r in rows if r["time_ns"] <= base["time_ns"]]
    cheapest = min(free, key=lambda r: r["energy_pj"])
    if cheapest is not best and cheapest is not base:
        said.append(f"Without losing time: {cheapest['label']}, {_change(cheapest, 'energy_change')} energy.")
    n = len(data.front)
    said.append(f"{n} of {len(rows)} points {'is' if n == 1 else 'are'} on the Pareto front of energy and time.")
    return said + _work_words(data)


_MOST_VALUES = 6


def swept_words(data: ReportData) -> list[str]:
    """Return one sentence on what differs between the points, and how."""
    parts, named = [], titles(data)
    for key in varying_fields(data):
        title = named[key]
        values = [value_in_words(title, v).removeprefix(f"{title.partition(' (')[0]} ") for v in _values(data, key)]
        more = f" and {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else ""
        parts.append(f"{title.partition(' (')[0]} ({', '.join(values[:_MOST_VALUES])}{more})")
    seeds = {row["seed"] for row in data.rows}
    parts += [f"seed ({len(seeds)} of them)"] if len(seeds) > 1 else []
    return [f"What differs: {'; '.join(parts)}."] if parts else []


def _values(data: ReportData, key: str) -> list[Any]:
    return in_order(row[key] for row in data.rows if key in row)


def _why(best: Row, base: Row) -> list[str]:
    parts = []
    for key, name in (
        ("ones", "ones on the wires"),
        ("toggles", "toggles"),
        ("cache_misses", "cache misses"),
        ("io", "I/Os"),
        ("runs", "runs"),
    ):
        if base.get(key) and key in best and best[key] != base[key]:
            parts.append(f"{name} {_percent(best[key] / base[key] - 1)}")
    return [f"What changed with it: {', '.join(parts)}."] if parts else []


def _work_words(data: ReportData) -> list[str]:
    said = []
    rows = [row for row in data.rows if row.get("io")]
    if rows:
        low = min(rows, key=lambda r: (r["io"] / r["io_bound"], r["label"]))
        above = low["io"] / low["io_bound"] - 1
        argument = "Theorem 1" if low["bound"] == "theorem-1" else low["bound"]
        text = (
            "exactly its lower bound"
            if above == 0
            else f"{100 * above:.1f} % above its lower bound of {low['io_bound']:,} ({argument})"
        )
        name = ", ".join(
            [low["ordering"], *([] if low["stride"] == AS_GIVEN else [low["stride"]]), f"M = {low['memory']}"]
        )
        said.append(f"Fewest I/Os for its network: {name} with {low['io']:,}, {text}.")
    zeroed = {row["format"]: row["zeroed_weights"] for row in rows if row.get("zeroed_weights")}
    for name, count in zeroed.items():
        said.append(f"In {name}, {count:,} stored non-zero weights become zero.")
    if data.failed:
        said.append(f"{len(data.failed)} points failed and are not shown; see the end of the page.")
    return said


def _cost(row: Row) -> str:
    return f"{energy(row['energy_pj'])} in {duration(row['time_ns'])}"


def _change(row: Row, key: str) -> str:
    return _percent(row.get(key, 0.0))


def _percent(change: float) -> str:
    if abs(change) < 5e-4:
        return "unchanged"
    return f"{100 * abs(change):.1f} % {'more' if change > 0 else 'less'}"
