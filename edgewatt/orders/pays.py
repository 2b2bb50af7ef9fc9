"""Does this order pay on this machine? Two orders over sizes of on-chip memory, parts, formats, lanes and policies.

Both orders use one layout. Savings are of the order against the other one, in I/Os of the model, bytes over the memory
bus, energy and time. The break-even size of a metric is the largest on-chip memory with which the order still saves:
the sizes asked for show between which two the last change lies, and bisection finds it to one row (scratchpad) or one
legal size (cache). Savings in energy and time need not fall steadily, so the sizes where I/Os begin or cease to be
saved are simulated too, and some above the size found; a machine with few legal sizes is looked at whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from edgewatt.orders.pays_machine import Study, legal_sizes, machine_of
from hwmodel.machine import Machine
from reorder.base import Ordering
from traces.base.progress import Progress
from traces.work.network import Network

FEW_SIZES = 24  # a machine with no more legal sizes is looked at whole
METRICS = ("io", "bytes", "energy", "time")
WORDS = {"io": "I/Os", "bytes": "bytes", "energy": "energy", "time": "time"}


@dataclass(frozen=True)
class Choice:
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

    choice: Choice
    size_bytes: int
    memory: int
    order: Mapping[str, Any]
    against: Mapping[str, Any]

    def saving(self, metric: str) -> float:
        """Return the share of `against`'s cost that the order saves; negative where it costs more."""
        base = float(self.against[metric])
        return (base - float(self.order[metric])) / base if base else 0.0

    def reason(self) -> tuple[str, float, str, float]:
        """Return the stream whose bytes change most with the change, and the energy term with the change in pJ."""
        found: list[Any] = []
        for key in ("streams", "terms"):
            names = self.order[key].keys() | self.against[key].keys()
            change = {name: self.order[key].get(name, 0) - self.against[key].get(name, 0) for name in names}
            largest = max(sorted(change), key=lambda name: abs(change[name]))
            found += [largest, change[largest]]
        return tuple(found)


