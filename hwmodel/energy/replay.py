"""Energy of a replay: its counts, wire group by wire group and core term by core term, through hwmodel.dram.energy."""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.dram.energy import DATA_WIRES, EnergyRow, WireRow, core_rows, data_rows, energy_range, interface_rows
from hwmodel.dram.interface import timed_groups
from hwmodel.machine import Machine
from hwmodel.parts.part import Part
from hwmodel.parts.part_file import load_part
from hwmodel.replay import ReplayResult


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

    def range_pj(self, part: Part) -> tuple[float, float]:
        """Return (least, most) of the energy of wires and core over the ranges of the part's estimates."""
        return energy_range(part, self.core, self.interface)


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
