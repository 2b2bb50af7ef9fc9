"""Energy of a replay: its counts, wire group by wire group and core term by core term, through hwmodel.energy.memory.

DQ and DBI come from the bytes on the wires. Strobes run during bursts, the clock all the time, the command wires as the
commands were issued. Extra wires of wide codes are taken to be driven like DQ wires.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.dram.interface import WAYS, GroupCounts, InterfaceCounts, running_wires
from hwmodel.dram.part import Part
from hwmodel.dram.result import DramCounts
from hwmodel.energy.memory import EnergyRow, core_rows, interface_rows, wire_constants_pj
from hwmodel.machine import Machine
from hwmodel.replay import ReplayResult


@dataclass(frozen=True)
class ReplayEnergy:
    """Rows `count x constant = energy` of the wires and of the DRAM core."""

    interface: tuple[EnergyRow, ...]
    core: tuple[EnergyRow, ...]

    @property
    def io_pj(self) -> float:
        """Energy of DQ, DBI and extra wires: what the data decide."""
        return sum(row.energy_pj for row in self.interface if row.term.startswith(("dq_", "dbi_", "extra_")))

    @property
    def interface_pj(self) -> float:
        """Energy of all wires, strobes, clock and commands included."""
        return sum(row.energy_pj for row in self.interface)

    @property
    def core_pj(self) -> float:
        """Energy inside the DRAM."""
        return sum(row.energy_pj for row in self.core)

    @property
    def total_pj(self) -> float:
        """Energy of wires and core."""
        return self.interface_pj + self.core_pj


def replay_energy(result: ReplayResult, machine: Machine) -> ReplayEnergy:
    """Return the energy of a replay that ran with a DRAM part; DQ and DBI only where the trace has data."""
    assert result.dram is not None
    part: Part = machine.part
    core = tuple(row for row in core_rows(result.dram.counts, part) if row.count)
    groups, extra = _data_groups(result, part, inverts=any(n.startswith("dbi") for n in machine.encoder.split("+")))
    o = part.organisation
    bursts = (int(result.total.reads.sum()), int(result.total.writes.sum()))
    if "dqs" in part.interface.wires:
        groups += [running_wires("dqs", way, n * o.burst_cycles, part) for way, n in zip(WAYS, bursts, strict=True)]
    if "ck" in part.interface.wires:
        groups.append(running_wires("ck", "write", result.dram.end_cycle * o.channels, part))
    if "ca" in part.interface.wires:
        groups.append(_command_group(result.dram.counts, part))
    counts = InterfaceCounts(tuple(groups), sum(bursts), 0)
    return ReplayEnergy((*interface_rows(counts, part), *extra), core)


def _command_group(counts: DramCounts, part: Part) -> GroupCounts:
    group, levels = part.interface.wires["ca"], part.interface.command_levels
    ones, rising = counts.ca_ones.sum(axis=0), counts.ca_rising.sum(axis=0)
    driven = group.count * sum(n * len(levels.get(name, ())) for name, n in counts.commands.items())
    n_ones, edges = int(ones.sum()), int(rising.sum())
    ui_ns = part.tck_ns / group.beats_per_clock
    return GroupCounts("ca", "write", ui_ns, n_ones, driven - n_ones, edges, 2 * edges, ones, rising)


def _data_groups(result: ReplayResult, part: Part, *, inverts: bool) -> tuple[list[GroupCounts], list[EnergyRow]]:
    total = result.total
    if total.way_wires is None:
        return [], []
    groups, extra = [], []
    for k, (way, bursts) in enumerate(zip(WAYS, (total.reads, total.writes), strict=True)):
        n_bytes = int(bursts.sum()) * result.block_bytes
        for name, counts, driven in (
            ("dq", total.way_wires.data, 8 * n_bytes),
            ("dbi", total.way_wires.flag, n_bytes if inverts else 0),
        ):
            if name not in part.interface.wires:
                continue
            ones, toggles, rising = (array[k].sum(axis=0) for array in (counts.ones, counts.toggles, counts.rising))
            n_ones = int(ones.sum())
            groups.append(
                GroupCounts(
                    name,
                    way,
                    part.beat_ns,
                    n_ones,
                    driven - n_ones,
                    int(rising.sum()),
                    int(toggles.sum()),
                    ones,
                    rising,
                )
            )
        if total.way_extra_wires is not None:
            static, rise = wire_constants_pj(part, "dq", way, part.beat_ns)
            n_ones = int(total.way_extra_wires.ones[k].sum())
            costly = 8 * n_bytes - n_ones if part.interface.costly_level == 0 else n_ones
            extra.append(EnergyRow(f"extra_{way}_static", costly, "unit intervals", static))
            rising_edges = int(total.way_extra_wires.rising[k].sum())
            extra.append(EnergyRow(f"extra_{way}_dynamic", rising_edges, "rising edges", rise))
    return groups, extra
