"""Energy of a replay: its counts, wire group by wire group and core term by core term, through hwmodel.dram.energy.

Flag wires that the part has no DBI pins for are taken to be driven like DQ wires, as `extra`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.dram.energy import DATA_WIRES, EnergyRow, WireRow, core_rows, energy_range, interface_rows, wire_rows
from hwmodel.dram.interface import WAYS, GroupCounts, InterfaceCounts, sent_group, timed_groups
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
    part = load_part(machine.part)
    core = tuple(row for row in core_rows(result.dram.counts, part) if row.count)
    return ReplayEnergy(_wire_rows(*_wires(result, machine, part), part), core)


def _wires(result: ReplayResult, machine: Machine, part: Part) -> tuple[InterfaceCounts, list[list[GroupCounts]]]:
    """Return what the wires did, and by direction the flag wires that are no DBI pins."""
    assert result.dram is not None
    groups, extra = _data_groups(result, part, machine.flag_wires)
    bursts = (int(result.total.way_bursts[0].sum()), int(result.total.way_bursts[1].sum()))
    groups += timed_groups(result.dram.counts, bursts, result.dram.end_cycle, part)
    return InterfaceCounts(tuple(groups), sum(bursts), 0), extra


def _wire_rows(counts: InterfaceCounts, extra: list[list[GroupCounts]], part: Part) -> tuple[WireRow, ...]:
    """Return the rows of all wires; flag wires that are no DBI pins are taken to be driven like DQ wires."""
    extra_rows = (row for groups in extra for row in wire_rows("extra", "dq", groups, part))
    return (*interface_rows(counts, part), *extra_rows)


def _data_groups(
    result: ReplayResult, part: Part, flag_wires: int
) -> tuple[list[GroupCounts], list[list[GroupCounts]]]:
    """Return DQ and DBI by direction, and the flag wires that are no DBI pins.

    flag_wires: how many the encoder chain drives beside each lane; the first is the DBI pin where the part has one.
    """
    total = result.total
    if total.way_wires is None:
        return [], []
    has_pins = "dbi" in part.interface.wires
    groups, extra = [], []
    for k, (way, bursts) in enumerate(zip(WAYS, total.way_bursts, strict=True)):
        n_bytes, o = int(bursts.sum()) * result.block_bytes, part.organisation
        driven = int(bursts.sum()) * o.burst_beats * o.dq_bits
        groups.append(sent_group("dq", way, total.way_wires.data, k, driven, part))
        flags = sent_group("dbi", way, total.way_wires.flag, k, min(flag_wires, 1) * n_bytes, part)
        if has_pins:
            groups.append(flags)
        flag_groups = [] if has_pins or not flag_wires else [flags]
        if total.way_extra_wires is not None:
            flag_groups.append(sent_group("extra", way, total.way_extra_wires, k, (flag_wires - 1) * n_bytes, part))
        if flag_groups:
            extra.append(flag_groups)
    return groups, extra
