"""The summary in words: what was best, by how much, and at what cost."""

from __future__ import annotations

from typing import Any

from edgewatt.config.kinds import AS_GIVEN
from edgewatt.pages.chart import in_order, titles, varying_fields
from edgewatt.pages.data import ReportData
from edgewatt.results.record_rows import distinct, value_in_words
from traces.base.units import duration, energy

Row = dict[str, Any]


def summary(data: ReportData) -> list[str]:
    """Return sentences about the rows of a report, plain text."""
    played = data.played
    if not played:
        counted = f"{len(data.rows)} points, counted with the I/O model alone."
        return [counted, *swept_words(data), *_work_words(data)]
    spent, took = list(data.rows.values("energy_pj")), list(data.rows.values("time_ns"))
    base = data.baseline if data.baseline in set(played) else played[0]
    best = min(played, key=lambda i: (spent[i], took[i]))
    fastest = min(played, key=lambda i: (took[i], spent[i]))
    row = data.rows.__getitem__
    said = [
        f"{len(played)} points. Changes are against the baseline, {row(base)['label']}: {_cost(row(base))}.",
        *swept_words(data),
        *(
            f"Of the DRAM's static energy is billed: {idle}."
            for idle in [", ".join(distinct(data.rows, "idle"))]
            if idle
        ),
    ]
    if len(played) == 1:
        return said + _work_words(data)
    if best == base:
        said.append("No point needs less energy than the baseline.")
    else:
        said.append(
            f"Least energy: {row(best)['label']}, {_cost(row(best))}; "
            f"that is {_change(row(best), 'energy_change')} energy and {_change(row(best), 'time_change')} time."
        )
        said += _why(row(best), row(base))
    if fastest == base:
        said.append("No point is faster than the baseline.")
    elif fastest != best:
        said.append(
            f"Least time: {row(fastest)['label']}, {_cost(row(fastest))}; "
            f"{_change(row(fastest), 'time_change')} time and {_change(row(fastest), 'energy_change')} energy."
        )
    cheapest = min((i for i in played if took[i] <= took[base]), key=lambda i: spent[i])
    if cheapest not in (best, base):
        change = _change(row(cheapest), "energy_change")
        said.append(f"Without losing time: {row(cheapest)['label']}, {change} energy.")
    n = len(data.front)
    said.append(f"{n} of {len(played)} points {'is' if n == 1 else 'are'} on the Pareto front of energy and time.")
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
    seeds = distinct(data.rows, "seed")
    parts += [f"seed ({len(seeds)} of them)"] if len(seeds) > 1 else []
    return [f"What differs: {'; '.join(parts)}."] if parts else []


def _values(data: ReportData, key: str) -> list[Any]:
    return in_order(distinct(data.rows, key))


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
    io, bound = list(data.rows.values("io")), list(data.rows.values("io_bound"))
    counted = [i for i, number in enumerate(io) if number]
    if counted:
        labels = list(data.rows.values("label"))
        low = data.rows[min(counted, key=lambda i: (io[i] / bound[i], labels[i]))]
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
    zeroed: dict[str, int] = {}
    for number, name, count in zip(io, *map(data.rows.values, ("format", "zeroed_weights")), strict=True):
        if number and count:
            zeroed[name] = count
    for name, count in zeroed.items():
        said.append(f"In {name}, {count:,} stored non-zero weights become zero.")
    if data.failed:
        said.append(f"{len(data.failed)} points failed and are not shown; see the end of the page.")
    return said


def _cost(row: Row) -> str:
    dynamic = row.get("dynamic_energy_pj")  # older records have it not
    share = f" ({100 * dynamic / row['energy_pj']:.0f} % of it dynamic)" if dynamic and row["energy_pj"] else ""
    return f"{energy(row['energy_pj'])}{share} in {duration(row['time_ns'])}"


def _change(row: Row, key: str) -> str:
    return _percent(row.get(key, 0.0))


def _percent(change: float) -> str:
    if abs(change) < 5e-4:
        return "unchanged"
    return f"{100 * abs(change):.1f} % {'more' if change > 0 else 'less'}"
