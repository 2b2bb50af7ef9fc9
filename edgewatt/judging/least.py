"""The least energy that any order can take on a machine, term by term (docs/concepts/bounds.md, "Energy on a machine").

Every order reads each connection and the row of each neuron, and writes each output. So each burst (of a cache: each
line) that holds any of them is read once at least, when it still holds what memory began with; each DRAM row among them
is opened; and all of this takes the bus its time. What depends on the order beyond that is counted as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hwmodel.dram.energy import EnergyRow, core_constants_pj, energy_by_term, interface_rows
from hwmodel.dram.engine import controller_spec
from hwmodel.dram.interface import InterfaceCounts, running_wires
from hwmodel.dram.memory_kernel import address_map, channel_of
from hwmodel.energy.onchip import leakage_row
from hwmodel.energy.replay import replay_energy
from hwmodel.energy.technology import load_technology
from hwmodel.fastmemory.scratchpad import Scratchpad
from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.replay import replay
from traces.access.build import build_trace
from traces.access.plan import Plan
from traces.access.trace import STREAMS, Chunk, Memory, Trace
from traces.layouts.kind import LAYOUTS
from traces.layouts.layout import Layout
from traces.work.network import Network

Int64Array = npt.NDArray[np.int64]

BYTE_CODES = ("raw", "dbi-dc")  # send each byte by itself, so the order of bytes changes no level on the wires
PER_BURST = ("read", "write", "dqs_read_static", "dqs_read_dynamic", "dqs_write_static", "dqs_write_dynamic")
READ_LEVELS = ("dq_read_static", "dbi_read_static", "extra_read_static")
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
    engine. None where nothing is proved: for a layout whose bytes depend on the order, and a part with an event of
    negative energy. O(W + N lanes).
    """
    if not LAYOUTS[layout.kind].item.same_bytes:
        return None
    part = machine.part
    core = core_constants_pj(part)
    if min(constant for _, constant in core.values()) < 0:
        return None
    trace = build_trace(network, plain, layout=layout, batch=layout.lanes, seed=seed)
    plan: Plan = trace.plan
    memory = trace.memory
    if machine.scratchpad is not None:
        memory = Scratchpad(trace, machine.scratchpad, access_bytes=machine.engine.access_bytes).trace.memory
    reads, writes = _bursts_read(plan, memory, machine), _bursts_written(plan, machine)
    spec = controller_spec(machine.memory_controller())
    every = np.concatenate((reads, writes))
    once = replay_energy(replay(_once(reads, writes, memory, trace, machine), _bare(machine)), machine)
    kept = [*PER_BURST]
    if machine.encoder in BYTE_CODES and not part.interface.cells and not (plan.element[:, 1] % 8).any():
        kept += READ_LEVELS
    terms = {name: pj for name, pj in energy_by_term((*once.core, *once.interface)).items() if name in kept}

    mapped = address_map(part, spec.address_map)
    pages = np.unique(every & _bits(mapped, ADDRESS_OF_PAGE))
    banks = np.unique(pages & _bits(mapped, ADDRESS_OF_PAGE[:-1]))
    terms["activate"] = core["activate"][1] * len(pages)
    terms["precharge"] = core["precharge"][1] * (len(pages) - len(banks))

    per_channel = np.bincount(channel_of(every, mapped), minlength=part.organisation.channels)
    apart = min(part.timing.tCCD, part.organisation.burst_cycles)
    accesses = _accesses(plan, machine)
    computing = int(accesses / (machine.engine.accesses_per_ns * part.tck_ns))
    clocks = int(per_channel.max() - 1) * apart
    first = machine.caches[0] if machine.caches else None
    if timing == "replay" and first is not None and machine.flush and first.write == "back" and first.allocate:
        clocks = max(clocks, computing)  # the last row stored is dirty then, and written back after that
    terms |= _in_time(clocks, per_channel * apart, part, spec)
    if machine.technology is not None:
        time_ns = max(clocks, computing) * part.tck_ns
        terms |= energy_by_term(_on_chip(plan, memory, trace, machine, time_ns))
    moved = len(every) * machine.bus.block_bytes
    return LeastEnergy({name: pj for name, pj in terms.items() if pj}, moved)


def _bare(machine: Machine) -> Machine:
    return replace(machine, caches=(), scratchpad=None, technology=None)


def _once(
    reads: npt.NDArray[np.uint64], writes: npt.NDArray[np.uint64], memory: Memory, trace: Trace, machine: Machine
) -> Trace:
    """Return a trace that reads and writes each of these bursts once: the reads bring what memory begins with."""
    size = machine.bus.block_bytes
    every = np.concatenate((reads, writes))
    base = int(every.min())
    assert memory.image is not None
    image = np.zeros(int(every.max()) + size - base, np.uint8)
    start, end = max(base, memory.base_address), min(base + len(image), memory.base_address + memory.total_bytes)
    image[start - base : end - base] = memory.image[start - memory.base_address : end - memory.base_address]
    offset = (every - np.uint64(base)).astype(np.int64)
    data = image[offset[:, None] + np.arange(size)].reshape(-1)
    is_write = np.repeat(np.array((0, 1), np.uint8), (len(reads), len(writes)))
    stream = np.full(len(every), STREAMS.index("external"), np.uint8)
    chunk = Chunk(
        every, np.full(len(every), size, np.uint16), is_write, stream, np.arange(len(every) + 1, dtype=np.int64) * size,
        data,
    )  # fmt: skip
    return Trace.from_chunks([chunk], Memory(base, len(image), image), **trace.description)


