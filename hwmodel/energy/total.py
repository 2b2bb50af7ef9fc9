"""All energy of a run, term by term: DRAM, wires, on-chip memory and arithmetic, dynamic and static apart.

`Machine.idle` says how much of the device's static energy is billed to the run; leakage is billed whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hwmodel.dram.energy import (
    DATA_WIRES,
    EnergyRow,
    WireRow,
    core_rows,
    data_rows,
    energy_range,
    interface_rows,
    term_ranges,
)
from hwmodel.dram.interface import timed_groups
from hwmodel.energy.onchip import OnChipEnergy, onchip_energy
from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.parts.part_file import load_part
from hwmodel.replay import ReplayResult

KINDS = ("dynamic", "static")
Row = TypeVar("Row", bound=EnergyRow)


@dataclass(frozen=True)
class ReplayEnergy:
    """Rows `count x constant = energy` of the wires and of the DRAM core."""

    interface: tuple[WireRow, ...]
    core: tuple[EnergyRow, ...]

    @property
    def io_pj(self) -> float:
        """Energy of DQ, DBI and extra wires: what the data decide."""
        return sum(row.energy_pj for row in self.interface if row.group in DATA_WIRES)

    @property
    def interface_pj(self) -> float:
        return sum(row.energy_pj for row in self.interface)

    @property
    def core_pj(self) -> float:
        return sum(row.energy_pj for row in self.core)

    @property
    def total_pj(self) -> float:
        return self.interface_pj + self.core_pj


def replay_energy(result: ReplayResult, machine: Machine) -> ReplayEnergy:
    """Return the energy of a replay that ran with a DRAM part; DQ and DBI only where the trace has data."""
    assert result.dram is not None
    part, total, dram = load_part(machine.part), result.total, result.dram
    reads, writes = (int(each.sum()) for each in total.way_bursts)
    rows: list[WireRow] = []
    if total.way_wires is not None:
        sent = total.way_wires.data, total.way_wires.flag, total.way_extra_wires
        rows += data_rows(sent, (reads, writes), machine.flag_wires, part)
    rows += interface_rows(timed_groups(dram.counts, (reads, writes), dram.end_cycle, part), part)
    rows.sort(key=lambda row: row.group == "extra")  # those last
    return ReplayEnergy(tuple(rows), tuple(row for row in core_rows(dram.counts, part) if row.count))


@dataclass(frozen=True)
class Bill:
    """How much of a run's static energy it is billed. idle: the machine's choice. share: of the DRAM's."""

    idle: str | float
    share: float

    def of(self, rows: Iterable[Row], share: float | None = None) -> tuple[Row, ...]:
        """Return rows as they are billed; share: of static ones, default the DRAM's."""
        each = self.share if share is None else share
        return tuple(replace(row, share=each) if row.kind == "static" and row.share != each else row for row in rows)


def bill(idle: str | float, part: Part, *, time_ns: float, moved_bytes: int, footprint_bytes: int) -> Bill:
    """Return what is billed of static energy.

    idle: 'all', 'none', 'capacity' (the bytes of the trace's memory over the device's), 'bandwidth' (bytes moved over
    what the device could have moved in time_ns) or the share itself, 0 to 1.
    """
    o = part.organisation
    if idle == "capacity":
        share = footprint_bytes / o.capacity_bytes
    elif idle == "bandwidth":
        peak = o.channels * o.burst_bytes / (o.burst_cycles * part.tck_ns)  # bytes per ns
        share = moved_bytes / (peak * time_ns) if time_ns else 0.0
    else:
        share = idle if not isinstance(idle, str) else 1.0 if idle == "all" else 0.0
    return Bill(idle, min(float(share), 1.0))


@dataclass(frozen=True)
class RunEnergy:
    """Billed energy of a run.

    memory: of the DRAM's wires and inside it. chip: of on-chip memory and arithmetic, None without a technology.
    whole_static_pj: all static terms as with `idle: all`.
    """

    memory: ReplayEnergy
    chip: OnChipEnergy | None
    bill: Bill
    part: Part
    whole_static_pj: float

    @property
    def rows(self) -> tuple[EnergyRow, ...]:
        chip = () if self.chip is None else (*self.chip.memory, *self.chip.compute)
        return (*self.memory.interface, *self.memory.core, *chip)

    def kind_pj(self, kind: str) -> float:
        """Return the energy of all terms of one kind ('dynamic' or 'static') in pJ."""
        return sum(row.energy_pj for row in self.rows if row.kind == kind)

    @property
    def total_pj(self) -> float:
        return self.kind_pj("dynamic") + self.kind_pj("static")

    def as_record(self) -> dict[str, Any]:
        """Return the energies of a record, JSON values in pJ: dynamic + static = total = the sum of the terms."""
        memory = self.memory
        terms = term_ranges(self.part, memory.core, memory.interface)
        low, high = memory_low, memory_high = energy_range(self.part, memory.core, memory.interface, terms)
        ranged: list[tuple[EnergyRow, float, float]] = []
        if self.chip is not None:
            low, high, ranged = low + self.chip.low_pj, high + self.chip.high_pj, self.chip.ranged()
        chip = {} if self.chip is None else {"onchip": self.chip.memory_pj, "compute": self.chip.compute_pj}
        kinds = {kind: self.kind_pj(kind) for kind in KINDS}
        return {
            "io": memory.io_pj,
            "interface": memory.interface_pj,
            "dram": memory.core_pj,
            "memory_low": memory_low,
            "memory_high": memory_high,
            **chip,
            **kinds,
            "total": sum(kinds.values()),
            "low": low,
            "high": high,
            "idle": {"billed": self.bill.idle, "share": self.bill.share, "whole_static": self.whole_static_pj},
            "terms": {
                row.term: {"count": row.count, "unit": row.unit, "kind": row.kind, "pj": row.energy_pj,
                           "low": least, "high": most}
                for row, least, most in (*terms, *ranged)
                if row.count
            },
        }  # fmt: skip


def run_energy(result: ReplayResult, machine: Machine, time_ns: float) -> RunEnergy:
    """Return the energy of a run that took time_ns on a machine with a part."""
    memory = replay_energy(result, machine)
    chip = None if machine.technology is None else onchip_energy(result, machine, time_ns)
    idle = machine.idle
    billed = bill(
        idle,
        machine.part,
        time_ns=time_ns,
        moved_bytes=result.total.bursts * result.block_bytes,
        footprint_bytes=result.footprint_bytes,
    )
    every = [*memory.interface, *memory.core, *([] if chip is None else chip.memory)]
    whole = sum(row.energy_pj for row in every if row.kind == "static")
    if chip is not None:
        chip = replace(chip, memory=billed.of(chip.memory, float(idle != "none")))
    memory = ReplayEnergy(billed.of(memory.interface), billed.of(memory.core))
    return RunEnergy(memory, chip, billed, machine.part, whole)
