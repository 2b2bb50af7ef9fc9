"""Energy and area of what is on chip. Energy: accesses x constant, leakage x run time, multiply-adds x constant.

An access of the engine, of the mean width of its stream, takes the narrowest port that holds it: of a cache the tags
and the words read. Fills, write-backs and what one cache asks of the next move whole lines, DMA blocks.

Area is that of SRAM, by the technology's tables, and of encoder and decoder of the bus; arithmetic and control are left
out. A cache is as wide as its line, a scratchpad as its widest access; a chain takes one codec a stage and channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hwmodel.caches.cache import CacheCounts
from hwmodel.caches.spec import CacheSpec
from hwmodel.coding.chain import parse_chain
from hwmodel.coding.stage import ENCODERS
from hwmodel.dram.energy import EnergyRow
from hwmodel.energy.technology import Access, Technology, load_technology
from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import Machine
from hwmodel.replay import ReplayResult
from traces.trace.chunks import STREAMS

ID_ACCESS_BYTES = 4  # what the engine takes of a connection at a time: an id, a value or a header
CODEC_POWER = 1.5  # Feinberg et al. 2020, section VIII-C: 8 times the area for 4 times the bytes of a block
ROWS = np.isin(STREAMS, ("inputs", "partial_sums", "outputs"))  # bool[len(STREAMS)]: streams of neurons' rows


@dataclass(frozen=True)
class OnChipEnergy:
    """Rows `count x constant = energy` of on-chip memory and of arithmetic, and the technology's range."""

    memory: tuple[EnergyRow, ...]
    compute: tuple[EnergyRow, ...]
    technology: Technology

    @property
    def memory_pj(self) -> float:
        return sum(row.energy_pj for row in self.memory)

    @property
    def compute_pj(self) -> float:
        return sum(row.energy_pj for row in self.compute)

    @property
    def low_pj(self) -> float:
        return self.memory_pj * self.technology.low + self.compute_pj * self.technology.arithmetic_low

    @property
    def high_pj(self) -> float:
        return self.memory_pj * self.technology.high + self.compute_pj * self.technology.arithmetic_high

    def ranged(self) -> list[tuple[EnergyRow, float, float]]:
        """Return each row with its (least, most) in pJ."""
        t = self.technology
        ends = ((self.memory, t.low, t.high), (self.compute, t.arithmetic_low, t.arithmetic_high))
        return [(row, row.energy_pj * low, row.energy_pj * high) for rows, low, high in ends for row in rows]


def onchip_energy(result: ReplayResult, machine: Machine, time_ns: float) -> OnChipEnergy:
    """Return the on-chip energy of a run that took time_ns, on a machine with a technology."""
    technology = load_technology(machine.technology)
    rows: list[EnergyRow] = []
    if machine.scratchpad is not None:
        rows += _scratchpad_rows(result, machine, technology, time_ns)
    for level, (spec, counts) in enumerate(zip(machine.caches, result.caches, strict=True), 1):
        rows += _first_level_rows(result, machine, technology) if level == 1 else _lookup_rows(level, machine, counts)
        rows += _line_rows(f"l{level}", spec, counts, technology, time_ns)
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


def _first_level_rows(result: ReplayResult, machine: Machine, technology: Technology) -> list[EnergyRow]:
    """Return what the engine asks of the first cache: rows, connections, and further lines that accesses reach into."""
    spec, counts = machine.caches[0], result.caches[0]
    loads = result.loads * ~np.isin(STREAMS, spec.bypass)
    rows = []
    for name, reads, accesses, n_bytes in (
        ("read", True, loads * ROWS, result.load_bytes),
        ("connections", True, loads * ~ROWS, result.load_bytes),
        ("write", False, result.stores, result.store_bytes),
    ):
        taken, spent = 0, 0.0
        for n, moved in zip(accesses.tolist(), n_bytes.tolist(), strict=True):
            if n:
                pieces, each = engine_access(spec, machine.engine.access_bytes, moved / n, technology)
                taken += n * pieces
                spent += n * pieces * (each.read_pj if reads else each.write_pj)
        if taken:
            rows.append(EnergyRow(f"l1_{name}", taken, "accesses", spent / taken))
    narrow = technology.line_cache(spec.size_bytes, spec.ways, ID_ACCESS_BYTES)
    split = counts.lookups - sum(row.count for row in rows)
    return [*rows, EnergyRow("l1_split", max(split, 0), "look-ups of further lines", narrow.read_pj)]


