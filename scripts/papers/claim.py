"""A claim: what a paper prints, what to measure for it, and the relation that decides; verdicts are computed.

A measure takes the rows of the claim's figures to numbers. The verdict is decided by these numbers alone, so it can be
decided again from a recorded run's (record.json), and no text says it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from papers.figure import Row, Run

RECORD = Path(__file__).parent / "record.json"
AGREES, DIFFERS, NOT_RUN, OTHER = "agrees", "differs", "not run", "not comparable"

Rows = list[Row]
Numbers = Sequence[float] | float | None


@dataclass(frozen=True)
class Relation:
    """What decides. text: as shown, `{}` for the unit. holds: of all the numbers that a reading found."""

    text: str
    holds: Callable[[Sequence[float]], bool]


def near(*printed: float, by: float) -> Relation:
    """Each number is a printed one, give or take `by` of it (0.05: 5 %); or all are the one."""
    values = " and ".join(f"{p:,g}" for p in printed)

    def holds(found: Sequence[float]) -> bool:
        wanted = printed * (len(found) if len(printed) == 1 else 1)
        return len(found) == len(wanted) and all(abs(f - p) <= by * abs(p) for f, p in zip(found, wanted, strict=True))

    return Relation(f"{values} {{}}, within {100 * by:g} % of it" if by else f"{values} {{}}, exactly", holds)


def between(low: float, high: float) -> Relation:
    """Every number lies between two."""
    text = f"at least {low:g}" if high == float("inf") else f"at most {high:g}" if low == -float("inf") else ""
    return Relation(f"{text or f'{low:g} to {high:g}'} {{}}", lambda found: all(low <= f <= high for f in found))


def least(low: float) -> Relation:
    """Every number is at least so much."""
    return between(low, float("inf"))


def most(high: float) -> Relation:
    """Every number is at most so much."""
    return between(-float("inf"), high)


@dataclass(frozen=True)
class Claim:
    """key: names it within its paper. figures: all that it needs, by name. says: in our words.

    readings: by what the paper leaves open ('': nothing); one that holds is enough. ours: the same of our method.
    lacking: data that cannot be had, so that nothing can be compared. note: why, and what was tried.
    """

    key: str
    where: str
    says: str
    figures: tuple[str, ...]
    relation: Relation
    readings: Mapping[str, Callable[[Rows], Numbers]]
    unit: str = ""
    ours: Callable[[Rows], Numbers] | None = None
    note: str = ""
    lacking: str = ""


@dataclass(frozen=True)
class Finding:
    """readings, ours: the numbers found. verdict: computed from them."""

    verdict: str
    readings: dict[str, list[float]] = field(default_factory=dict)
    ours: list[float] = field(default_factory=list)


def numbers(found: Numbers) -> list[float]:
    """Return a measure's numbers as a list, empty where it cannot say."""
    return [float(f) for f in ([] if found is None else [found] if isinstance(found, (int, float)) else found)]


def verdict(claim: Claim, readings: Mapping[str, Sequence[float]]) -> str:
    """Decide: agrees, agrees under a reading (named), differs, or not run where there are no numbers."""
    found = {name: values for name, values in readings.items() if values}
    if not found:
        return NOT_RUN
    holds = [name for name in claim.readings if name in found and claim.relation.holds(found[name])]
    if not holds:
        return DIFFERS
    return AGREES if "" in holds else f"{AGREES} under the reading: {holds[0]}"


def judge(claim: Claim, runs: Mapping[str, Run]) -> Finding:
    """Measure a claim on the runs at hand and decide."""
    states = [runs[name].state if name in runs else "part" for name in claim.figures]
    rows = [row for name in claim.figures if name in runs for row in runs[name].rows]
    readings = {name: numbers(measure(rows)) if rows else [] for name, measure in claim.readings.items()}
    ours = numbers(claim.ours(rows)) if claim.ours and rows else []
    if claim.lacking or "other" in states:
        others = dict.fromkeys(o for name in claim.figures if name in runs for o in runs[name].unplanned)
        said = f"{OTHER}: {claim.lacking or ', '.join(others)}"
    else:
        said = NOT_RUN if "part" in states else verdict(claim, readings)
    return Finding(said, {name: values for name, values in readings.items() if values}, ours)


def recorded() -> dict[str, Any]:
    """Return what a run of everything decided, by PAPER/KEY: verdict, readings, ours, date, commit, selection."""
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8")) if RECORD.is_file() else {}
    return found


def shown(values: Sequence[float], unit: str = "") -> str:
    """Return numbers as people read them: two or three one by one, more as a span."""
    picked = [*values] if len(values) < 4 else [min(values), max(values)]
    texts = [f"{v:,.0f}" if abs(v) >= 1000 else f"{v:.3g}" for v in picked]
    words = (", " if len(values) < 4 else " to ").join(texts[:1] if len({*texts}) == 1 else texts)
    return f"{words} {unit}".strip() if words else ""


# What measures are made of.


def of(measure: Callable[..., Numbers], *arguments: Any, **named: Any) -> Callable[[Rows], Numbers]:
    """Return the measure with these arguments behind the rows."""
    return lambda rows: measure(rows, *arguments, **named)


def pick(rows: Rows, **where: Any) -> Rows:
    """Return the rows with these values; a tuple: one of them."""
    return [r for r in rows if all(r.get(k) in (v if isinstance(v, tuple) else (v,)) for k, v in where.items())]


def middle(rows: Rows, value: str | Callable[[Row], float]) -> float | None:
    """Return the median of a field, or of what a function makes of a row; rows without it are left out."""
    if isinstance(value, str):
        values = [row[value] for row in rows if row.get(value) is not None]
    else:
        values = [value(row) for row in rows]
    return float(median(values)) if values else None


def by(rows: Rows, *keys: str) -> list[Rows]:
    """Return the rows in groups that are alike in these fields, in order: none, numbers, texts."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return [groups[key] for key in sorted(groups, key=lambda key: list(map(_place, key)))]


def _place(value: Any) -> tuple[int, Any]:
    if isinstance(value, str) and not value.isdigit():
        return 2, value
    return (0, 0) if value is None else (1, float(value))


def ratio(above: str, below: str) -> Callable[[Row], float]:
    """Return what divides one field of a row by another."""
    return lambda row: float(row[above] / row[below])


def ratios(rows: Rows, above: str, below: str, *keys: str) -> list[float]:
    """Return the median ratio of two fields in each group; rows that lack one are left out."""
    both = [row for row in rows if row.get(above) is not None and row.get(below)]
    return [m for group in by(both, *keys) if (m := middle(group, ratio(above, below))) is not None]
