"""Where one order saves against another: over sizes of on-chip memory, parts, formats, lanes and policies.

Savings are in I/Os of the model, bytes over the memory bus, energy and time. The break-even size of a metric is the
largest on-chip memory with which the order still saves.

Savings need not fall steadily. Where the legal sizes are few or cheap, every one is simulated. Else I/Os are counted at
every size of a scratchpad, energy and time simulated at the sizes asked for and where I/Os begin or cease to be saved,
and each change between two of these is found by bisection. `BreakEven.searched` says which it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from edgewatt.config.kinds import DEFAULT_SYSTEM
from edgewatt.evaluation.costs import LEAST_CHANGE, describe_change, differs, rows_of
from edgewatt.evaluation.machine_cost import cost_per_inference, gain_between
from edgewatt.orders.order_comparison import (
    MOST_PROBES,
    PlayedOrders,
    StudyChoice,
    StudyCosts,
    StudyRange,
    machine_of,
    policy_of,
    range_of,
    size_of,
)
from edgewatt.orders.ordering import machine_cost_for, usual_layout
from edgewatt.results.verdict import Gain
from hwmodel.machine import Machine
from traces.base.errors import InputError, shown
from traces.base.progress import Progress
from traces.base.reprs import OneLineRepr
from traces.base.units import energy
from traces.layout.settings import Layout
from traces.networks.network import Network

FEW_SIZES = 24  # a machine with no more legal sizes is looked at whole
CHEAP_STEPS = 2**20  # and so is one whose sizes times the connections are no more than this: about 10 s
METRICS = ("io", "bytes", "energy", "time")
WORDS = {"io": "I/Os", "bytes": "bytes", "energy": "energy", "time": "time"}


@dataclass(frozen=True)
class BreakEvenPoint:
    """Both orders at one size. order, against: metric -> cost (io: I/Os, bytes, energy: pJ, time: ns), and of each
    stream its bytes, of each energy term its pJ. blocking: costs of the best simple blocking for this size, where that
    is one of those asked for. memory: M of the I/O model. own: whether orders by name were made for this machine; note:
    what a time limit then left open of searches for this machine alone."""

    choice: StudyChoice
    size_bytes: int
    memory: int
    order: Mapping[str, Any]
    against: Mapping[str, Any]
    own: bool = False
    note: str = ""
    blocking: Mapping[str, Any] | None = None

    def saving(self, metric: str) -> float:
        base = float(self.against[metric])
        return (base - float(self.order[metric])) / base if base else 0.0

    def saves(self, metric: str) -> bool:
        return self.saving(metric) > 0 and differs(float(self.order[metric]), float(self.against[metric]))

    @property
    def energies(self) -> tuple[str, str, str]:
        """Energy of an inference against which the order stands, in simple blocks, and of the order."""
        return tuple(
            energy(float(each["energy"]) / self.choice.lanes) if each else "-"
            for each in (self.against, self.blocking, self.order)
        )  # type: ignore[return-value]

    @property
    def sure(self) -> tuple[str, str]:
        on, gain = self.gain_on_blocking, self.gain
        return "-" if on is None else change(-on.energy), f"{100 * gain.sure:.0f}" if gain.decided else "not decided"

    @property
    def gain(self) -> Gain:
        return gain_between(self.order, self.against)

    @property
    def gain_on_blocking(self) -> Gain | None:
        return None if self.blocking is None else gain_between(self.order, self.blocking)

    def reason(self) -> str:
        order, against = (cost_per_inference(cost, self.choice.lanes) for cost in (self.order, self.against))
        return describe_change(order, against)


@dataclass(frozen=True)
class BreakEven(OneLineRepr):
    """What a study found. break_even: choice -> metric -> bytes, None where the order never saves; beyond: metrics that
    still save at the largest size. verdict: one sentence for the first choice, and why. crossings: choice -> metric ->
    changes found, ascending: (largest size before it in bytes, whether that one saves). searched: choice -> the metrics
    for which every legal size in the range was looked at, which makes their answer that of the full grid. made_for: the
    machine that orders by a method's name were made for, in words; empty where none but two-optimal was. note: what
    a time limit left open, empty for nothing."""

    verdict: str
    points: tuple[BreakEvenPoint, ...]
    break_even: Mapping[str, Mapping[str, int | None]]
    beyond: Mapping[str, tuple[str, ...]]
    layout: str
    names: tuple[str, str]
    evaluations: int = 0
    crossings: Mapping[str, Mapping[str, tuple[tuple[int, bool], ...]]] = field(default_factory=dict)
    searched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""
    made_for: str = ""

    __repr__ = OneLineRepr.__repr__

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verdict, self.made_for, self.note)))

    def marked(self, point: BreakEvenPoint) -> bool:
        return point.own and not all(each.own for each in self.points)

    def _repr_fields(self) -> dict[str, object]:
        return {
            "order": self.names[0], "against": self.names[1], "layout": self.layout,
            "sizes": len({point.size_bytes for point in self.points}), "made for": self.made_for or None,
            "verdict": self.verdict,
        }  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "made_for": self.made_for,
            "note": self.note,
            "order": self.names[0],
            "against": self.names[1],
            "layout": self.layout,
            "evaluations": self.evaluations,
            "break_even_bytes": {choice: dict(sizes) for choice, sizes in self.break_even.items()},
            "crossings": {
                choice: {
                    metric: [{"size_bytes": size, "saves_below": saves} for size, saves in changes]
                    for metric, changes in by_metric.items()
                }
                for choice, by_metric in self.crossings.items()
            },
            "every_size_looked_at": {choice: list(metrics) for choice, metrics in self.searched.items()},
            "still_saves_at_the_largest_size": {choice: list(metrics) for choice, metrics in self.beyond.items()},
            "points": [
                {
                    "choice": str(point.choice),
                    "size_bytes": point.size_bytes,
                    "memory": point.memory,
                    "made_for_this": point.own,
                    "note": point.note,
                    "saving": {metric: point.saving(metric) for metric in METRICS},
                    "gain": vars(point.gain),
                    "gain_on_blocking": None if point.gain_on_blocking is None else vars(point.gain_on_blocking),
                    "inputs_at_a_time": point.choice.lanes,
                    "blocking": None if point.blocking is None else dict(point.blocking),
                    "order": dict(point.order),
                    "against": dict(point.against),
                }
                for point in self.points
            ],
        }


def break_even(
    network: Network,
    order: Any,
    *,
    against: Any = "two-optimal",
    system: str | Path | Mapping[str, Any] | Machine = DEFAULT_SYSTEM,
    sizes: Sequence[int] | None = None,
    parts: Sequence[str] | None = None,
    formats: Sequence[str] | None = None,
    lanes: Sequence[int] | None = None,
    policies: Sequence[str] | None = None,
    memory: int | None = None,
    each: bool = False,
    timing: str = "system",
    seed: int = 0,
    progress: Progress | None = None,
    objective: str | None = None,
    layout: str | None = None,
    time_limit_s: float | None = None,
    **parameters: Any,
) -> BreakEven:
    """Say where an order saves against another one, and up to which size of on-chip memory.

    order, against: an Ordering, int[W], or a method's name, which then makes one order for one machine, as `ew.order`
    with `machine` does: with `objective` 'energy' (default), 'time' or 'bytes', or 'io' for I/Os of the model alone
    (default with `memory`: M, by default that of the machine's on-chip memory). That machine has the first of `sizes`,
    `parts`, `formats`, `lanes` and `policies`. With `each` a method makes an order for every machine, and nothing
    between `sizes` is looked at. time_limit_s: of each search; parameters: of the method of `order`.
    system: a shipped system, a YAML file, a mapping with its keys, or a Machine.
    sizes: bytes of its scratchpad or first cache, each taken to the nearest legal one (default: its own, six around;
    methods make their order for its own). parts, formats, lanes: values to try besides (default: the system's part,
    fp32, 16). policies: of the scratchpad or cache. layout: of all orders (default: chosen for each).
    timing: 'system' or 'replay'. At the system's own size all figures are those of `edgewatt order --system`.

    Returns a Pays. Raises InputError for an order of another network, or a size that the system cannot have.
    """
    first = machine_of(system)
    for size in sizes or ():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(
                f"a size of on-chip memory must be a whole number of bytes of at least 1, not {shown(size)}"
            )
    varied = (parts or (first.part.name,), formats or ("fp32",), lanes or (16,), policies or (policy_of(first),))
    choices = [StudyChoice(*combination) for combination in itertools.product(*varied)]
    chosen = objective or ("energy" if memory is None else "io")
    kind = layout or usual_layout(network, first)
    any_layout = Layout(kind=kind, value_format=choices[0].value_format, lanes=choices[0].lanes)
    model = machine_cost_for(
        network, "energy" if chosen == "io" else chosen, first, layout=any_layout, timing=timing, seed=seed
    )
    ranges = {choice: range_of(model, choice, sizes) for choice in choices}
    at_first = ranges[choices[0]].first
    orders = PlayedOrders(
        at_first, (order, against), each=each, by_io=chosen == "io", memory=memory, time_limit_s=time_limit_s,
        parameters=parameters,
    )  # fmt: skip
    study = StudyCosts(orders, progress, sum(len(its.requested) for its in ranges.values()) if each else None)
    points: list[BreakEvenPoint] = []
    changes: dict[str, dict[str, Changes]] = {}
    searched: dict[str, tuple[str, ...]] = {}
    for choice, its in ranges.items():
        legal, requested = its.legal, its.requested
        at = partial(_point, study, choice, its)
        points += [_with_blocking(its, at(size)) for size in requested]
        between = [size for size in legal if requested[0] <= size <= requested[-1]]
        saves_io = study.io_savings(its.model, between)
        cheap = len(between) <= FEW_SIZES or len(between) * network.n_connections <= CHEAP_STEPS
        probes = between if cheap else sorted({*requested, *_around_changes(saves_io)})
        if each:
            legal = probes = requested
        exact = saves_io and len(saves_io) == len(between)
        searched[str(choice)] = METRICS if probes == between else ("io",) if exact else ()
        of = changes.setdefault(str(choice), {})
        for metric in METRICS:
            if metric == "io" and exact:
                of[metric] = changes_of(saves_io.__getitem__, between, between)
            else:
                of[metric] = changes_of(partial(_saves, at, metric), probes, legal)
    verdict = _verdict(orders.names, points, choices[0], changes[str(choices[0])])
    made_for = _made_for(orders, f"{kib(size_of(at_first.machine))}, {choices[0]}")
    notes = _moved(sizes or (), ranges[choices[0]]), _note(orders, len(points))
    sizes_of = {choice: {metric: found.last for metric, found in of.items()} for choice, of in changes.items()}
    beyond = {c: tuple(metric for metric, found in of.items() if found.to_the_end) for c, of in changes.items()}
    crossings = {choice: {metric: found.crossings for metric, found in of.items()} for choice, of in changes.items()}
    return BreakEven(
        verdict, tuple(points), sizes_of, beyond, model.layout.kind, orders.names, study.evaluations, crossings,
        searched, " ".join(filter(None, notes)), made_for,
    )  # fmt: skip


def _made_for(orders: PlayedOrders, machine: str) -> str:
    if not orders.made:
        return ""
    who = f"{_listed(orders.made)} {'were' if len(orders.made) > 1 else 'was'} made for"
    if orders.each:
        return f"{who} each machine anew."
    return f"{who} {f'M = {orders.memory} on ' if orders.memory else ''}{machine}."


def _moved(sizes: Sequence[int], its: StudyRange) -> str:
    other = [kib(size) for size in sizes if size not in its.requested]
    return f"The machine cannot have {_listed(other)}: the nearest sizes were taken." if other else ""


def _note(orders: PlayedOrders, machines: int) -> str:
    if orders.each and len(orders.notes) > 1:
        left = f"The time limit left no room to simulate every construction on {len(orders.notes)} of {machines}"
        return f"{left} machines: one of them may cost less there."
    return " ".join(f"{where}: {note}" if where else note for where, note in orders.notes.items())


pays = break_even  # as it was called before 0.3, and still is in `ew`


@dataclass(frozen=True)
class Changes:
    """Where a saving begins and ceases. crossings: (largest legal size before the change, whether it saves), ascending.
    first, last: the smallest and the largest size that save, None for none; to_the_end: whether the latter is the last
    one looked at."""

    crossings: tuple[tuple[int, bool], ...]
    first: int | None
    last: int | None
    to_the_end: bool


def changes_of(saves: Callable[[int], bool], probes: Sequence[int], legal: Sequence[int]) -> Changes:
    """Return the changes of a saving that show between probes, each found to one legal size by bisection."""
    index = {size: k for k, size in enumerate(legal)}
    known = {index[size]: saves(size) for size in probes}
    end = index[probes[-1]]

    def saves_at(k: int) -> bool:
        if k not in known:
            known[k] = saves(legal[k])
        return known[k]

    done: set[int] = set()
    while True:
        seen = sorted(known)
        open_pairs = [(low, high) for low, high in itertools.pairwise(seen) if known[low] != known[high]]
        wide = [(low, high) for low, high in open_pairs if high - low > 1]
        for low, high in wide:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if saves_at(middle) == known[low] else (low, middle)
        if wide:
            continue
        fresh = [low for low, _ in open_pairs if low not in done]
        for low in fresh:
            done.add(low)
            for k in range(1, 32):
                if low + 2**k < end:
                    saves_at(low + 2**k)
        if not fresh:
            break
    crossings = tuple((legal[low], known[low]) for low, _ in open_pairs)
    saving = [k for k, each in known.items() if each]
    if not saving:
        return Changes(crossings, None, None, False)
    return Changes(crossings, legal[min(saving)], legal[max(saving)], max(saving) == end)


def _around_changes(saves: Mapping[int, bool]) -> list[int]:
    changes = [pair for pair in itertools.pairwise(saves) if saves[pair[0]] != saves[pair[1]]]
    return sorted({size for pair in changes for size in pair})[-MOST_PROBES:]


def _point(study: StudyCosts, choice: StudyChoice, its: StudyRange, size: int) -> BreakEvenPoint:
    model, where = its.at(size), f"{kib(size)}, {choice}"
    one, other = study.costs(model, where)
    own, note = study.orders.made_on(model), study.orders.notes.get(where, "")
    return BreakEvenPoint(choice, size, rows_of(model.machine, model.layout), one, other, own, note)


def _with_blocking(its: StudyRange, point: BreakEvenPoint) -> BreakEvenPoint:
    model = its.at(point.size_bytes)
    block = model.blocked()
    if block is None:
        return point
    return replace(point, blocking={**model.costs(block.edges), "tile": asdict(block.tile)})


def _saves(at: Callable[[int], BreakEvenPoint], metric: str, size: int) -> bool:
    return at(size).saves(metric)


def _verdict(
    names: tuple[str, ...], points: Sequence[BreakEvenPoint], choice: StudyChoice, changes: Mapping[str, Changes]
) -> str:
    mine = [point for point in points if point.choice == choice]
    text = f"{names[0]} against {names[1]} on {choice}: "
    ends = [kib(mine[0].size_bytes), kib(mine[-1].size_bytes)]
    sizes = f"at {ends[0]}" if ends[0] == ends[1] else f"from {ends[0]} to {ends[1]}"
    if all(point.order == point.against for point in mine):
        return f"{text}the order changes nothing on this machine {sizes}: I/Os, bytes, energy and time are the same"
    parts, not_in, no_difference = [], [], []
    for metric in METRICS:
        if not any(differs(float(point.order[metric]), float(point.against[metric])) for point in mine):
            no_difference.append(WORDS[metric])
            continue
        best = max(mine, key=lambda point: point.saving(metric))
        found = changes[metric]
        start, last = found.first, found.last
        if start is None or last is None:
            not_in.append(WORDS[metric])
            continue
        end = " on" if found.to_the_end else f" to {kib(last)}" if last > start else ""
        gaps = sum(not saves for size, saves in found.crossings if start <= size < last)
        but = f", but for {gaps} stretch{'es' if gaps > 1 else ''} between" if gaps else ""
        where = f"{'from' if end else 'at'} {kib(start)}{end}{but}"
        most = f"most at {kib(best.size_bytes)}: {change(best.saving(metric))} %"
        parts.append(f"it pays in {WORDS[metric]} {where} ({most})")
    if not_in:
        words = _listed(not_in)
        words = words if parts or no_difference else f"anything ({words})"
        parts.append(f"it does not pay in {words} {sizes}")
    if no_difference:
        parts.append(f"it makes no difference in {_listed(no_difference)} {sizes} (less than {100 * LEAST_CHANGE:g} %)")
    by_energy = sorted(mine, key=lambda point: point.saving("energy"))
    best = by_energy[-1] if by_energy[-1].saves("energy") else by_energy[0]  # what it saves most, or loses most
    gain, blocks = best.gain, best.gain_on_blocking
    sure = f"Energy at {kib(best.size_bytes)}, within the ranges of the constants: {gain.words}"
    if blocks is not None:
        sure += f"; against the best simple blocking there {blocks.words}"
    return f"{text}{'; '.join(parts)}. {sure}. The reason: {best.reason()}."


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def change(saving: float) -> str:
    """Write a saving as the change in per cent; what rounds to nothing has no sign."""
    text = f"{-100 * saving:+.1f}"
    return "0.0" if float(text) == 0 else text


def kib(size_bytes: int) -> str:
    return f"{size_bytes / 1024:.4g} KiB"
