"""The least energy that any order can take on a machine, term by term (docs/concepts/bounds.md, "Energy on a machine").

Every order reads each connection and the row of each neuron, and writes each output. So each burst (of a cache: each
line) that holds any of them is read once at least, when it still holds what memory began with; each DRAM row among them
is opened; and all of this takes the bus its time. What depends on the order beyond that is counted as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cython_ext.trace.ports import cycles_of
from hwmodel.dram.controller import controller_spec
from hwmodel.dram.energy import EnergyRow, core_constants_pj, energy_by_term, interface_rows, wire_constants_pj
from hwmodel.dram.interface import WAYS, InterfaceCounts, running_wires, strobes
from hwmodel.dram.tables import address_map, channel_of
from hwmodel.energy.onchip import ID_ACCESS_BYTES, engine_access, leakage_row, row_access
from hwmodel.energy.technology import load_technology
from hwmodel.energy.total import bill
from hwmodel.fastmemory.scratchpad import Scratchpad
from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.replay.bus_traffic import Wires
from traces.layout.kind import LAYOUTS
from traces.layout.settings import AUTO, BEST, Layout
from traces.networks.network import Network
from traces.trace.build import build_trace
from traces.trace.chunks import STREAMS, Memory, Trace
from traces.trace.plan import ROW_REGIONS, Plan

Int64Array = npt.NDArray[np.int64]

BYTE_CODES = ("raw", "dbi-dc")  # send each byte by itself, so the order of bytes changes no level on the wires
ADDRESS_OF_PAGE = ("channel", "rank", "bank_group", "bank", "row")


@dataclass(frozen=True)
class LeastEnergy:
    """pJ that no order falls below, and its terms, called as those of a simulation; 'background' is any of the core's
    states together. bytes: that every order moves over the memory bus."""

    terms: Mapping[str, float]
    bytes: int

    @property
    def total_pj(self) -> float:
        """Return the sum of the terms."""
        return sum(self.terms.values())

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {"total_pj": self.total_pj, "terms": dict(self.terms), "bytes": self.bytes}


def least_energy(
    network: Network, plain: Int64Array, machine: Machine, layout: Layout, *, timing: str, seed: int = 0
) -> LeastEnergy | None:
    """Return what every order of the network costs at least on a machine with a part, for one pass of `layout.lanes`.

    plain: int64[W], any order. timing: 'system', or 'replay', in which what is written back at the end waits for the
    engine. None where nothing is proved: for a layout or addressing whose bytes depend on the order, for streams that
    pass by, for skipped zeros, and a part with an event of negative energy. O(W + N lanes).
    """
    if layout.kind in (AUTO, BEST) or not LAYOUTS[layout.kind].item.same_bytes:
        return None
    if any(cache.bypass for cache in machine.caches) or machine.engine.skip_zeros:
        return None
    if machine.scratchpad is not None and machine.scratchpad.addressing != "ids":
        return None
    part = machine.part
    core = core_constants_pj(part)
    if min(constant for _, constant in core.values()) < 0:
        return None
    trace = build_trace(network, plain, layout=layout, batch=layout.lanes, seed=seed)
    plan: Plan = trace.plan
    memory = trace.memory
    if machine.scratchpad is not None:
        memory = Scratchpad(trace, machine.scratchpad, machine.engine).transfers.trace.memory
    reads, writes = _bursts_read(plan, memory, machine), _bursts_written(plan, machine)
    spec = controller_spec(machine.memory_controller())
    every = np.concatenate((reads, writes))
    terms = {"read": core["read"][1] * len(reads), "write": core["write"][1] * len(writes)}
    beside = [
        group for way, bursts in zip(WAYS, (reads, writes), strict=True) for group in strobes(way, len(bursts), part)
    ]
    if machine.encoder in BYTE_CODES and not part.interface.cells and not (plan.element[:, 1] % 8).any():
        first_loaded = np.setdiff1d(reads, _bursts_stored_first(plan, machine))
        terms |= _read_levels(first_loaded, memory, machine, trace.description)

    mapped = address_map(part, spec.address_map)
    pages = np.unique(every & _bits(mapped, ADDRESS_OF_PAGE))
    banks = np.unique(pages & _bits(mapped, ADDRESS_OF_PAGE[:-1]))
    terms["activate"] = core["activate"][1] * len(pages)
    terms["precharge"] = core["precharge"][1] * (len(pages) - len(banks))

    per_channel = np.bincount(channel_of(every, mapped), minlength=part.organisation.channels)
    apart = min(part.timing.tCCD, part.organisation.burst_cycles)
    computing = int(_cycles(plan, machine) * machine.engine.cycle_ns / part.tck_ns)
    clocks = int(per_channel.max() - 1) * apart
    first = machine.caches[0] if machine.caches else None
    if timing == "replay" and first is not None and machine.flush and first.write == "back" and first.allocate:
        clocks = max(clocks, computing)  # the last row stored is dirty then, and written back after that
    if "ck" in part.interface.wires:
        beside.append(running_wires("ck", "write", clocks * part.organisation.channels, part))
    # of the bandwidth used, an order may take any share, as it may take any time
    billed = bill(machine.idle, part, time_ns=0.0, moved_bytes=0, footprint_bytes=memory.total_bytes)
    terms |= energy_by_term(billed.of(interface_rows(InterfaceCounts(tuple(beside), len(every), 0), part)))
    terms["background"] = billed.share * _background(clocks, per_channel * apart, part, spec)
    if machine.technology is not None:  # it ends when all is answered, and writes are when the controller has them
        answered = int(np.bincount(channel_of(reads, mapped)).max() - 1) * apart
        time_ns = max(answered, computing) * part.tck_ns
        on_chip = _on_chip(plan, memory, trace, machine, time_ns)
        terms |= energy_by_term(billed.of(on_chip, float(billed.leaks)))
    moved = len(every) * machine.bus.block_bytes
    return LeastEnergy({name: pj for name, pj in terms.items() if pj}, moved)


def _read_levels(
    bursts: npt.NDArray[np.uint64], memory: Memory, machine: Machine, description: Mapping[str, Any]
) -> dict[str, float]:
    """Return the static energy (pJ) of data and flag wires for reading these bursts with memory's first contents."""
    size, part = machine.bus.block_bytes, machine.part
    base = int(bursts.min())
    image = np.zeros(int(bursts.max()) + size - base, np.uint8)  # beyond the arrays there is nothing but zeros
    start, end = max(base, memory.base_address), min(base + len(image), memory.base_address + memory.total_bytes)
    assert memory.image is not None
    image[start - base : end - base] = memory.image[start - memory.base_address : end - memory.base_address]
    data = image[(bursts - np.uint64(base)).astype(np.int64)[:, None] + np.arange(size)].reshape(-1)
    wires = Wires(machine, 1, description)
    wires.send(data, np.zeros(len(bursts), np.uint8), np.zeros(len(bursts), np.uint8))
    nothing = np.zeros(len(STREAMS), np.int64)
    sent = wires.traffic(nothing, nothing).way_wires
    assert sent is not None
    pins, static_pj = "dbi" in part.interface.wires, {}
    for name, driver, counts, lines in (
        ("dq", "dq", sent.data, 8),
        ("dbi" if pins else "extra", "dbi" if pins else "dq", sent.flag, machine.flag_wires),
    ):
        ones = int(counts.ones[0].sum())
        costly = ones if part.interface.costly_level else len(data) * lines - ones
        static_pj[f"{name}_read_static"] = costly * wire_constants_pj(part, driver, "read", part.beat_ns).static
    return static_pj


