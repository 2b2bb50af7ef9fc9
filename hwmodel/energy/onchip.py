"""Energy of on-chip memory and arithmetic: accesses x constant, leakage x run time, multiply-adds x constant.

Caches: every line look-up costs an access (tag and data together), every fill a write, every write-back a read.
Scratchpads: every access of the engine costs one of its width; what DMA brings or takes costs one per block of the
widest port. Leakage counts while the run lasts. All constants are estimates: `low_pj` and `high_pj` say how far off.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.caches.cache import CacheCounts
from hwmodel.caches.spec import CacheSpec
from hwmodel.dram.energy import EnergyRow
from hwmodel.energy.technology import Technology, load_technology
from hwmodel.machine import Machine
from hwmodel.replay import ReplayResult

ID_ACCESS_BYTES = 4  # what the engine takes of a connection at a time: an id, a value or a header


@dataclass(frozen=True)
class OnChipEnergy:
    """Rows `count x constant = energy` of on-chip memory and of arithmetic, and the technology's range."""

    memory: tuple[EnergyRow, ...]
    compute: tuple[EnergyRow, ...]
    technology: Technology

    @property
    def memory_pj(self) -> float:
        """Energy of caches or scratchpad, leakage included."""
        return sum(row.energy_pj for row in self.memory)

    @property
    def compute_pj(self) -> float:
        """Energy of the multiply-adds."""
        return sum(row.energy_pj for row in self.compute)

    @property
    def low_pj(self) -> float:
        """The low end of both together."""
        return self.memory_pj * self.technology.low + self.compute_pj * self.technology.arithmetic_low

    @property
    def high_pj(self) -> float:
        """The high end of both together."""
        return self.memory_pj * self.technology.high + self.compute_pj * self.technology.arithmetic_high


def onchip_energy(result: ReplayResult, machine: Machine, time_ns: float) -> OnChipEnergy:
    """Return the on-chip energy of a run that took time_ns, on a machine with a technology."""
    technology = load_technology(machine.technology)
    rows: list[EnergyRow] = []
    if machine.scratchpad is not None:
        rows += _scratchpad_rows(result, machine, technology, time_ns)
    for level, (spec, counts) in enumerate(zip(machine.caches, result.caches, strict=True), 1):
        rows += _cache_rows(f"l{level}", spec, counts, technology, time_ns)
    compute = []
    if result.work.multiply_adds:
        value_format = str(result.description["layout"]["value_format"])
        each = technology.arithmetic(value_format)
        mark = f" (estimate from {' and '.join(each.estimated_from)})" if each.estimated_from else ""
        unit = f"multiply-adds in {value_format}{mark}"
        compute.append(EnergyRow("multiply_add", result.work.multiply_adds, unit, each.total_pj))
    if result.work.instructions:
        each_pj = machine.engine.instruction_pj
        compute.append(EnergyRow("instruction", result.work.instructions, "instructions", each_pj))
    return OnChipEnergy(tuple(row for row in rows if row.count), tuple(compute), technology)


def _cache_rows(
    name: str, spec: CacheSpec, counts: CacheCounts, technology: Technology, time_ns: float
) -> list[EnergyRow]:
    each = technology.line_cache(spec.size_bytes, spec.ways)
    share = max(spec.line_bytes / each.block_bytes, 1.0)  # a longer line takes as many accesses more
    loads = counts.load_line_hits + counts.load_line_misses
    stores = counts.store_line_hits + counts.store_line_misses
    return [
        EnergyRow(f"{name}_read", loads, "line look-ups of loads", each.read_pj),
        EnergyRow(f"{name}_write", stores, "line look-ups of stores", each.write_pj),
        EnergyRow(f"{name}_fill", counts.fills, "lines filled", share * each.write_pj),
        EnergyRow(f"{name}_writeback", counts.writebacks + counts.dirty_at_end, "lines back", share * each.read_pj),
        leakage_row(name, each.leakage_mw, time_ns),
    ]


def _scratchpad_rows(result: ReplayResult, machine: Machine, technology: Technology, time_ns: float) -> list[EnergyRow]:
    spec, counts = machine.scratchpad, result.scratchpad
    assert spec is not None and counts is not None
    width = min(machine.engine.access_bytes, counts.row_bytes)
    pieces = -(-counts.row_bytes // machine.engine.access_bytes)
    row = technology.scratchpad(spec.size_bytes, width)
    pieces *= max(-(-width // row.block_bytes), 1)
    narrow = technology.scratchpad(spec.size_bytes, ID_ACCESS_BYTES)
    wide = technology.scratchpad(spec.size_bytes, machine.bus.block_bytes)
    blocks = [-(-int(moved.sum()) // wide.block_bytes) for moved in (result.load_bytes, result.store_bytes)]
    return [
        EnergyRow("scratchpad_read", counts.rows_read * pieces, "accesses to rows", row.read_pj),
        EnergyRow("scratchpad_write", counts.rows_written * pieces, "accesses to rows", row.write_pj),
        EnergyRow("scratchpad_connections", counts.connection_accesses, "accesses to connections", narrow.read_pj),
        EnergyRow("scratchpad_dma_in", blocks[0], f"blocks of {wide.block_bytes} bytes", wide.write_pj),
        EnergyRow("scratchpad_dma_out", blocks[1], f"blocks of {wide.block_bytes} bytes", wide.read_pj),
        leakage_row("scratchpad", row.leakage_mw, time_ns),
    ]


def leakage_row(name: str, leakage_mw: float, time_ns: float) -> EnergyRow:
    """Return leakage as nanoseconds x mW (= pJ); the run time is rounded to whole ns."""
    return EnergyRow(f"{name}_leakage", round(time_ns), "ns", leakage_mw)
