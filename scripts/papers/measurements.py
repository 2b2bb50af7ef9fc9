"""From the records of a figure's sweep to the values it draws: one per panel, x, method and network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgewatt.results.record import Record
from edgewatt.results.record_rows import label_of
from papers.claims import Figure
from papers.statistics import Median, median_interval
from traces.base.errors import InputError

ROLES = ("baseline", "theirs", "ours")


@dataclass(frozen=True)
class Measurement:
    """One value of one network. role: one of ROLES. method: the ordering's label. kind: the ordering's registered name.

    value: I/Os. lower: the bound of Theorem 1 on them.
    """

    panel: str
    x: float
    role: str
    kind: str
    method: str
    seed: int
    value: float
    lower: int | None = None


def measure(figure: Figure, records: Iterable[Record]) -> list[Measurement]:
    """Return what a figure shows of its records, each value once; panels in the order in which they appear."""
    values = _SHOWS[figure.shows]
    shown = {
        (m.panel, m.x, m.method, m.seed): m
        for record in records
        if role_of(figure, record) is not None
        for m in values(figure, record)
    }
    panels = {panel: place for place, panel in enumerate(dict.fromkeys(panel for panel, *_ in shown))}
    return sorted(shown.values(), key=lambda m: (panels[m.panel], m.x, ROLES.index(m.role), m.method, m.seed))


def role_of(figure: Figure, record: Record) -> str | None:
    """Return whether a record's ordering is the baseline, the paper's method or ours; None: not of this figure."""
    kind = record.config["ordering"]["kind"]
    if kind == figure.baseline:
        return "baseline"
    return "theirs" if kind == figure.theirs else "ours" if kind in figure.ours else None


def _io(figure: Figure, record: Record) -> Iterator[Measurement]:
    x = float(_at(record, figure.x.path))
    yield _one(figure, record, _panel(figure, record), x, record.results["io"]["total"], _bound(record))


def _curve(figure: Figure, record: Record) -> Iterator[Measurement]:
    """Only the paper's method has iterations; other orders are one value, drawn from the first iteration on."""
    panel, total = _panel(figure, record), record.results["io"]["total"]
    curve = record.results["ordering"]["curve"]
    if role_of(figure, record) == "theirs" and len(curve) > 1:
        for work, objective in curve:
            yield _one(figure, record, panel, float(max(1, work)), objective, _bound(record))
    else:
        yield _one(figure, record, panel, 1.0, total, _bound(record))


_SHOWS = {"io": _io, "curve": _curve}


def _one(figure: Figure, record: Record, panel: str, x: float, value: float, lower: int | None = None) -> Measurement:
    role = role_of(figure, record)
    assert role is not None
    ordering = record.config["ordering"]
    return Measurement(panel, x, role, ordering["kind"], label_of(ordering), record.config["seed"], value, lower)


def _bound(record: Record) -> int:
    return int(record.results["bounds"]["lower_total"])


def _panel(figure: Figure, record: Record) -> str:
    return "" if figure.facet is None else f"{figure.facet.title} = {_at(record, figure.facet.path)}"


def _at(record: Record, path: str) -> Any:
    value: Any = record.canonical
    for step in path.split("."):
        try:
            value = value[step]
        except (KeyError, TypeError):
            raise InputError(f"record {record.hash} has no {path}: it is not of this figure") from None
    return value


@dataclass(frozen=True)
class PanelGroup:
    """The networks of one panel, x and method, summarised. lower: median bound."""

    panel: str
    x: float
    role: str
    kind: str
    method: str
    median: Median
    lower: float | None


def summarise(measurements: Sequence[Measurement]) -> list[PanelGroup]:
    """Return the median and its interval over the networks of each panel, x and method."""
    groups: dict[tuple[str, float, str], list[Measurement]] = {}
    for m in measurements:
        groups.setdefault((m.panel, m.x, m.method), []).append(m)
    return [
        PanelGroup(
            panel,
            x,
            members[0].role,
            members[0].kind,
            method,
            median_interval([m.value for m in members]),
            None if members[0].lower is None else median_interval([float(m.lower or 0) for m in members]).median,
        )
        for (panel, x, method), members in groups.items()
    ]


@dataclass(frozen=True)
class Pairs:
    """A method against the baseline on the same networks, at one panel and x."""

    panel: str
    x: float
    kind: str
    method: str
    base: list[Measurement]
    compared: list[Measurement]

    def median(self, compare: Any) -> float:
        """Return the median over the networks of ``compare(baseline, method)``."""
        return median_interval([compare(b, m) for b, m in zip(self.base, self.compared, strict=True)]).median


def paired(measurements: Sequence[Measurement], role: str) -> list[Pairs]:
    """Return the methods of a role beside the baseline; networks that lack either are left out."""
    base = {(m.panel, m.x, m.seed): m for m in measurements if m.role == "baseline"}
    groups: dict[tuple[str, float, str], Pairs] = {}
    for m in measurements:
        other = base.get((m.panel, m.x, m.seed))
        if m.role == role and other is not None:
            group = groups.setdefault((m.panel, m.x, m.method), Pairs(m.panel, m.x, m.kind, m.method, [], []))
            group.base.append(other)
            group.compared.append(m)
    return list(groups.values())
