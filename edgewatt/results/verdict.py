"""The answer to a set of results: on each hardware which order, stride and format to take, what it gains, how sure.

Hardware is what one buys (memories, device, encoder, engine) and the work it is given (network, inputs at a time);
software is what one chooses: the order of the connections, the stride inside runs, the number format, the layout. A
gain compares two points of one hardware that differ in what it names and in nothing else. The baseline is everywhere
the same: row by row (two-optimal), with the first stride, format and layout named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any

import numpy as np

from edgewatt.results.certainty import by_source, drawn, spread_of
from edgewatt.results.record import Record, canonical_json
from edgewatt.results.record_rows import (
    Rows,
    column,
    column_title,
    distinct_labels,
    format_value,
    label_of,
    order_label,
    shorten_names,
    telling,
)
from edgewatt.results.swept import Axis

MATTERS = 0.01
"""A choice that changes energy by less than this on a hardware is called irrelevant there."""
LEAST_CHANGE = 5e-4  # below it a change reads 0.0 %
ROW_BY_ROW = "two-optimal"


@dataclass(frozen=True)
class Software:
    """What one chooses: labels of the order, the stride inside runs, the number format and the layout."""

    order: str
    stride: str
    format: str
    layout: str
    made_for: str = ""


@dataclass(frozen=True)
class Gain:
    """Energy and time of a point less those of another of the same hardware, as shares of the other's (-0.2: a fifth
    less). low, high: of the energy, 5 to 95 % of the draws of the constants (`certainty`). sure: share of draws with
    the sign of `energy`. seeds: least and most over the seeds; None for one seed. apart: the change of dynamic and of
    static energy by themselves; None where nothing static is known."""

    energy: float
    time: float
    low: float
    high: float
    sure: float
    seeds: tuple[float, float] | None = None
    apart: tuple[float, float] | None = None

    @property
    def decided(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def ends(self) -> str:
        return _ends(self.low, self.high)

    @property
    def matters(self) -> bool:
        return max(abs(self.energy), abs(self.low), abs(self.high)) >= MATTERS

    @property
    def words(self) -> str:
        """The change of energy with its range; 'not decided' where the sign does not survive it."""
        if not self.matters:
            return f"irrelevant ({self.ends})"
        return f"{100 * self.energy:+.1f} % ({self.ends})" if self.decided else f"not decided ({self.ends})"


def _ends(low: float, high: float) -> str:
    """Write two shares as per cent: '-19 .. -15 %'."""
    digits = 1 if abs(high - low) < 0.02 else 0
    return f"{100 * low:+.{digits}f} .. {100 * high:+.{digits}f} %"


def _change(share: float, verb: str = "saves") -> str:
    """Write a change with its verb: 'saves 12.0 %', 'costs 3.0 % more'; of time 'takes 3.0 % less'."""
    if abs(share) < LEAST_CHANGE:
        return "changes no" if verb == "saves" else "takes the same"
    amount = f"{100 * abs(share):.1f} %"
    if verb == "takes":
        return f"takes {amount} {'less' if share < 0 else 'more'}"
    return f"saves {amount}" if share < 0 else f"costs {amount} more"


def gain_of(one: Any, other: Any, times: tuple[float, float]) -> Gain:
    sums = np.stack([np.asarray(one, float), np.asarray(other, float)])
    energies, totals = drawn(sums), sums[:, :, 0].sum(axis=1)
    return gain_in(energies[0], energies[1], totals, times)


def gain_in(
    one: Any, other: Any, totals: Any, times: tuple[float, float], seeds: tuple[float, float] | None = None,
    static: tuple[float, float] = (0.0, 0.0),
) -> Gain:  # fmt: skip
    """Return the gain of a point against another one from energies in the same draws. totals: nominal energies, of
    which `static` passes with time."""
    changes, change = one / other - 1, float(totals[0] / totals[1] - 1)
    low, high = spread_of(changes)
    sure = float(np.mean(np.sign(changes) == np.sign(change))) if change else 1.0
    apart = None
    if static[1] and totals[1] > static[1]:
        apart = (float((totals[0] - static[0]) / (totals[1] - static[1]) - 1), static[0] / static[1] - 1)
    return Gain(change, times[0] / times[1] - 1 if times[1] else 0.0, low, high, sure, seeds, apart)


ORDER_WORDS = {"two-optimal": "row by row (two-optimal)"}


@dataclass(frozen=True)
class Card:
    """What to take on one hardware.

    choice: least energy (mean over seeds). energy_pj, time_ns: per inference. columns: (name, order, layout, energy pJ,
    time ns) of row by row, best simple blocking and the best of the other orders, those that were measured, with the
    choice's stride and format. gains: 'row by row', 'blocking' (the order alone), 'stride', 'format', 'layout' (each
    put back to the baseline's, the rest as chosen), 'all' (against the baseline). holds: share of draws in which the
    choice needs least energy. row: the number of its first row. cut: orders whose search a time limit ended. bound_by:
    what bounds the choice's time, in per cent. orders: how many were measured with the choice's stride and format.
    """

    hardware: str
    inputs: int
    choice: Software
    baseline: Software
    energy_pj: float
    time_ns: float
    columns: tuple[tuple[str, str, str, float, float], ...]
    gains: Mapping[str, Gain]
    holds: float
    order_range: float
    points: int
    row: int = 0
    seeds: int = 1
    cut: tuple[str, ...] = ()
    bound_by: str = ""
    orders: int = 2

    @property
    def order_matters(self) -> bool:
        """Whether an order is to be chosen: the measured ones differ, and row by row is not as good as the best."""
        gain = self.gains.get("row by row")
        return self.order_range >= MATTERS and (gain is None or gain.matters)

    @property
    def take(self) -> str:
        best, base = self.choice, self.baseline
        order = ORDER_WORDS.get(best.order, best.order) if self.order_matters or self.orders < 2 else "any order"
        if order == "any order" and self.order_range >= MATTERS:
            order = "row by row"
        lines = [order]
        for name in ("format", "stride"):
            if (chosen := getattr(best, name)) != getattr(base, name):
                gain = self.gains.get(name)
                named = chosen if name == "format" else f"{name} {chosen}"
                lines.append(named if gain is None or gain.matters else f"any {name}")
        return ", ".join(lines)

    @property
    def of_blocking(self) -> float | None:
        """The share of what the choice saves against row by row that simple blocking has already; None where nothing
        surely saves, or where one of the three was not measured."""
        order, energies = self.gains.get("row by row"), {name: energy for name, _, _, energy, _ in self.columns}
        if order is None or "blocking" not in self.gains or not order.decided or order.energy >= 0:
            return None
        rows = energies["row by row"]
        return (rows - energies["blocking"]) / (rows - self.energy_pj)

    def sentences(self) -> list[str]:
        lines = []
        where, order, blocks = self.hardware, self.gains.get("row by row"), self.gains.get("blocking")
        order = order or self.gains.get("first order")
        if order is not None and not self.order_matters and self.order_range >= MATTERS:
            lines.append(f"{where}: row by row will do: the best of the others {_change(order.energy)} energy "
                         f"({order.ends}); the worst costs {100 * self.order_range:.1f} % more than it.")  # fmt: skip
        elif self.orders < 2:
            lines.append(f"{where}: take {self.take}; no other order was measured with this stride and format.")
        elif not self.order_matters:
            most = f"orders differ by {100 * self.order_range:.1f} % in energy"
            lines.append(f"{where}: the order is irrelevant ({most}); {ROW_BY_ROW} will do.")
        elif order is None:
            lines.append(f"{where}: take {self.take}; no order measured needs less energy.")
        elif not order.decided:
            lines.append(f"{where}: not decided. {self.take} {_change(order.energy)} energy against row by row, but "
                        f"within the ranges of the constants that is {order.ends}.")  # fmt: skip
        else:
            against = "row by row" if "row by row" in self.gains else self.baseline.order
            parts = ""
            if order.apart is not None:
                parts = f"; dynamic {100 * order.apart[0]:+.0f} %, static {100 * order.apart[1]:+.0f} %"
            lines.append(f"{where}: take {self.take}. It {_change(order.energy)} energy ({order.ends}{parts}) and "
                        f"{_change(order.time, 'takes')} time against {against}.")  # fmt: skip
        if self.order_matters and blocks is not None and order is not None:
            more = f"{_change(blocks.energy)} ({blocks.ends})" if blocks.decided else "is not decided"
            more = more if abs(blocks.energy) >= LEAST_CHANGE else "changes nothing: blocking will do"
            has = self.of_blocking
            share = "" if has is None else f"Blocking has {max(0.0, 100 * has):.0f} % of that; "
            lines.append(f"{share}beyond it this {more}." if share else f"Beyond simple blocking it {more}.")
        for name in ("format", "stride", "layout"):
            if gain := self.gains.get(name):
                chosen, other = getattr(self.choice, name), getattr(self.baseline, name)
                lines.append(f"{name.capitalize()} {chosen} alone, against {other}: {gain.words} energy.")
        if self.order_matters and self.gains:
            seeds = next((g.seeds for g in self.gains.values() if g.seeds), None)
            spread = f"; over {self.seeds} seeds {_ends(*seeds)}" if seeds else ""
            lines.append(f"Least energy in {100 * self.holds:.0f} % of the draws{spread}.")
        if self.bound_by:
            lines.append(f"Time bound by {self.bound_by} %.")
        if self.cut:
            lines.append(f"A time limit cut the search of {', '.join(self.cut)}: more time may find more.")
        return lines

    def as_dict(self) -> dict[str, Any]:
        names = ("name", "order", "layout", "energy_pj", "time_ns")
        return {
            "hardware": self.hardware, "inputs_at_a_time": self.inputs, "take": vars(self.choice),
            "baseline": vars(self.baseline), "energy_pj_per_inference": self.energy_pj,
            "time_ns_per_inference": self.time_ns,
            "columns": [dict(zip(names, each, strict=True)) for each in self.columns],
            "gains": {name: {**vars(gain), "decided": gain.decided} for name, gain in self.gains.items()},
            "holds": self.holds, "order_matters": self.order_matters, "points": self.points, "seeds": self.seeds,
            "cut": list(self.cut), "bound_by": self.bound_by,
        }  # fmt: skip


@dataclass(frozen=True)
class Effect:
    """What one value of an axis changes against the axis's first value, all else equal: (median, least, most) as shares
    of energy and time over `pairs` pairs of points."""

    axis: str
    value: str
    first: str
    energy: tuple[float, float, float]
    time: tuple[float, float, float]
    pairs: int


@dataclass(frozen=True)
class Verdict:
    """The cards of all hardware, the effects of each axis, and the rank correlation of proxies with energy (name ->
    Spearman's rho over the points; none below 5 points)."""

    cards: tuple[Card, ...] = ()
    effects: tuple[Effect, ...] = ()
    proxies: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {"cards": [card.as_dict() for card in self.cards], "effects": [vars(each) for each in self.effects],
                "rank_correlation_with_energy": dict(self.proxies)}  # fmt: skip


@dataclass
class _Point:
    row: int
    software: Software
    kind: str
    seed: str
    sums: Any
    time: float
    static: float
    bound_by: str = ""


class Measured:
    def __init__(self) -> None:
        self._groups: dict[str, list[_Point]] = {}
        self._inputs: dict[str, int] = {}
        self._cut: dict[str, dict[str, None]] = {}

    def take(self, record: Record, row: Mapping[str, Any], number: int) -> None:
        """Look at a record and its row (`per_inference`), the number-th; what has no energy or order is left out."""
        if "energy_pj" not in row or "ordering" not in record.config:
            return
        hardware, software, seed = split(record.config)
        inputs = row["inputs"]
        point = _Point(
            number, software, record.config["ordering"]["kind"], seed,
            by_source(record.results["energy_pj"]) / inputs, row["time_ns"], row.get("static_energy_pj") or 0.0,
            row.get("bound_by", ""),
        )  # fmt: skip
        self._groups.setdefault(hardware, []).append(point)
        self._inputs[hardware] = row["lanes"]
        if record.results.get("ordering", {}).get("truncated"):
            self._cut.setdefault(hardware, {})[software.order] = None

    def baselines(self, count: int) -> list[int | None]:
        """Return for each of `count` rows the row that its changes are against: of its hardware and seed; None without
        one."""
        found: list[int | None] = [None] * count
        for points in self._groups.values():
            base = _baseline(points)
            first = {point.seed: point.row for point in reversed(points) if point.software == base}
            for point in points:
                found[point.row] = first.get(point.seed)
        return found

    def gains(self, count: int) -> list[Gain | None]:
        point = {each.row: each for points in self._groups.values() for each in points}
        found: list[Gain | None] = [None] * count
        for row, base in enumerate(self.baselines(count)):
            if base is not None:
                mine, other = point[row], point[base]
                found[row] = gain_of(mine.sums, other.sums, (mine.time, other.time))
        return found

    def _shorten(self) -> None:
        every = [point for points in self._groups.values() for point in points]
        labels = [{"ordering": p.software.order, "stride": p.software.stride} for p in every]
        names = shorten_names(labels)
        for point, label in zip(every, labels, strict=True):
            point.software = replace(point.software, order=label["ordering"], stride=label["stride"])
        self._cut = {hardware: {names["ordering"].get(name, name): None for name in cut}
                     for hardware, cut in self._cut.items()}  # fmt: skip

    def verdict(self, rows: Rows, axes: Sequence[Axis] = ()) -> Verdict:
        """Return the answer. rows: those given, complete; axes: what was swept and has a column of its own."""
        self._shorten()
        firsts = [points[0].row for points in self._groups.values()]
        names = hardware_names(rows, firsts, axes)
        cards = [
            _card(name, points, self._inputs[hardware], tuple(self._cut.get(hardware, ())))
            for name, (hardware, points) in zip(names, self._groups.items(), strict=True)
        ]
        return Verdict(tuple(card for card in cards if card), tuple(effects(rows, axes)), _proxies(rows))


def split(config: Mapping[str, Any]) -> tuple[str, Software, str]:
    layout, fast = dict(config["layout"]), config["fast_memory"]
    made_for = f"M = {fast['size']}, {fast['policy']}"
    software = Software(
        order_label(config), label_of(config["stride"]), config["format"], layout.pop("kind"), made_for
    )  # fmt: skip
    network = dict(config["network"])
    generated = network.get("generate")
    seed = str(config["seed"])
    if generated and "seed" in generated:
        seed = f"{seed}, network {generated['seed']}"
        network["generate"] = {key: value for key, value in generated.items() if key != "seed"}
    left_out = ("ordering", "stride", "format", "layout", "network", "seed", "search", "fast_memory", "accuracy")
    rest = {key: value for key, value in config.items() if key not in left_out}
    return canonical_json({**rest, "network": network, "layout": layout}), software, seed


def _baseline(points: Sequence[_Point]) -> Software:
    return next((p.software for p in points if p.kind == ROW_BY_ROW), points[0].software)


_HARDWARE = ("network", "onchip", "encoder", "part", "lanes", "engines", "timing")


def hardware_names(rows: Rows, firsts: Sequence[int], axes: Sequence[Axis]) -> list[str]:
    keys = [*_HARDWARE, *(a.key for a in axes if not a.key.startswith(_NO_HARDWARE))]
    shown = [{"hash": "", "name": "", **{key: rows[k].get(key) for key in keys}} for k in firsts]
    titles = {a.key: a.title for a in axes if a.key in keys} | {"onchip": "on-chip memory"}
    named = []
    for row, name in zip(shown, distinct_labels(shown, titles), strict=True):
        onchip = str(row["onchip"])
        rest = [part for part in name.split(", ") if part and part != onchip]
        named.append(", ".join([onchip, *rest]))
    return named


_NO_HARDWARE = (
    *("ordering", "stride", "format", "layout_kind", "layout_lanes", "seed", "network_generate_seed", "search"),
    "fast_memory",
)


def _card(hardware: str, points: Sequence[_Point], inputs: int, cut: tuple[str, ...]) -> Card | None:
    made_for = {point.software.made_for for point in points}
    for point in points:  # named where it tells orders apart
        named = f"{point.software.order} for {point.software.made_for}" if len(made_for) > 1 else point.software.order
        point.software = replace(point.software, order=named, made_for="")
    by: dict[Software, dict[str, _Point]] = {}
    for point in points:
        by.setdefault(point.software, {}).setdefault(point.seed, point)
    if len(by) < 2:
        return None
    seeds = set.intersection(*(set(each) for each in by.values())) or None
    alike_seeds = {s: [each[k] for k in seeds or each] for s, each in by.items()}  # without common ones: of all
    mean = {s: (np.mean([p.sums for p in each], 0), fmean(p.time for p in each)) for s, each in alike_seeds.items()}
    static = {s: fmean(p.static for p in each) for s, each in alike_seeds.items()}
    kinds = {point.software: point.kind for point in points}
    total = {s: float(sums[:, 0].sum()) for s, (sums, _) in mean.items()}
    names = list(mean)
    energies = drawn(np.stack([mean[s][0] for s in names]))
    index = {s: k for k, s in enumerate(names)}
    best = min(names, key=total.__getitem__)
    base = _baseline(points)

    def gain(one: Software, other: Software) -> Gain:
        each = None
        if seeds and len(seeds) > 1:
            of = [float(by[one][k].sums[:, 0].sum() / by[other][k].sums[:, 0].sum() - 1) for k in seeds]
            each = (min(of), max(of))
        return gain_in(
            energies[index[one]], energies[index[other]], (total[one], total[other]), (mean[one][1], mean[other][1]),
            each, (static[one], static[other]),
        )  # fmt: skip

    alike = [s for s in names if (s.stride, s.format) == (best.stride, best.format)]
    rows = [s for s in alike if kinds[s] == ROW_BY_ROW]
    blocks = [s for s in alike if is_blocking(kinds[s])]
    others = [s for s in alike if s not in rows and s not in blocks]
    columns, gains = [], {}
    for name, group in (("row by row", rows), ("blocking", blocks), ("found", others)):
        if group:
            least = min(group, key=total.__getitem__)
            columns.append((name, least.order, least.layout, total[least], mean[least][1]))
            if name != "found" and least.order != best.order:
                gains[name] = gain(best, least)
    if not rows and base in alike and base != best:
        gains["first order"] = gain(best, base)
    for axis in ("stride", "format", "layout"):
        back = Software(**{**vars(best), axis: getattr(base, axis)})
        if back in index and back != best:
            gains[axis] = gain(best, back)
    if base != best:
        gains["all"] = gain(best, base)
    low, high = min(total[s] for s in alike), max(total[s] for s in alike)
    holds = float(np.mean(energies[index[best]] <= energies.min(axis=0)))
    return Card(
        hardware, inputs, best, base, total[best], mean[best][1], tuple(columns), gains, holds,
        high / low - 1 if low else 0.0, len(points), points[0].row,
        len(seeds or ()) or len({p.seed for p in points}), cut,
        next((p.bound_by for p in points if p.software == best), ""), len({s.order for s in alike}),
    )  # fmt: skip


def is_blocking(kind: str) -> bool:
    from reorder.base import ORDERINGS

    return kind in ORDERINGS and bool(getattr(ORDERINGS[kind].item, "blocking", False))


_EFFECTS = ("ordering", "stride", "format", *_HARDWARE, "memory", "policy")


def effects(rows: Rows, axes: Sequence[Axis]) -> list[Effect]:
    spent, took = column(rows, "energy_pj"), column(rows, "time_ns")
    played = [k for k, each in enumerate(spent) if each]
    titles = {axis.key: axis.title for axis in axes}
    seeds = [key for key in ("seed", "network_generate_seed", "generate_seed") if len(set(column(rows, key))) > 1]
    several = sum(name.startswith(("caches_", "scratchpad_")) for name in titles) > 1  # parts of one on-chip memory
    swept = (k for k in dict.fromkeys((*_EFFECTS, *titles)) if k not in seeds and not (k == "onchip" and several))
    values = {key: column(rows, key) for key in telling(rows, swept, played)}
    every = {**values, **{key: column(rows, key) for key in seeds}}
    found = []
    for key, of in values.items():
        base: dict[tuple[Any, ...], int] = {}
        first = of[played[0]]
        rest = [every[name] for name in every if name != key]
        for k in played:
            if of[k] == first:
                base.setdefault(tuple(each[k] for each in rest), k)
        changes: dict[Any, list[tuple[float, float]]] = {}
        for k in played:
            other = base.get(tuple(each[k] for each in rest)) if of[k] != first else None
            if other is not None and took[other]:
                changes.setdefault(of[k], []).append((spent[k] / spent[other] - 1, took[k] / took[other] - 1))
        for value, pairs in changes.items():
            energy, time = ((median(each), min(each), max(each)) for each in zip(*pairs, strict=True))
            title = titles.get(key, column_title(key))
            words, usual = (format_value(title, v).removeprefix(f"{title.partition(' (')[0]} ") for v in (value, first))
            found.append(Effect(title.partition(" (")[0], words, usual, energy, time, len(pairs)))
    return found


PROXIES = {"io": "I/Os", "bytes": "bytes", "distance": "data movement distance"}
"""Columns that stand in for energy where no machine is simulated, and their names."""


def _proxies(rows: Rows) -> dict[str, float]:
    spent = column(rows, "energy_pj")
    if any(len(set(column(rows, key))) > 1 for key in ("lanes", "inputs")):  # counts are of a pass, energies of one
        return {}
    found = {}
    for key, name in PROXIES.items():
        pairs = [(x, y) for x, y in zip(column(rows, key), spent, strict=True) if x is not None and y is not None]
        if len(pairs) >= 5 and all(len(set(each)) > 1 for each in zip(*pairs, strict=True)):
            found[name] = rank_correlation(*zip(*pairs, strict=True))
    return found


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rho of two columns; ties have their mean rank."""

    def ranks(values: Sequence[float]) -> Any:
        _, inverse, count = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[inverse]

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])