def _rows(plan: Plan, chosen: npt.NDArray[np.bool_], unit: int) -> Int64Array:
    """Return the numbers of the units (of so many bytes) that rows of neurons lie in, ascending, each once."""
    first = plan.base_address + plan.neurons_offset + plan.row_pitch * np.flatnonzero(chosen)
    last = (first + plan.row_bytes - 1) // unit
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
    found = [_rows(plan, _touched(plan) & ~plan.is_computed if scalar else _touched(plan), unit)]
    shared = {plan.base_address + int(at): int(bits) for at, bits, _, by_weight in plan.element if by_weight}
    for region in memory.regions:
        first, last = region.base_address // unit, (region.base_address + region.n_bytes - 1) // unit
        if region.base_address in shared:  # stored weights that no connection has are never read
            begin = region.base_address + np.unique(plan.slot[-1]) * shared[region.base_address] // 8
            found.append(begin // unit)
        elif region.name != "neurons":
            found.append(np.arange(first, last + 1))
    return np.unique(np.concatenate(found))


def _bursts_of(units: Int64Array, unit: int, burst: int) -> npt.NDArray[np.uint64]:
    each = np.arange(unit // burst) * burst
    return (units[:, None] * unit + each).reshape(-1).astype(np.uint64)


def _bursts_read(plan: Plan, memory: Memory, machine: Machine) -> npt.NDArray[np.uint64]:
    """Return the addresses of the bursts that every order reads, ascending. The first access to each is a load: of
    connections, or of a row with a bias or an input, which comes before all stores there."""
    burst = machine.bus.block_bytes
    unit = machine.caches[-1].line_bytes if machine.caches else burst
    scalar = machine.scratchpad is not None and machine.scratchpad.bias == "scalar"
    return _bursts_of(_units_read(plan, memory, unit, scalar), unit, burst)


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


def _accesses(plan: Plan, machine: Machine) -> int:
    """Return the fewest accesses of the engine: the arrays of each connection, a row at each (two connections differ in
    one end at least), and each computed row once to store it. Of elements below a byte several may come at once."""
    whole = int(np.count_nonzero(plan.element[:, 1] >= 8))
    rows = len(plan.source) + int(plan.is_computed.sum())
    return whole * len(plan.source) + rows * _row_accesses(plan, machine.engine.access_bytes)


def _in_time(clocks: int, busy: Int64Array, part: Part, spec: Any) -> dict[str, float]:
    """Return the terms of a run of so many clocks, in `busy` (int64[channels]) of which a channel moves data.

    With open rows a bank stays open from its burst until the next one may follow, where tRTP takes no less. The other
    clocks are of the cheapest state that the controller uses.
    """
    core = {term: constant for term, (_, constant) in core_constants_pj(part).items()}
    awake = min(core["background_active"], core["background_precharged"])
    if spec.page_policy == "open" and part.timing.tRTP >= part.timing.tCCD:
        awake = core["background_active"]
    states = ["background_active", "background_precharged"]
    states += ["power_down_active", "power_down_precharged"] if spec.power_down_cycles else []
    states += ["self_refresh"] if spec.self_refresh_cycles and "self_refresh" in core else []
    idle = min(core[state] for state in states)
    o = part.organisation
    working = int(np.minimum(busy, clocks).sum())
    terms = {"background": working * awake + (clocks * o.channels * o.ranks - working) * idle}
    if "ck" in part.interface.wires:
        ticking = running_wires("ck", "write", clocks * o.channels, part)
        terms |= energy_by_term(interface_rows(InterfaceCounts((ticking,), 0, 0), part))
    return terms


def _on_chip(plan: Plan, memory: Memory, trace: Trace, machine: Machine, time_ns: float) -> list[EnergyRow]:
    """Return the least energy of on-chip memory and arithmetic; blocks of DMA and levels behind the first one are left
    out but for what fills them."""
    technology = load_technology(machine.technology)
    rows, steps = [], len(plan.source)
    computed = int(plan.is_computed.sum())
    if machine.scratchpad is not None:
        width = min(machine.engine.access_bytes, plan.row_bytes)
        each = technology.scratchpad(machine.scratchpad.size_bytes, width)
        pieces = _row_accesses(plan, machine.engine.access_bytes) * max(-(-width // each.block_bytes), 1)
        rows += [
            EnergyRow("scratchpad_read", steps * pieces, "accesses to rows", each.read_pj),
            EnergyRow("scratchpad_write", computed * pieces, "accesses to rows", each.write_pj),
            leakage_row("scratchpad", each.leakage_mw, int(time_ns)),
        ]
    for level, spec in enumerate(machine.caches, 1):
        one = technology.line_cache(spec.size_bytes, spec.ways)
        share = max(spec.line_bytes / one.block_bytes, 1.0)
        filled = len(_units_read(plan, memory, spec.line_bytes, False))
        rows += [
            EnergyRow(f"l{level}_fill", filled, "lines filled", share * one.write_pj),
            leakage_row(f"l{level}", one.leakage_mw, int(time_ns)),
        ]
        if level == 1:
            lines = -(-plan.row_bytes // spec.line_bytes)
            whole = int(np.count_nonzero(plan.element[:, 1] >= 8))
            loads = steps * (whole + lines)
            rows.append(EnergyRow("l1_read", loads, "line look-ups of loads", one.read_pj))
            rows.append(EnergyRow("l1_write", computed * lines, "line look-ups of stores", one.write_pj))
    constant = technology.arithmetic(str(trace.description["layout"]["value_format"])).total_pj
    rows.append(EnergyRow("multiply_add", trace.multiply_adds, "multiply-adds", constant))
    return rows
