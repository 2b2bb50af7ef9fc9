"""Does this order pay on this machine? Two orders over sizes of on-chip memory, parts, formats, lanes and policies.

Both orders use one layout. Savings are of the order against the other one, in I/Os of the model, bytes over the memory
bus, energy and time. The break-even size of a metric is the largest on-chip memory with which the order still saves.

Savings need not fall steadily. Where the legal sizes between the smallest and the largest one asked for are few or
cheap, every one is played, and the answer is that of the full grid. Else I/Os are counted at every size of a scratchpad
(bytes of tuples follow from them); energy and time are played at the sizes asked for and where I/Os begin or cease
to be saved. Each change between two of these is found by bisection to one row (scratchpad) or one legal size (cache),
and so is what shows 1, 2, 4 ... sizes above it. `Pays.searched` says which it was, `Pays.crossings` holds all found.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from edgewatt.judging.costs import LEAST_CHANGE, change_in_words, differs
from edgewatt.judging.judge import MachineJudge, order_on_machine, what_is_open
from edgewatt.orders.ordering import judge_for
from edgewatt.orders.pays_machine import MOST_PROBES, MachineCosts, legal_sizes, machine_of
from hwmodel.machine import Machine
from reorder.base import Ordering
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.base.shown import Shown
from traces.layouts.kind import LAYOUTS
from traces.layouts.layout import AUTO, Layout
from traces.work.network import Network

FEW_SIZES = 24  # a machine with no more legal sizes is looked at whole
CHEAP_STEPS = 2**20  # and so is one whose sizes times the connections are no more than this: about 10 s
METRICS = ("io", "bytes", "energy", "time")
WORDS = {"io": "I/Os", "bytes": "bytes", "energy": "energy", "time": "time"}


@dataclass(frozen=True)
class StudyChoice:
    """One combination of what a study varies besides the size."""

    part: str
    value_format: str
    lanes: int
    policy: str

    def __str__(self) -> str:
        return f"{self.part}, {self.value_format}, {self.lanes} lanes, {self.policy}"


@dataclass(frozen=True)
class PayPoint:
    """Both orders at one size. order, against: metric -> cost (io: I/Os, bytes, energy: pJ, time: ns), and of each
    stream its bytes, of each energy term its pJ. memory: M of the I/O model."""

    choice: StudyChoice
    size_bytes: int
    memory: int
    order: Mapping[str, Any]
    against: Mapping[str, Any]

    def saving(self, metric: str) -> float:
        """Return the share of `against`'s cost that the order saves; negative where it costs more."""
        base = float(self.against[metric])
        return (base - float(self.order[metric])) / base if base else 0.0

    def reason(self) -> str:
        """Return how energy and bytes change and by which terms and streams, in words: what is saved, at what cost."""
        return change_in_words(dict(self.order), dict(self.against))


@dataclass(frozen=True)
class Pays(Shown):
    """What a study found. break_even: choice -> metric -> bytes, None where the order never saves; beyond: metrics that
    still save at the largest size. verdict: one sentence for the first choice, and why. crossings: choice -> metric ->
    changes found, ascending: (largest size before it in bytes, whether that one saves). searched: choice -> the metrics
    for which every legal size in the range was looked at, which makes their answer that of the full grid. note: what a
    time limit left open, empty for nothing."""

    verdict: str
    points: tuple[PayPoint, ...]
    break_even: Mapping[str, Mapping[str, int | None]]
    beyond: Mapping[str, tuple[str, ...]]
    layout: str
    names: tuple[str, str]
    evaluations: int = 0
    crossings: Mapping[str, Mapping[str, tuple[tuple[int, bool], ...]]] = field(default_factory=dict)
    searched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""

    __repr__ = Shown.__repr__

    def __str__(self) -> str:
        return self.verdict

    def _facts(self) -> dict[str, object]:
        return {
            "order": self.names[0], "against": self.names[1], "layout": self.layout,
            "sizes": len({point.size_bytes for point in self.points}), "verdict": self.verdict,
        }  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "verdict": self.verdict,
            "note": self.note,
            "order": self.names[0],
            "against": self.names[1],
            "layout": self.layout,
            "evaluations": self.evaluations,
            "break_even_bytes": {choice: dict(sizes) for choice, sizes in self.break_even.items()},
            "crossings": {
                choice: {
                    metric: [{"size_bytes": size, "saves_up_to_here": saves} for size, saves in changes]
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
                    "saving": {metric: point.saving(metric) for metric in METRICS},
                    "order": dict(point.order),
                    "against": dict(point.against),
                }
                for point in self.points
            ],
        }