@dataclass(frozen=True)
class Pays:
    """What a study found. break_even: choice -> metric -> bytes, None where the order never saves; beyond: metrics that
    still save at the largest size. verdict: one sentence for the first choice, and why."""

    verdict: str
    points: tuple[PayPoint, ...]
    break_even: Mapping[str, Mapping[str, int | None]]
    beyond: Mapping[str, tuple[str, ...]]
    layout: str
    names: tuple[str, str]
    evaluations: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "verdict": self.verdict,
            "order": self.names[0],
            "against": self.names[1],
            "layout": self.layout,
            "evaluations": self.evaluations,
            "break_even_bytes": {choice: dict(found) for choice, found in self.break_even.items()},
            "still_saves_at_the_largest_size": {choice: list(found) for choice, found in self.beyond.items()},
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
) -> Pays:
    """Say where an order pays against another one, and where it stops paying.

    order, against: an Ordering, int[W], or a method's name, which then makes one order for `memory` (M; by default that
    of the system's own on-chip memory). system: a shipped system, a YAML file, a mapping with its keys, or a Machine.
    sizes: bytes of its scratchpad or first cache (default: seven around its own). parts, formats, lanes: values to try
    besides (default: the system's part, fp32, 16). policies: of the scratchpad or cache. timing: 'system' or 'replay'.

    Raises InputError for an order of another network, or a size that the system cannot have.
    """
    first = machine_of(system)
    lanes, formats = tuple(lanes or (16,)), tuple(formats or ("fp32",))
    study = Study(network, first, timing, seed, progress)
    wished = memory or study.memory(first, lanes[0], study.size_of(first))
    names, orders = zip(*(_order(network, each, wished, seed) for each in (order, against)), strict=True)
    study.orders = (orders[0], orders[1])
    choices = [
        Choice(*combination)
        for combination in itertools.product(parts or (first.part.name,), formats, lanes, policies or (study.policy,))
    ]
    points: list[PayPoint] = []
    break_even: dict[str, dict[str, int | None]] = {}
    beyond: dict[str, tuple[str, ...]] = {}
    for choice in choices:
        machine = study.machine(choice.part, choice.policy)
        legal = legal_sizes(network, machine, choice.lanes)
        wanted = _nearest(legal, sizes or [study.size_of(first) * 2**k // 8 for k in range(7)])
        at = partial(_point, study, machine, choice)
        points += [at(size) for size in wanted]
        between = [size for size in legal if wanted[0] <= size <= wanted[-1]]
        changes = study.io_changes(machine, choice.lanes, legal, wanted)
        probes = between if len(between) <= FEW_SIZES else sorted({*wanted, *changes})
        ends = {metric: last_saving(partial(_saving, at, metric), probes, legal) for metric in METRICS}
        break_even[str(choice)] = {metric: last for metric, (last, _) in ends.items()}
        beyond[str(choice)] = tuple(metric for metric, (_, throughout) in ends.items() if throughout)
    verdict = _verdict(names, points, choices[0], break_even, beyond)
    return Pays(verdict, tuple(points), break_even, beyond, study.layout_kind, names, study.evaluations)


def last_saving(saving: Callable[[int], float], wanted: Sequence[int], legal: Sequence[int]) -> tuple[int | None, bool]:
    """Return the largest legal size with a saving, and whether that is the last of `wanted`; None if there is none.

    saving: size -> share saved. wanted: ascending legal sizes; the last one that saves and the next bound the search.
    Between them it is by bisection. Savings need not fall steadily: sizes 1, 2, 4 ... steps above what was found are
    looked at, too, and the search goes on from one that saves.
    """
    saves = [saving(size) > 0 for size in wanted]
    if not any(saves):
        return None, False
    last = max(k for k, each in enumerate(saves) if each)
    if last == len(wanted) - 1:
        return wanted[last], True
    low, end = legal.index(wanted[last]), legal.index(wanted[last + 1])
    while True:
        high = end
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if saving(legal[middle]) > 0 else (low, middle)
        ahead = [low + 2**k for k in range(1, 32) if low + 2**k < end]
        again = next((k for k in reversed(ahead) if saving(legal[k]) > 0), None)
        if again is None:
            return legal[low], False
        low = again


def _point(study: Study, machine: Machine, choice: Choice, size: int) -> PayPoint:
    sized = study.sized(machine, size)
    memory, costs = study.costs(sized, choice.value_format, choice.lanes)
    return PayPoint(choice, size, memory, costs[0], costs[1])


def _saving(at: Callable[[int], PayPoint], metric: str, size: int) -> float:
    return at(size).saving(metric)


def _nearest(legal: Sequence[int], wished: Sequence[int]) -> list[int]:
    """Return the legal sizes nearest to those wished, ascending, each once."""
    return sorted({min(legal, key=lambda size: (abs(size - wish), size)) for wish in wished})


def _order(network: Network, order: Any, memory: int, seed: int) -> tuple[str, Any]:
    from reorder.order import order as make
    from traces.work.checks import check_order

    if isinstance(order, str):
        found = make(network, order, memory=memory, seed=seed)
        return order, found.edges
    name = order.method if isinstance(order, Ordering) else "order"
    return name, check_order(network, getattr(order, "edges", order))


def _verdict(
    names: tuple[str, ...],
    points: Sequence[PayPoint],
    choice: Choice,
    break_even: Mapping[str, Mapping[str, int | None]],
    beyond: Mapping[str, tuple[str, ...]],
) -> str:
    mine = [point for point in points if point.choice == choice]
    parts = []
    for metric in METRICS:
        best = max(mine, key=lambda point: point.saving(metric))
        last = break_even[str(choice)][metric]
        if last is None:
            parts.append(f"it does not pay in {WORDS[metric]}")
        else:
            start = min((point.size_bytes for point in mine if point.saving(metric) > 0), default=last)
            end = "on" if metric in beyond[str(choice)] else f"to {kib(last)}"
            parts.append(f"it pays in {WORDS[metric]} from {kib(start)} {end} (most at {kib(best.size_bytes)}: "
                         f"{-100 * best.saving(metric):+.1f} %)")  # fmt: skip
    best = max(mine, key=lambda point: point.saving("energy"))
    stream, moved, term, energy = best.reason()
    text = f"{names[0]} against {names[1]} on {choice}: " + "; ".join(parts)
    return (
        f"{text}. The reason at {kib(best.size_bytes)}: {stream} moves {moved / 1e3:+.1f} kB, and the energy term "
        f"{term} changes by {energy / 1e3:+.1f} nJ."
    )


def kib(size_bytes: int) -> str:
    """Write a size in KiB."""
    return f"{size_bytes / 1024:.4g} KiB"
