"""What we measure beside each printed claim: from the measurements of its figures and a role to words.

Every measure is a median over networks of a value per network; "up to" is its maximum over the points that were run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from papers.measurements import Measurement, Pairs, paired, summarise
from papers.statistics import median_interval

Figures = Mapping[str, Sequence[Measurement]]

NOT_RUN = "not run"


def _saved(base: Measurement, compared: Measurement) -> float:
    return (base.value - compared.value) / base.value


def _closer(base: Measurement, compared: Measurement) -> float:
    """Return the share of the baseline's distance to the bound that is gone; 0 where the baseline is at the bound."""
    assert base.lower is not None
    gap = base.value - base.lower
    return (base.value - compared.value) / gap if gap else 0.0


def _pairs(figures: Figures, role: str) -> list[tuple[str, Pairs]]:
    return [(name, pairs) for name, measurements in figures.items() for pairs in paired(measurements, role)]


def _up_to(figures: Figures, role: str, compare: Any) -> str:
    medians = [(pairs.median(compare), name, pairs) for name, pairs in _pairs(figures, role)]
    if not medians:
        return NOT_RUN
    value, name, pairs = max(medians, key=lambda item: item[0])
    return f"up to {100 * value:.1f} % ({pairs.kind}, {_place(name, pairs)})"


def _place(name: str, pairs: Pairs) -> str:
    return f"{name} at x = {pairs.x:g}" + (f", {pairs.panel}" if pairs.panel else "")


def _to_save(base: Measurement, compared: Measurement) -> float:
    """Share of the baseline that lies above the bound: no order saves more, however long a search runs."""
    assert base.lower is not None
    return 1 - base.lower / base.value


def saved(figures: Figures, role: str) -> str:
    """Return the largest median share saved, and the largest that the bound leaves to any order."""
    words, room = _up_to(figures, role, _saved), _room(figures, role)
    return f"{words}; the bound leaves {room}" if role == "theirs" and words != NOT_RUN else words


def _room(figures: Figures, role: str) -> str:
    medians = [(pairs.median(_to_save), name, pairs.x) for name, pairs in _pairs(figures, role)]
    value, name, x = max(medians, default=(0.0, "", 0.0))
    return f"at most {100 * value:.1f} % to any order ({name} at x = {x:g})"


def closer(figures: Figures, role: str) -> str:
    """Return the median share of the gap closed at the point where the most is saved.

    Where a memory or a density leaves a handful of I/Os to save, any order closes the whole gap: that says nothing.
    """
    medians = [(pairs.median(_saved), name, pairs) for name, pairs in _pairs(figures, role)]
    if not medians:
        return NOT_RUN
    _, name, pairs = max(medians, key=lambda item: item[0])
    return f"{100 * pairs.median(_closer):.1f} % ({pairs.kind}, {_place(name, pairs)})"


def saved_by_policy(figures: Figures, role: str) -> str:
    """Return the largest median share saved, panel by panel."""
    best: dict[str, float] = {}
    for _, pairs in _pairs(figures, role):
        best[pairs.panel] = max(best.get(pairs.panel, -1.0), pairs.median(_saved))
    return "; ".join(f"{panel}: up to {100 * value:.1f} %" for panel, value in best.items()) or NOT_RUN


def within_twice(figures: Figures, role: str) -> str:
    """Count the networks whose baseline lies between the bound and twice the bound (Theorem 1)."""
    if role != "theirs":
        return ""
    ratios = [m.value / m.lower for ms in figures.values() for m in ms if m.role == "baseline" and m.lower]
    if not ratios:
        return NOT_RUN
    inside = sum(1 <= ratio <= 2 for ratio in ratios)
    return (
        f"{inside} of {len(ratios)} counts lie between the bound and twice the bound; {max(ratios):.2f} times at most"
    )


CLOSE_TO_BOUND = 0.1


def everywhere(figures: Figures, role: str) -> str:
    """Return what the role's best method saves, from the least to the most, where the bound leaves enough to save."""
    best: dict[tuple[str, float], tuple[float, float]] = {}
    for name, pairs in _pairs(figures, role):
        shares = (pairs.median(_saved), pairs.median(_to_save))
        best[name, pairs.x] = max(best.get((name, pairs.x), shares), shares)
    saved = {place: value for place, (value, room) in best.items() if room > CLOSE_TO_BOUND}
    if not saved:
        return NOT_RUN
    (name, x), *others = sorted(saved, key=lambda place: saved[place])
    words = f"{100 * saved[name, x]:.1f} % ({name} at x = {x:g})"
    if others:
        words += f", then {100 * saved[others[0]]:.1f} to {100 * saved[others[-1]]:.1f} %"
    rest = len(best) - len(saved)
    return words + (f"; without {rest} that the bound leaves at most {100 * CLOSE_TO_BOUND:g} %" if rest else "")


