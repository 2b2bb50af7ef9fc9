"""The machines of a study of two orders, and what both orders cost on one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgewatt.judging.costs import check_timing, costs_of
from hwmodel.energy.technology import load_technology
from hwmodel.fastmemory.iomodel import io_curve
from hwmodel.machine import Machine
from traces.base.errors import InputError
from traces.base.progress import Progress
from traces.layouts.layout import Layout
from traces.work.network import Network

MOST_IO_SIZES = 512
MOST_IO_STEPS = 2**27  # connections times sizes whose I/Os are counted: about a second
MOST_PROBES = 8
_ANY_NETWORK = {"generate": {"kind": "uniform-layers", "widths": [2, 2], "density": 1.0}}


def machine_of(system: str | Path | Mapping[str, Any] | Machine) -> Machine:
    """Return the machine of a system: a Machine, a shipped name, a YAML file or a mapping with a system's keys."""
    from edgewatt.config.loading import as_document
    from edgewatt.point.expand import points_of
    from edgewatt.point.machine import build_machine

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
        pitch = Layout(lanes=lanes).row_pitch
        rows = max(int(network.touched.sum()), 3)
        sizes = [machine.scratchpad.stream_bytes + pitch * n for n in range(2, rows + 2)]
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


class MachineCosts:
    """What two orders cost on machines, both in one layout; each cost is worked out once. `orders` are set before the
    first."""

    def __init__(
        self, network: Network, first: Machine, layout: str, timing: str, seed: int, progress: Progress | None
    ) -> None:
        self.network, self.first, self.timing, self.seed = network, first, check_timing(timing), seed
        self.layout_kind = layout
        self.orders: tuple[Any, Any] = (None, None)
        self.evaluations = 0
        self._progress = progress
        self._known: dict[Any, tuple[int, tuple[dict[str, Any], dict[str, Any]]]] = {}

    @property
    def policy(self) -> str:
        """The policy of the system's own on-chip memory."""
        pad = self.first.scratchpad
        return pad.policy if pad is not None else self.first.caches[0].policy

    def size_of(self, machine: Machine) -> int:
        """Return the bytes of a machine's on-chip memory."""
        return machine.scratchpad.size_bytes if machine.scratchpad is not None else machine.caches[0].size_bytes

    def memory(self, machine: Machine, lanes: int, size: int) -> int:
        """Return M of the I/O model: of a scratchpad its own, of a cache the rows it has room for."""
        pitch = Layout(lanes=lanes).row_pitch
        if machine.scratchpad is not None:
            return replace(machine.scratchpad, size_bytes=size).memory(pitch)
        return max(size // pitch + 1, 3)

    def machine(self, part: str, policy: str) -> Machine:
        """Return the system with another part and policy."""
        machine = self.first if part == self.first.part.name else with_part(self.first, part)
        if machine.scratchpad is not None:
            return replace(machine, scratchpad=replace(machine.scratchpad, policy=policy))
        return replace(machine, caches=(replace(machine.caches[0], policy=policy), *machine.caches[1:]))

    def sized(self, machine: Machine, size: int) -> Machine:
        """Return the machine with on-chip memory of another size."""
        if machine.scratchpad is not None:
            return replace(machine, scratchpad=replace(machine.scratchpad, size_bytes=size))
        return replace(machine, caches=(replace(machine.caches[0], size_bytes=size), *machine.caches[1:]))

    def io_savings(self, machine: Machine, lanes: int, sizes: list[int]) -> dict[int, bool]:
        """Return for sizes of a scratchpad whether the order saves I/Os: all of them where counting them is cheap.

        Bytes are saved where I/Os are if both orders read the same bytes of connections. {} for a cache.
        """
        pad = machine.scratchpad
        if pad is None:
            return {}
        most = max(MOST_IO_STEPS // max(self.network.n_connections, 1), MOST_IO_SIZES)
        if len(sizes) > most:
            sizes = sizes[:: -(-len(sizes) // most)]
        memories = [self.memory(machine, lanes, size) for size in sizes]
        mine, other = (
            [counts.total for counts in io_curve(self.network, edges, memories, pad.policy, pad.pinning)]
            for edges in self.orders
        )
        return {size: one < two for size, one, two in zip(sizes, mine, other, strict=True)}

    def costs(
        self, machine: Machine, value_format: str, lanes: int
    ) -> tuple[int, tuple[dict[str, Any], dict[str, Any]]]:
        """Return M and what the order and the other one cost on a machine."""
        key = (machine.part.name, machine.scratchpad, machine.caches, value_format, lanes)
        if key not in self._known:
            memory = self.memory(machine, lanes, self.size_of(machine))
            one, other = (self._cost(edges, machine, memory, value_format, lanes) for edges in self.orders)
            self._known[key] = (memory, (one, other))
            self.evaluations += 1
            if self._progress is not None:
                self._progress(self.evaluations, None, "sizes simulated")
        return self._known[key]

    def _cost(self, edges: Any, machine: Machine, memory: int, value_format: str, lanes: int) -> dict[str, Any]:
        layout = Layout(kind=self.layout_kind, value_format=value_format, lanes=lanes)
        return costs_of(self.network, edges, machine, layout, memory=memory, timing=self.timing, seed=self.seed)


def with_part(machine: Machine, part: str) -> Machine:
    """Return the machine with another memory part; its bus follows."""
    from hwmodel.dram.engine import load_part
    from hwmodel.machine import BusSpec

    loaded = load_part(part)
    organisation = loaded.organisation
    if organisation.burst_bytes % organisation.byte_lanes:
        raise InputError(f"part {part!r}: a burst is no whole number of beats")
    return replace(machine, part=loaded, bus=BusSpec(organisation.byte_lanes, organisation.burst_bytes))
