"""A DRAM's counts become picojoules here.

Core energy per event, summed over the supply rails: V x (I - I_background) x clocks x tCK (mA x V x ns = pJ).
Interface energy per wire group: static = unit intervals at the costly level x VDDQ^2 / R_eq x unit interval, dynamic =
rising edges x C x VDDQ x swing. Every term is a row `count x constant = energy`, which is what `explain` shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hwmodel.coding.coded import WireCosts
from hwmodel.parts.part import COMMANDS, Part, kept

if TYPE_CHECKING:
    from hwmodel.dram.interface import GroupCounts, InterfaceCounts
    from hwmodel.dram.result import DramCounts


@dataclass(frozen=True)
class EnergyRow:
    """One term: count (integer, never negative) x constant_pj (of what `unit` names) = energy_pj."""

    term: str
    count: int
    unit: str
    constant_pj: float

    def __post_init__(self) -> None:
        assert self.count >= 0, f"{self.term}: {self.count} {self.unit}"

    @property
    def energy_pj(self) -> float:
        """Count times constant."""
        return self.count * self.constant_pj


@dataclass(frozen=True)
class WireRow(EnergyRow):
    """One term of a wire group in one direction ('read' or 'write').

    kind: 'static' (unit intervals at the costly level) or 'dynamic' (rising edges). driver: the group whose drivers its
    wires have. ui_ns: the unit interval.
    """

    group: str
    way: str
    kind: str
    driver: str
    ui_ns: float


DATA_WIRES = frozenset({"dq", "dbi", "extra"})
"""Groups whose levels the data decide."""


def core_constants_pj(part: Part) -> dict[str, tuple[str, float]]:
    """Return per core term its unit and the energy of one event or clock, of a whole rank, derived from the currents.

    IDD5PB is the average current of per-bank refreshes every tREFI / sets of banks (or as many in tREFI as the part
    says); the current of one refresh follows from it. IDD0 is the average over tRAS and tRP; where the part gives
    I_beta, that flows during tRP, and what is left of IDD0 during tRAS.
    """
    t, o, i, tck = part.timing, part.organisation, part.currents, part.tck_ns
    devices = o.devices_per_rank
    closing = i.power_mw("I_beta" if "I_beta" in i.idd_ma else "IDD0") * t.tRP
    opening = i.power_mw("IDD0") * (t.tRAS + t.tRP) - closing
    constants = {
        "activate": ("activates", (opening - i.power_mw("IDD3N") * t.tRAS) * tck),
        "precharge": ("banks precharged", (closing - i.power_mw("IDD2N") * t.tRP) * tck),
        "read": ("read bursts", i.power_mw("IDD4R", "IDD3N") * o.burst_cycles * tck),
        "write": ("write bursts", i.power_mw("IDD4W", "IDD3N") * o.burst_cycles * tck),
        "refresh": ("all-bank refreshes", i.power_mw("IDD5AB", "IDD3N") * t.tRFCab * tck),
        "background_active": ("clocks", i.power_mw("IDD3N") * tck),
        "background_precharged": ("clocks", i.power_mw("IDD2N") * tck),
        "power_down_active": ("clocks", i.power_mw("IDD3P") * tck),
        "power_down_precharged": ("clocks", i.power_mw("IDD2P") * tck),
    }
    if t.tRFCpb:
        each = o.refresh_sets if i.per_bank_refreshes is None else i.per_bank_refreshes
        between = t.tREFI / each if each else t.tRFCpb
        one = i.power_mw("IDD5PB", "IDD2N") * between + i.power_mw("IDD2N", "IDD3N") * t.tRFCpb
        constants["refresh_per_bank"] = ("per-bank refreshes", one * tck)
        constants["refresh_two_banks"] = ("refreshes of two banks", one * tck)
        if t.RAAIMT:
            share = t.tRFM / t.tRFCpb / o.refresh_banks
            constants["refresh_management"] = ("banks managed", one * tck * share)
    if "IDD6" in i.idd_ma:
        constants["self_refresh"] = ("clocks", i.power_mw("IDD6") * tck)
    return {term: (unit, pj * devices) for term, (unit, pj) in constants.items()}


def core_rows(counts: DramCounts, part: Part) -> list[EnergyRow]:
    """Return the core energy of a run term by term."""
    events = _core_events(counts.bank_commands, counts.rank_commands, counts.background_cycles)
    constants = kept(part, core_constants_pj)
    return [EnergyRow(term, events[term], unit, constant) for term, (unit, constant) in constants.items()]


def _core_events(bank: np.ndarray, rank: np.ndarray, background: np.ndarray) -> dict[str, int]:
    """Return how often what each core term counts happened. bank, rank: int64[..., command]. background: int64[..., 5]
    clocks."""
    n = len(COMMANDS)
    column, issued = (
        dict(zip(COMMANDS, counts.reshape(-1, n).sum(axis=0).tolist(), strict=True)) for counts in (bank, rank)
    )
    clocks = background.reshape(-1, 5).sum(axis=0).tolist()
    return {
        "activate": column["ACT"],
        "precharge": column["PRE"] + column["PREA"] + column["RDA"] + column["WRA"],
        "read": column["RD"] + column["RDA"],
        "write": column["WR"] + column["WRA"] + column["MWR"],
        "refresh": issued["REFab"] + issued["SRE"],  # self-refresh begins with one
        "background_active": clocks[0],
        "background_precharged": clocks[1],
        "power_down_active": clocks[2],
        "power_down_precharged": clocks[3],
        "refresh_per_bank": issued["REFpb"],
        "refresh_management": issued["RFM"],
        "refresh_two_banks": issued["REF2b"],
        "self_refresh": clocks[4],
    }


def core_energy_pj(counts: DramCounts, part: Part) -> dict[str, float]:
    """Return the core energy per term in pJ."""
    return _core_pj(counts.bank_commands, counts.rank_commands, counts.background_cycles, part)


def _core_pj(bank: np.ndarray, rank: np.ndarray, background: np.ndarray, part: Part) -> dict[str, float]:
    events, constants = _core_events(bank, rank, background), kept(part, core_constants_pj)
    return {term: events[term] * constant for term, (_, constant) in constants.items()}


def core_energy_by_rank_pj(counts: DramCounts, part: Part) -> np.ndarray:
    """Return core energy in pJ, float64[channel, rank]; its sum is that of core_energy_pj."""
    channels, ranks = counts.rank_commands.shape[:2]
    per_rank = counts.bank_commands.reshape(channels, ranks, -1, counts.bank_commands.shape[2]).sum(axis=2)
    return np.array(
        [
            [
                sum(_core_pj(per_rank[c, r], counts.rank_commands[c, r], counts.background_cycles[c, r], part).values())
                for r in range(ranks)
            ]
            for c in range(channels)
        ]
    )


def energy_by_term(rows: Iterable[EnergyRow]) -> dict[str, float]:
    """Return energy per term in pJ, rows of one term added."""
    result: dict[str, float] = {}
    for row in rows:
        result[row.term] = result.get(row.term, 0.0) + row.energy_pj
    return result


@dataclass(frozen=True)
class InterfaceEnergy:
    """Counts and energy of the wires, and the bits of data they moved.

    energy_pj: per group and kind, e.g. energy_pj['dq']['static'].
    """

    counts: InterfaceCounts
    rows: tuple[WireRow, ...]
    data_bits: int

    @property
    def energy_pj(self) -> dict[str, dict[str, float]]:
        """Energy per wire group: static, dynamic and total, read and write added."""
        result: dict[str, dict[str, float]] = {}
        for row in self.rows:
            entry = result.setdefault(row.group, {"static": 0.0, "dynamic": 0.0, "total": 0.0})
            entry[row.kind] += row.energy_pj
            entry["total"] += row.energy_pj
        return result

    @property
    def total_pj(self) -> float:
        """Energy of all groups."""
        return sum(row.energy_pj for row in self.rows)

    @property
    def pj_per_bit(self) -> float:
        """Energy of all groups per bit of data moved; 0 without any."""
        return self.total_pj / self.data_bits if self.data_bits else 0.0

    @property
    def total_data_pj(self) -> float:
        """Energy of DQ and DBI, the part that the data decide."""
        return sum(row.energy_pj for row in self.rows if row.group in DATA_WIRES)


class WireConstants(NamedTuple):
    """pJ of one unit interval at the costly level, and of one rising edge."""

    static: float
    dynamic: float


def wire_constants_pj(part: Part, group: str, way: str, ui_ns: float) -> WireConstants:
    """Return what a wire of a group costs in one direction, with unit intervals of ui_ns."""
    wires = part.interface.wires[group]
    resistance = wires.read_r_eq_ohm if way == "read" else wires.write_r_eq_ohm
    static = 1e3 * part.interface.vddq_v**2 / resistance * ui_ns if resistance else 0.0
    return WireConstants(static, wires.read_rise_pj if way == "read" else wires.write_rise_pj)


def data_wire_costs(part: str | Path | Mapping[str, Any] | Part) -> WireCosts:
    """Return what a data wire of a part costs, the mean of reads and writes."""
    from hwmodel.parts.part_file import load_part

    loaded = load_part(part)
    both = [wire_constants_pj(loaded, "dq", way, loaded.beat_ns) for way in ("read", "write")]
    static, rise = ((a + b) / 2 for a, b in zip(*both, strict=True))
    level = loaded.interface.costly_level
    return WireCosts(static if level == 1 else 0.0, static if level == 0 else 0.0, rise)


def interface_rows(counts: InterfaceCounts, part: Part) -> tuple[WireRow, ...]:
    """Return the energy of the wires, two rows per group and direction: GROUP_WAY_static and GROUP_WAY_dynamic."""
    rows: list[WireRow] = []
    for group in counts.groups:
        rows += wire_rows(group.group, group.group, [group], part)
    return tuple(rows)


def wire_rows(name: str, driver: str, counts: Sequence[GroupCounts], part: Part) -> tuple[WireRow, WireRow]:
    """Return the two rows of wires of one direction that are called `name` and driven like the group `driver`."""
    way, ui_ns = counts[0].way, counts[0].ui_ns
    each = kept(part, wire_constants_pj, driver, way, ui_ns)
    costly = sum(g.zeros if part.interface.costly_level == 0 else g.ones for g in counts)
    rising = sum(g.rising for g in counts)
    return (
        WireRow(f"{name}_{way}_static", costly, "unit intervals", each.static, name, way, "static", driver, ui_ns),
        WireRow(f"{name}_{way}_dynamic", rising, "rising edges", each.dynamic, name, way, "dynamic", driver, ui_ns),
    )


def interface_energy(
    commands: Any,
    *,
    part: str | Path | Mapping[str, Any] | Part,
    dbi: bool,
    beat_order: str = "first-to-last",
    lane_order: tuple[int, ...] | None = None,
    end_cycle: int | None = None,
    metadata: tuple[int, ...] = (0,),
) -> InterfaceEnergy:
    """Count what the wires do for a command table with data, and its energy per wire group.

    commands: CSV path, rows or columns as in hwmodel.dram.command_table. part: shipped name, path or mapping. dbi:
    data bus inversion by the part's rule. Other options: hwmodel.dram.interface.count_interface. Raises InputError.
    """
    from hwmodel.dram.interface import count_interface
    from hwmodel.parts.part_file import load_part

    loaded = load_part(part)
    counts = count_interface(
        commands,
        part=loaded,
        dbi=dbi,
        beat_order=beat_order,
        lane_order=lane_order,
        end_cycle=end_cycle,
        metadata=metadata,
    )
    bits = counts.bursts * loaded.organisation.burst_bytes * 8
    return InterfaceEnergy(counts, interface_rows(counts, loaded), bits)


def core_energy(
    commands: Any, *, part: str | Path | Mapping[str, Any] | Part, end_cycle: int | None = None
) -> tuple[EnergyRow, ...]:
    """Return the core energy of a command table in pJ, a row per term; data on the bus is not needed.

    commands: CSV path, rows or columns as in hwmodel.dram.command_table. end_cycle: clock at which background energy
    ends (None: that of the table). Raises InputError for a table or part that cannot be used.
    """
    from hwmodel.dram.command_table import command_table, count_commands
    from hwmodel.parts.part_file import load_part

    loaded = load_part(part)
    return tuple(
        core_rows(count_commands(command_table(commands, part=loaded, end_cycle=end_cycle), part=loaded), loaded)
    )


def explain(rows: Iterable[EnergyRow]) -> list[dict[str, Any]]:
    """Return the rows as dicts (term, count, unit, constant_pj, energy_pj), ready for a table or JSON."""
    return [
        {
            "term": row.term,
            "count": row.count,
            "unit": row.unit,
            "constant_pj": row.constant_pj,
            "energy_pj": row.energy_pj,
        }
        for row in rows
    ]