def minimal_when_grown(figures: Figures, role: str) -> str:
    """Count the networks whose grown order is at the bound for M >= M_g (the baseline's role shows the claim)."""
    if role != "theirs":
        return "(no search is needed)"
    grown = [m for ms in figures.values() for m in ms if m.role == "baseline" and m.x >= _grown_for(m)]
    exact = sum(m.value == m.lower for m in grown)
    return f"{exact} of {len(grown)} counts are exactly the bound" if grown else NOT_RUN


def _grown_for(m: Measurement) -> float:
    return float(m.panel.split("=")[1])


def least_memory(figures: Figures, role: str) -> str:
    """Return per M_g the least M of the sweep from which on every network is at the bound, with and without search."""
    return _memory_words(figures, role)


def memory_for_bound(figures: Figures, role: str) -> str:
    """As least_memory, and how much nearer to the bound the order comes below it."""
    words = _memory_words(figures, role)
    return words if words == NOT_RUN else f"{words}; {_up_to(figures, role, _closer)} closer to it"


def _memory_words(figures: Figures, role: str) -> str:
    parts = []
    for measurements in figures.values():
        for panel in dict.fromkeys(m.panel for m in measurements):
            here = [m for m in measurements if m.panel == panel]
            kinds = {r: _best_kind(here, r) for r in ("baseline", role)}
            by_method = {r: _least([m for m in here if m.kind == kind]) for r, kind in kinds.items()}
            if all(kinds.values()):
                texts = ["at no M run" if m is None else f"from M = {m:g} on" for m in by_method.values()]
                parts.append((f"{panel}: " if panel else "") + f"at the bound {texts[1]} (baseline {texts[0]})")
    return "; ".join(parts) or NOT_RUN


def _best_kind(measurements: Sequence[Measurement], role: str) -> str | None:
    """Return the role's method with the least values at the points that were run, None if there is none."""
    values: dict[str, list[float]] = {}
    for m in measurements:
        if m.role == role:
            values.setdefault(m.kind, []).append(m.value)
    return min(values, key=lambda kind: sum(values[kind]) / len(values[kind]), default=None)


def _least(measurements: list[Measurement]) -> float | None:
    above = [m.x for m in measurements if m.value != m.lower]
    reached = sorted({m.x for m in measurements if not above or m.x > max(above)})
    return reached[0] if reached else None


def early_share(figures: Figures, role: str) -> str:
    """Return the share per policy, if the search went on after 10,000 iterations."""
    if role != "theirs":
        return ""
    parts = []
    for measurements in figures.values():
        for panel in dict.fromkeys(m.panel for m in measurements):
            shares = []
            mine = [m for m in measurements if m.panel == panel and m.role == "theirs"]
            for seed in {m.seed for m in mine}:
                curve = {m.x: m.value for m in mine if m.seed == seed}
                first, last = curve[min(curve)], curve[max(curve)]
                if max(curve) > 10_000 and 10_000 in curve and first > last:
                    shares.append((first - curve[10_000]) / (first - last))
            if shares:
                parts.append(f"{panel}: {100 * median_interval(shares).median:.0f} %")
    return "; ".join(parts) or "not run beyond 10,000 iterations"


def rr_against_lru(figures: Figures, role: str) -> str:
    """Return how far apart the medians of the two policies are."""
    parts = []
    for measurements in figures.values():
        for what, wanted in (("before", "baseline"), ("after", role)):
            medians = {}
            for policy in ("rr", "lru"):
                kind = _best_kind([m for m in measurements if m.panel.endswith(("= rr", "= lru"))], wanted)
                mine = [g for g in summarise(measurements) if g.kind == kind and g.panel.endswith(f"= {policy}")]
                if mine:
                    medians[policy] = max(mine, key=lambda g: g.x).median.median
            if len(medians) == 2:
                parts.append(f"{what}: RR {100 * (medians['rr'] / medians['lru'] - 1):+.1f} % against LRU")
    return "; ".join(parts) or NOT_RUN


MEASURES: dict[str, Callable[[Figures, str], str]] = {
    measure.__name__: measure
    for measure in (
        saved, closer, within_twice, everywhere, saved_by_policy, minimal_when_grown,
        least_memory, memory_for_bound, early_share, rr_against_lru,
    )
}  # fmt: skip
"""Name in figures.yaml -> measure(measurements by figure, role) -> words."""