def pays(
    network: Network,
    order: Any,
    *,
    against: Any = "two-optimal",
    system: str | Path | Mapping[str, Any] | Machine = "edge",
    sizes: Sequence[int] | None = None,
    parts: Sequence[str] | None = None,
    formats: Sequence[str] | None = None,
    lanes: Sequence[int] | None = None,
    policies: Sequence[str] | None = None,
    memory: int | None = None,
    timing: str = "system",
    seed: int = 0,
    progress: Progress | None = None,
    objective: str | None = None,
    layout: str | None = None,
    time_limit_s: float | None = None,
) -> Pays:
    """Say where an order pays against another one, and where it stops paying.

    order, against: an Ordering, int[W], or a method's name, which then makes one order for the system, as `ew.order`
    with `machine` does: with `objective` 'energy' (default), 'time' or 'bytes', or 'io' for I/Os of the model alone
    (default with `memory`: M, by default that of the system's own on-chip memory). time_limit_s: of each search.
    system: a shipped system, a YAML file, a mapping with its keys, or a Machine.
    sizes: bytes of its scratchpad or first cache, each taken to the nearest legal one (default: its own, six around).
    parts, formats, lanes: values to try besides (default: the system's part, fp32, 16). policies: of the scratchpad or
    cache. layout: of both orders (default: tuples, which hold any order). timing: 'system' or 'replay'. At the system's
    own size all figures are those of `edgewatt order --system`.

    Raises InputError for an order of another network, or a size that the system cannot have.
    """
    first = machine_of(system)
    lanes, formats = tuple(lanes or (16,)), tuple(formats or ("fp32",))
    for size in sizes or ():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"a size of on-chip memory must be a whole number of bytes of at least 1, not {size!r}")
    chosen = objective or ("energy" if memory is None else "io")
    asked = Layout(kind=layout or AUTO, value_format=formats[0], lanes=lanes[0])
    judge = judge_for(network, "energy" if chosen == "io" else chosen, first, layout=asked, timing=timing, seed=seed)
    study = MachineCosts(network, first, judge.layout.kind, timing, seed, progress)
    wished = memory or study.memory(first, lanes[0], study.size_of(first))
    make = partial(_order, judge, chosen == "io", wished, time_limit_s, progress)
    names, orders, notes = zip(*map(make, (order, against)), strict=True)
    study.orders = (orders[0], orders[1])
    if names[0] == names[1]:  # two orders of one method
        names = tuple(_with_parameters(name, each) for name, each in zip(names, (order, against), strict=True))
    choices = [
        StudyChoice(*combination)
        for combination in itertools.product(parts or (first.part.name,), formats, lanes, policies or (study.policy,))
    ]
    points: list[PayPoint] = []
    break_even: dict[str, dict[str, int | None]] = {}
    beyond: dict[str, tuple[str, ...]] = {}
    crossings: dict[str, dict[str, tuple[tuple[int, bool], ...]]] = {}
    searched: dict[str, tuple[str, ...]] = {}
    for choice in choices:
        machine = study.machine(choice.part, choice.policy)
        own, legal = study.size_of(first), legal_sizes(network, machine, choice.lanes)
        legal = legal if sizes else sorted({*legal, own})
        wanted = _nearest(legal, sizes or [own * 2**k // 8 for k in range(7)])
        at = partial(_point, study, machine, choice)
        points += [at(size) for size in wanted]
        between = [size for size in legal if wanted[0] <= size <= wanted[-1]]
        saves_io = study.io_savings(machine, choice.lanes, between)
        cheap = len(between) <= FEW_SIZES or len(between) * network.n_connections <= CHEAP_STEPS
        probes = between if cheap else sorted({*wanted, *_around_changes(saves_io)})
        same = LAYOUTS[study.layout_kind].item.same_bytes
        counted = () if machine.scratchpad is None else ("io", "bytes") if same else ("io",)
        searched[str(choice)] = METRICS if cheap else tuple(m for m in counted if len(saves_io) == len(between))
        changes: dict[str, Changes] = {}
        for metric in METRICS:
            if metric in searched[str(choice)] and metric in counted:
                changes[metric] = changes_of(saves_io.__getitem__, between, between)
            else:
                changes[metric] = changes_of(partial(_saves, at, metric), probes, legal)
        crossings[str(choice)] = {metric: each.crossings for metric, each in changes.items()}
        break_even[str(choice)] = {metric: each.last for metric, each in changes.items()}
        beyond[str(choice)] = tuple(metric for metric, each in changes.items() if each.to_the_end)
    verdict = _verdict(names, points, choices[0], break_even, beyond, crossings)
    kind, made = study.layout_kind, study.evaluations
    note = " ".join(dict.fromkeys(filter(None, notes)))
    return Pays(verdict, tuple(points), break_even, beyond, kind, names, made, crossings, searched, note)


@dataclass(frozen=True)
class Changes:
    """Where a saving begins and ceases. crossings: (largest legal size before the change, whether it saves), ascending.
    last: the largest size that saves, None for none; to_the_end: whether that is the last one looked at."""

    crossings: tuple[tuple[int, bool], ...]
    last: int | None
    to_the_end: bool


def changes_of(saves: Callable[[int], bool], probes: Sequence[int], legal: Sequence[int]) -> Changes:
    """Return every change of a saving that shows between some legal sizes, each found to one legal size by bisection.

    probes: ascending legal sizes. Savings need not fall steadily: 1, 2, 4 ... sizes above each change are looked at,
    too, and what shows there is bisected in turn.
    """
    place = {size: k for k, size in enumerate(legal)}
    known = {place[size]: saves(size) for size in probes}
    end = place[probes[-1]]

    def look(k: int) -> bool:
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
                low, high = (middle, high) if look(middle) == known[low] else (low, middle)
        if wide:
            continue
        fresh = [low for low, _ in open_pairs if low not in done]
        for low in fresh:
            done.add(low)
            for k in range(1, 32):
                if low + 2**k < end:
                    look(low + 2**k)
        if not fresh:
            break
    crossings = tuple((legal[low], known[low]) for low, _ in open_pairs)
    last = max((k for k, each in known.items() if each), default=None)
    return Changes(crossings, None if last is None else legal[last], last == end)


def _around_changes(saves: Mapping[int, bool]) -> list[int]:
    """Return the sizes on both sides of the last changes of a saving in I/Os."""
    changes = [pair for pair in itertools.pairwise(saves) if saves[pair[0]] != saves[pair[1]]]
    return sorted({size for pair in changes for size in pair})[-MOST_PROBES:]


def _point(study: MachineCosts, machine: Machine, choice: StudyChoice, size: int) -> PayPoint:
    sized = study.sized(machine, size)
    memory, costs = study.costs(sized, choice.value_format, choice.lanes)
    return PayPoint(choice, size, memory, costs[0], costs[1])


def _saves(at: Callable[[int], PayPoint], metric: str, size: int) -> bool:
    return at(size).saving(metric) > 0


def _nearest(legal: Sequence[int], wished: Sequence[int]) -> list[int]:
    """Return the legal sizes nearest to those wished, ascending, each once."""
    return sorted({min(legal, key=lambda size: (abs(size - wish), size)) for wish in wished})


def _order(
    judge: MachineJudge, by_io: bool, memory: int, time_limit_s: float | None, progress: Progress | None, order: Any
) -> tuple[str, Any, str]:
    """Return the name of an order, its edges, and what a time limit left open of a search for it."""
    from reorder.order import order as make
    from traces.work.checks import check_order

    if isinstance(order, str):
        if by_io:
            ordering = make(judge.network, order, memory=memory, seed=judge.seed, time_limit_s=time_limit_s)
        else:
            ordering = order_on_machine(
                judge, order, memory=memory, seed=judge.seed, time_limit_s=time_limit_s, progress=progress
            )
        return order, _held(judge, order, ordering.edges), what_is_open(ordering)
    name = order.method if isinstance(order, Ordering) else "order"
    return name, _held(judge, name, check_order(judge.network, getattr(order, "edges", order))), ""


def _held(judge: MachineJudge, name: str, edges: Any) -> Any:
    if not judge.holds(edges):
        raise InputError(f"layout {judge.layout.kind!r} cannot store the order {name!r}: use layout 'tuples' or 'coo'")
    return edges


def _with_parameters(name: str, order: Any) -> str:
    said = [f"{key}={value}" for key, value in order.parameters.items()] if isinstance(order, Ordering) else []
    seed = [f"seed={order.seed}"] if isinstance(order, Ordering) and order.seed else []
    return f"{name} ({', '.join(said + seed)})" if said or seed else name


def _verdict(
    names: tuple[str, ...],
    points: Sequence[PayPoint],
    choice: StudyChoice,
    break_even: Mapping[str, Mapping[str, int | None]],
    beyond: Mapping[str, tuple[str, ...]],
    crossings: Mapping[str, Mapping[str, tuple[tuple[int, bool], ...]]],
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
        last = break_even[str(choice)][metric]
        if last is None:
            not_in.append(WORDS[metric])
            continue
        start = min((point.size_bytes for point in mine if point.saving(metric) > 0), default=last)
        end = "on" if metric in beyond[str(choice)] else f"to {kib(last)}"
        gaps = sum(not saves for size, saves in crossings[str(choice)][metric] if start <= size < last)
        but = f", but for {gaps} stretch{'es' if gaps > 1 else ''} between" if gaps else ""
        parts.append(f"it pays in {WORDS[metric]} from {kib(start)} {end}{but} (most at {kib(best.size_bytes)}: "
                     f"{change(best.saving(metric))} %)")  # fmt: skip
    if not_in:
        words = _listed(not_in)
        words = words if parts or no_difference else f"anything ({words})"
        parts.append(f"it does not pay in {words} {sizes}")
    if no_difference:
        parts.append(f"it makes no difference in {_listed(no_difference)} {sizes} (less than {100 * LEAST_CHANGE:g} %)")
    by_energy = sorted(mine, key=lambda point: point.saving("energy"))
    best = by_energy[-1] if by_energy[-1].saving("energy") > 0 else by_energy[0]  # what it saves most, or loses most
    return f"{text}{'; '.join(parts)}. The reason at {kib(best.size_bytes)}: {best.reason()}."


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def change(saving: float) -> str:
    """Write a saving as the change in per cent; what rounds to nothing has no sign."""
    text = f"{-100 * saving:+.1f}"
    return "0.0" if float(text) == 0 else text


def kib(size_bytes: int) -> str:
    """Write a size in KiB."""
    return f"{size_bytes / 1024:.4g} KiB"
