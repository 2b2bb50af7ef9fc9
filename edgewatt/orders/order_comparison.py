"""The machines of a study of two orders, which orders are played there, and what both cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgewatt.evaluation.costs import rows_of
from edgewatt.evaluation.machine_cost import MachineCost, order_on_machine, settled, what_is_open
from hwmodel.energy.technology import load_technology
from hwmodel.fastmemory.iomodel import io_curve
from hwmodel.machine import BusSpec, Machine
from hwmodel.parts.part_file import load_part
from reorder.base import ORDERINGS, Ordering
from reorder.edges.machine.surrogate import Int64Array
from reorder.order import order as make_order
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.layout.settings import Layout
from traces.networks.checks import check_order
from traces.networks.network import Network

MOST_IO_SIZES = 512
MOST_IO_STEPS = 2**27  # connections times sizes whose I/Os are counted: about a second
MOST_PROBES = 8
_ANY_NETWORK = {"generate": {"kind": "uniform-layers", "widths": [2, 2], "density": 1.0}}


def machine_of(system: str | Path | Mapping[str, Any] | Machine) -> Machine:
    from edgewatt.config.loading import as_document
    from edgewatt.runs.model import build_machine
    from edgewatt.runs.plan import points_of

    if isinstance(system, Machine):
        if system.part is None:
            raise InputError("the machine has no DRAM part: energy and time need one")
        machine = system.with_part_read()
    else:
        keys = dict(system) if isinstance(system, Mapping) else {"system": str(system)}
        machine = build_machine(points_of(as_document({"network": _ANY_NETWORK, **keys}))[0])
    if machine.scratchpad is None and not machine.caches:
        raise InputError("the system has neither caches nor a scratchpad: there is no size to vary")
    return machine


def legal_sizes(network: Network, machine: Machine, lanes: int) -> list[int]:
    """Return the sizes that a machine's on-chip memory can have, ascending.

    Scratchpads: each number of rows from 2 to all neurons. First caches: powers of two of its sets, to 2 GiB, and no
    larger than the level behind it. With a technology, those that it has energies for. Raises InputError for none.
    """
    ways: int | None = None
    if machine.scratchpad is not None:
        row_bytes = Layout(lanes=lanes).row_bytes
        rows = max(int(network.touched.sum()), 3)
        sizes = [machine.scratchpad.stream_bytes + row_bytes * n for n in range(2, rows + 2)]
    else:
        first, ways = machine.caches[0], machine.caches[0].ways
        sizes = [first.line_bytes * first.ways << k for k in range(20)]
        if len(machine.caches) > 1:
            sizes = [size for size in sizes if size <= machine.caches[1].size_bytes]
    if machine.technology is None:
        return sizes
    technology = load_technology(machine.technology)
    priced = [size for size in sizes if technology.covers(size, ways)]
    if not priced:
        raise InputError(
            f"technology {technology.name!r} has no energies for on-chip memories of {sizes[0]} to {sizes[-1]} bytes: "
            "use another one, or none"
        )
    return priced


def size_of(machine: Machine) -> int:
    return machine.scratchpad.size_bytes if machine.scratchpad is not None else machine.caches[0].size_bytes


def policy_of(machine: Machine) -> str:
    return machine.scratchpad.policy if machine.scratchpad is not None else machine.caches[0].policy


def with_memory(machine: Machine, **keys: Any) -> Machine:
    if machine.scratchpad is not None:
        return replace(machine, scratchpad=replace(machine.scratchpad, **keys))
    return replace(machine, caches=(replace(machine.caches[0], **keys), *machine.caches[1:]))


def with_part(machine: Machine, part: str) -> Machine:
    if part == machine.part.name:
        return machine
    loaded = load_part(part)
    organisation = loaded.organisation
    if organisation.burst_bytes % organisation.byte_lanes:
        raise InputError(f"part {part!r}: a burst is not a whole number of beats")
    return replace(machine, part=loaded, bus=BusSpec(organisation.byte_lanes, organisation.burst_bytes))


@dataclass(frozen=True)
class StudyChoice:
    """One combination of what a study varies besides the size."""

    part: str
    value_format: str
    lanes: int
    policy: str

    @property
    def words(self) -> dict[str, str]:
        lanes = f"{self.lanes} lanes"
        return {"part": self.part, "format": self.value_format, "lanes": lanes, "policy": self.policy}

    def __str__(self) -> str:
        return ", ".join(self.words.values())


@dataclass(frozen=True)
class StudyRange:
    """The sizes of on-chip memory for one choice. model: of its machine, at the system's own size. legal: sizes that
    it can have, requested: those asked for, both ascending. first: the model at the size named first, or its own."""

    model: MachineCost
    legal: list[int]
    requested: list[int]
    first: MachineCost

    def at(self, size: int) -> MachineCost:
        return _sized(self.model, size)


def range_of(model: MachineCost, choice: StudyChoice, sizes: Sequence[int] | None) -> StudyRange:
    """Return the sizes nearest to those wished (None: the system's own and six around) that a choice's machine has."""
    machine = with_memory(with_part(model.machine, choice.part), policy=choice.policy)
    varied = replace(
        model, machine=machine, layout=replace(model.layout, value_format=choice.value_format, lanes=choice.lanes)
    )
    own, legal = size_of(machine), legal_sizes(model.network, machine, choice.lanes)
    if not sizes or own in sizes:
        legal = sorted({*legal, own})
    requested = _nearest(legal, sizes or [own * 2**k // 8 for k in range(7)])
    (first,) = _nearest(legal, [sizes[0] if sizes else own])
    return StudyRange(varied, legal, requested, _sized(varied, first))


def _sized(model: MachineCost, size: int) -> MachineCost:
    return replace(model, machine=with_memory(model.machine, size_bytes=size))


def _nearest(legal: Sequence[int], wished: Sequence[int]) -> list[int]:
    return sorted({min(legal, key=lambda size: (abs(size - wish), size)) for wish in wished})


class PlayedOrders:
    """Which two orders are played on a machine: those given, and those that a method makes for `model` or for `each`.

    names: what both are called. made: which of these a method makes for a machine (row by row is the same for all).
    notes: what time limits left open, by machine ('': of the one for all). Orders for I/Os alone (`by_io`) are made for
    `memory`, or that of the machine.
    """

    def __init__(
        self,
        model: MachineCost,
        orders: tuple[Any, Any],
        *,
        each: bool,
        by_io: bool,
        memory: int | None,
        time_limit_s: float | None,
        parameters: Mapping[str, Any],
    ) -> None:
        self._parameters = parameters
        if parameters and not isinstance(orders[0], str):
            raise InputError(f"{next(iter(parameters))} is a parameter of a method: the order is given")
        self.model, self.each, self.by_io, self.memory, self.time_limit_s = model, each, by_io, memory, time_limit_s
        self._given = tuple(
            None if isinstance(order, str)
            else self._held(_name_of(order), check_order(model.network, getattr(order, "edges", order)))
            for order in orders
        )  # fmt: skip
        names = tuple(map(_name_of, orders))
        by_name = dict.fromkeys(order for order in orders if isinstance(order, str))
        self.made = tuple(name for name in by_name if not ORDERINGS[name].item.whole_rows)
        if names[0] == names[1]:  # two orders of one method
            names = tuple(_with_parameters(name, order) for name, order in zip(names, orders, strict=True))
        self.names: tuple[str, str] = (names[0], names[1])
        self.notes: dict[str, str] = {}
        self._once: tuple[Int64Array, Int64Array] | None = None
        if each and not self.made:
            raise InputError(
                "each makes an order by a method's name for every machine: both orders are given, name a method "
                "(two-optimal depends on no machine)"
            )
        if each and memory is not None:
            raise InputError(
                "memory is for one order on all machines, each for an order on every one: leave one of them out"
            )

    def on(
        self, model: MachineCost, where: str = "", progress: Progress | None = None
    ) -> tuple[Int64Array, Int64Array]:
        if self.each:
            return self._pair(model, where, progress)
        if self._once is None:
            self._once = self._pair(self.model, "", progress)
        return self._once

    def made_on(self, model: MachineCost) -> bool:
        same = (model.machine, model.layout) == (self.model.machine, self.model.layout)
        return bool(self.made) and self.memory is None and (self.each or same)

    def _pair(self, model: MachineCost, where: str, progress: Progress | None) -> tuple[Int64Array, Int64Array]:
        one, other = (
            self._make(model, name, where, progress, parameters) if given is None else given
            for name, given, parameters in zip(self.names, self._given, (self._parameters, {}), strict=True)
        )
        return one, other

    def _make(
        self, model: MachineCost, method: str, where: str, progress: Progress | None, parameters: Mapping[str, Any]
    ) -> Int64Array:
        limits: Any = {"seed": model.seed, "time_limit_s": self.time_limit_s, "progress": progress, **parameters}
        if self.by_io:
            memory = self.memory or rows_of(model.machine, model.layout)
            made = make_order(model.network, method, memory=memory, **model.evicts, **limits)
            return self._held(method, made.edges)
        ordering = settled(model, order_on_machine(model, method, memory=self.memory, **limits), progress)
        if ordering.parameters.get("interrupted"):
            self.notes[where] = f"The search of {method} was interrupted: its best order so far is compared."
        if note := what_is_open(ordering):
            self.notes[where] = f"{self.notes.get(where, '')} {note}".strip()
        return self._held(method, ordering.edges)

    def _held(self, name: str, edges: Int64Array) -> Int64Array:
        if not self.model.holds(edges):
            kind = self.model.layout.kind
            raise InputError(f"layout {kind!r} cannot store the order {name!r}: use layout 'tuples' or 'coo'")
        return edges


def _name_of(order: Any) -> str:
    return order if isinstance(order, str) else order.method if isinstance(order, Ordering) else "order"


def _with_parameters(name: str, order: Any) -> str:
    given = [f"{key}={value}" for key, value in order.parameters.items()] if isinstance(order, Ordering) else []
    seed = [f"seed={order.seed}"] if isinstance(order, Ordering) and order.seed else []
    return f"{name} ({', '.join(given + seed)})" if given or seed else name


class StudyCosts:
    """What the orders that are played cost on machines; each cost is worked out once. expected: machines, or None."""

    def __init__(self, orders: PlayedOrders, progress: Progress | None, expected: int | None = None) -> None:
        self.orders, self.evaluations = orders, 0
        self._progress, self._expected = progress, expected
        self._known: dict[Any, tuple[dict[str, Any], dict[str, Any]]] = {}

    def io_savings(self, model: MachineCost, sizes: list[int]) -> dict[int, bool]:
        """Return for sizes of a scratchpad whether the order saves I/Os: all of them where counting them is cheap.

        Bytes are saved where I/Os are if both orders read the same bytes of connections. {} for a cache, and where each
        size has its own order.
        """
        pad, network = model.machine.scratchpad, model.network
        if pad is None or self.orders.each:
            return {}
        most = max(MOST_IO_STEPS // max(network.n_connections, 1), MOST_IO_SIZES)
        if len(sizes) > most:
            sizes = sizes[:: -(-len(sizes) // most)]
        memories = [replace(pad, size_bytes=size).memory(model.layout.sum_row_bytes) for size in sizes]
        mine, other = (
            [counts.total for counts in io_curve(network, edges, memories, pad.policy, pad.pinning)]
            for edges in self.orders.on(model, progress=self._progress)
        )
        return {size: one < two for size, one, two in zip(sizes, mine, other, strict=True)}

    def costs(self, model: MachineCost, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
        machine = model.machine
        key = (machine.part.name, machine.scratchpad, machine.caches, model.layout)
        if key not in self._known:
            one, other = self.orders.on(model, where, self._searching())
            self._known[key] = (model.costs(one), model.costs(other))
            self.evaluations += 1
            if self._progress is not None:
                self._progress(self.evaluations, self._expected, "sizes simulated")
        return self._known[key]

    def _searching(self) -> Progress | None:
        report = self._progress
        if report is None or self._expected is None:
            return report
        return lambda done, total, text: report(self.evaluations, self._expected, text)