def engine_access(spec: CacheSpec, access_bytes: int, width: float, technology: Technology) -> tuple[int, Access]:
    """Return how many accesses of a cache an access of the engine of `width` bytes takes, and the figures of each."""
    widest = min(access_bytes, spec.line_bytes)
    return -(-int(np.ceil(width)) // widest), technology.line_cache(spec.size_bytes, spec.ways, min(width, widest))


def _lookup_rows(level: int, machine: Machine, counts: CacheCounts) -> list[EnergyRow]:
    """Return what one cache asks of the next: lines of its own."""
    inner, spec = machine.caches[level - 2 : level]
    each = load_technology(machine.technology).line_cache(spec.size_bytes, spec.ways, inner.line_bytes)
    return [
        EnergyRow(f"l{level}_read", counts.load_line_hits + counts.load_line_misses, "lines read", each.read_pj),
        EnergyRow(f"l{level}_write", counts.store_line_hits + counts.store_line_misses, "lines written", each.write_pj),
    ]


def _line_rows(
    name: str, spec: CacheSpec, counts: CacheCounts, technology: Technology, time_ns: float
) -> list[EnergyRow]:
    each = technology.line_cache(spec.size_bytes, spec.ways)
    share = max(spec.line_bytes / each.block_bytes, 1.0)  # a longer line takes as many accesses more
    return [
        EnergyRow(f"{name}_fill", counts.fills, "lines filled", share * each.write_pj),
        EnergyRow(f"{name}_writeback", counts.writebacks + counts.dirty_at_end, "lines back", share * each.read_pj),
        leakage_row(name, each.leakage_mw, time_ns),
    ]


def _scratchpad_rows(result: ReplayResult, machine: Machine, technology: Technology, time_ns: float) -> list[EnergyRow]:
    spec, counts = machine.scratchpad, result.scratchpad
    assert spec is not None and counts is not None
    access_bytes = machine.engine.access_bytes
    (each, row), (each_sum, sums) = (
        row_access(spec, access_bytes, width, technology) for width in (counts.row_bytes, counts.sum_row_bytes)
    )

    def accesses(name: str, rows: int, of_sums: int, row_pj: float, sum_pj: float) -> EnergyRow:
        taken = (rows - of_sums) * each + of_sums * each_sum
        mean = row_pj + (sum_pj - row_pj) * of_sums * each_sum / max(taken, 1)
        return EnergyRow(name, taken, "accesses to rows", mean)

    narrow = technology.scratchpad(spec.size_bytes, ID_ACCESS_BYTES)
    wide = technology.scratchpad(spec.size_bytes, machine.bus.block_bytes)
    blocks = [-(-int(moved.sum()) // wide.block_bytes) for moved in (result.load_bytes, result.store_bytes)]
    return [
        accesses("scratchpad_read", counts.rows_read, counts.sums_read, row.read_pj, sums.read_pj),
        accesses("scratchpad_write", counts.rows_written, counts.sums_written, row.write_pj, sums.write_pj),
        EnergyRow("scratchpad_connections", counts.connection_accesses, "accesses to connections", narrow.read_pj),
        EnergyRow("scratchpad_dma_in", blocks[0], f"blocks of {wide.block_bytes} bytes", wide.write_pj),
        EnergyRow("scratchpad_dma_out", blocks[1], f"blocks of {wide.block_bytes} bytes", wide.read_pj),
        leakage_row("scratchpad", row.leakage_mw, time_ns),
    ]


def row_access(spec: ScratchpadSpec, access_bytes: int, row_bytes: int, technology: Technology) -> tuple[int, Access]:
    """Return how many accesses of a scratchpad a row takes, and the figures of each."""
    width = min(access_bytes, row_bytes)
    each = technology.scratchpad(spec.size_bytes, width)
    return -(-row_bytes // access_bytes) * max(-(-width // each.block_bytes), 1), each


def leakage_row(name: str, leakage_mw: float, time_ns: float) -> EnergyRow:
    """Return leakage as nanoseconds x mW (= pJ); the run time is rounded to whole ns."""
    return EnergyRow(f"{name}_leakage", round(time_ns), "ns", leakage_mw, kind="static")


@dataclass(frozen=True)
class Area:
    """Area of one block on chip in um2, from `low_um2` to `high_um2`."""

    name: str
    um2: float
    low_um2: float
    high_um2: float


def chip_area(machine: Machine) -> tuple[Area, ...]:
    """Return the area of a machine's caches or scratchpad and of its codecs; empty where the technology has none."""
    technology = load_technology(machine.technology)
    each = {f"l{k}": technology.line_cache(spec.size_bytes, spec.ways) for k, spec in enumerate(machine.caches, 1)}
    if machine.scratchpad is not None:
        width = max(machine.engine.access_bytes, machine.bus.block_bytes)
        each["scratchpad"] = technology.scratchpad(machine.scratchpad.size_bytes, width)
    areas = [
        Area(name, a.area_um2, a.area_um2 * technology.low, a.area_um2 * technology.high)
        for name, a in each.items()
        if a.area_um2 is not None
    ]
    codec = technology.codec
    stages = sum(not ENCODERS[name].item.plain for name in parse_chain(machine.encoder))
    if len(areas) < len(each) or (stages and codec is None):
        return ()
    if codec is not None and stages:
        channels = 1 if machine.part is None else machine.part.organisation.channels
        size = (machine.bus.block_bytes / codec.block_bytes) ** CODEC_POWER
        um2 = codec.area_um2 * size * stages * channels
        areas.append(Area("codec", um2, um2 * codec.low, um2 * codec.high))
    return tuple(areas)