def _rows(plan: Plan, chosen: npt.NDArray[np.bool_], unit: int, sums: bool = False) -> Int64Array:
    """Return the numbers of the units (of so many bytes) that rows of neurons, or those of their partial sums, lie in,
    ascending, each once."""
    offset, pitch = (plan.sums_offset, plan.sum_pitch) if sums else (plan.neurons_offset, plan.row_pitch)
    first = plan.base_address + offset + pitch * np.flatnonzero(chosen)
    last = (first + (plan.sum_row_bytes if sums else plan.row_bytes) - 1) // unit
    first //= unit
    most = int((last - first).max(initial=-1)) + 1
    numbers = first[:, None] + np.arange(most)
    return np.unique(numbers[numbers <= last[:, None]])


def _touched(plan: Plan) -> npt.NDArray[np.bool_]:
    touched = plan.is_computed.copy()
    touched[plan.source] = True
    return touched


def _units_read(plan: Plan, memory: Memory, unit: int, scalar: bool) -> Int64Array:
    """Return the numbers of the units that every order reads; `scalar`: biases lie in an array of their own."""
    units = [_rows(plan, _touched(plan) & ~plan.is_computed, unit)]
    if not scalar:
        units.append(_rows(plan, plan.is_computed, unit, sums=True))
    shared = {plan.base_address + int(at): int(bits) for at, bits, _, by_weight in plan.element if by_weight}
    for region in memory.regions:
        first, last = region.base_address // unit, (region.base_address + region.n_bytes - 1) // unit
        if region.base_address in shared:  # stored weights that no connection has are never read
            begin = region.base_address + np.unique(plan.slot[-1]) * shared[region.base_address] // 8
            units.append(begin // unit)
        elif region.name not in ROW_REGIONS:
            units.append(np.arange(first, last + 1))
    return np.unique(np.concatenate(units))


def _bursts_of(units: Int64Array, unit: int, burst: int) -> npt.NDArray[np.uint64]:
    each = np.arange(unit // burst) * burst
    return (units[:, None] * unit + each).reshape(-1).astype(np.uint64)


def _bursts_read(plan: Plan, memory: Memory, machine: Machine) -> npt.NDArray[np.uint64]:
    """Return the addresses of the bursts that every order reads, ascending. The first access to each is a load: of
    connections, or of a row with a bias or an input, which comes before all stores there (but for
    `_bursts_stored_first`)."""
    unit = _unit(machine)
    return _bursts_of(_units_read(plan, memory, unit, _scalar(machine)), unit, machine.bus.block_bytes)


def _bursts_stored_first(plan: Plan, machine: Machine) -> npt.NDArray[np.uint64]:
    """Return the addresses of the bursts in which a row may be stored before anything there is loaded: where biases and
    partial sums lie elsewhere."""
    apart = plan.is_computed & (_scalar(machine) or plan.sums_offset != plan.neurons_offset)
    return _bursts_of(_rows(plan, apart, _unit(machine)), _unit(machine), machine.bus.block_bytes)


def _unit(machine: Machine) -> int:
    return machine.caches[-1].line_bytes if machine.caches else machine.bus.block_bytes


def _scalar(machine: Machine) -> bool:
    return machine.scratchpad is not None and machine.scratchpad.bias == "scalar"


def _bursts_written(plan: Plan, machine: Machine) -> npt.NDArray[np.uint64]:
    """Return the addresses of the bursts that every order writes: outputs of a scratchpad, all that is computed of a
    cache, whole lines if the last level has none but dirty ones."""
    burst = machine.bus.block_bytes
    if machine.scratchpad is not None:
        return _bursts_of(_rows(plan, plan.is_computed & plan.is_output, burst), burst, burst)
    if not machine.flush:
        return np.zeros(0, np.uint64)
    last = machine.caches[-1]
    unit = last.line_bytes if last.write == "back" and last.allocate else burst
    return _bursts_of(_rows(plan, plan.is_computed, unit), unit, burst)


def _bits(mapped: Any, names: tuple[str, ...]) -> np.uint64:
    """Return the bits of an address that make up these fields."""
    return np.uint64(sum(((1 << f.bits) - 1) << f.source for f in mapped.fields if f.name in names))


def _row_accesses(plan: Plan, access_bytes: int) -> int:
    return -(-plan.row_bytes // access_bytes)


def _cycles(plan: Plan, machine: Machine) -> float:
    """Return the fewest cycles of the engine: of the accesses to the arrays of each connection, to a row at each (two
    connections differ in one end at least), and to store each computed row once. Of elements below a byte several may
    come at once."""
    whole, steps = int(np.count_nonzero(plan.element[:, 1] >= 8)), len(plan.source)
    pieces = _row_accesses(plan, machine.engine.access_bytes)
    stores = int(plan.is_computed.sum()) * pieces
    each = cycles_of(machine.engine, whole, 0, pieces, 0, plan.lanes, pieces)
    every = cycles_of(machine.engine, steps * whole, 0, steps * pieces, stores, steps * plan.lanes, steps * pieces)
    return max(steps * each, every)


def _background(clocks: int, busy: Int64Array, part: Part, spec: Any) -> float:
    """Return the least background energy of so many clocks, in `busy` (int64[channels]) of which a channel moves data.

    With open rows a bank stays open from its burst until the next one may follow, where tRTP takes no less. The other
    clocks are of the cheapest state that the controller uses.
    """
    core = {term: constant for term, (_, constant) in core_constants_pj(part).items()}
    awake = min(core["background_active"], core["background_precharged"])
    page_behaviour = spec.engine_settings["page"]
    if page_behaviour == "open" and part.timing.tRTP >= part.timing.tCCD:
        awake = core["background_active"]
    states = ["background_active", "background_precharged"]
    states += ["power_down_active", "power_down_precharged"] if spec.power_down_cycles else []
    states += ["self_refresh"] if spec.self_refresh_cycles and "self_refresh" in core else []
    idle = min(core[state] for state in states)
    o = part.organisation
    working = int(np.minimum(busy, clocks).sum())
    return working * awake + (clocks * o.channels * o.ranks - working) * idle


def _on_chip(plan: Plan, memory: Memory, trace: Trace, machine: Machine, time_ns: float) -> list[EnergyRow]:
    """Return the least energy of on-chip memory and arithmetic; blocks of DMA and levels behind the first one are left
    out but for what fills them."""
    technology = load_technology(machine.technology)
    rows, steps = [], len(plan.source)
    computed = int(plan.is_computed.sum())
    if machine.scratchpad is not None:
        pieces, each = row_access(machine.scratchpad, machine.engine.access_bytes, plan.row_bytes, technology)
        rows += [
            EnergyRow("scratchpad_read", steps * pieces, "accesses to rows", each.read_pj),
            EnergyRow("scratchpad_write", computed * pieces, "accesses to rows", each.write_pj),
            leakage_row("scratchpad", each.leakage_mw, int(time_ns)),
        ]
    for level, spec in enumerate(machine.caches, 1):
        one = technology.line_cache(spec.size_bytes, spec.ways)
        narrow = technology.line_cache(spec.size_bytes, spec.ways, ID_ACCESS_BYTES)
        share = max(spec.line_bytes / one.block_bytes, 1.0)
        filled = len(_units_read(plan, memory, spec.line_bytes, False))
        rows += [
            EnergyRow(f"l{level}_fill", filled, "lines filled", share * one.write_pj),
            leakage_row(f"l{level}", one.leakage_mw, int(time_ns)),
        ]
        if level == 1:
            pieces, row = engine_access(spec, machine.engine.access_bytes, plan.row_bytes, technology)
            whole = int(np.count_nonzero(plan.element[:, 1] >= 8))
            rows.append(EnergyRow("l1_read", steps * pieces, "accesses", row.read_pj))
            rows.append(EnergyRow("l1_connections", steps * whole, "accesses", narrow.read_pj))
            rows.append(EnergyRow("l1_write", computed * pieces, "accesses", row.write_pj))
    constant = technology.arithmetic(str(trace.description["layout"]["value_format"])).total_pj
    rows.append(EnergyRow("multiply_add", trace.multiply_adds, "multiply-adds", constant))
    return rows
