"""A DRAM's counts become picojoules here.

Core energy per event, summed over the supply rails: V x (I - I_background) x clocks x tCK (mA x V x ns = pJ).
Interface energy per wire group: static = unit intervals at the costly level x VDDQ^2 / R_eq x unit interval, dynamic =
rising edges x C x VDDQ x swing. Every term is a row `count x constant = energy`, which is what `explain` shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hwmodel.bus import WireCosts, WireCounts
from hwmodel.dram.command_table import command_table, count_commands
from hwmodel.dram.counts import DramCounts
from hwmodel.dram.interface import WAYS, GroupCounts, InterfaceCounts, count_interface, sent_group
from hwmodel.parts.part import COMMANDS, Part, cached_on
from hwmodel.parts.part_file import load_part


@dataclass(frozen=True)
class EnergyRow:
    """One term: count (integer, never negative) x constant_pj (of what `unit` names) x share = energy_pj.

    kind: 'dynamic' or 'static'. share: of a static term, how much of it is billed.
    """

    term: str
    count: int
    unit: str
    constant_pj: float
    kind: str = field(default="dynamic", kw_only=True)
    share: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        assert self.count >= 0, f"{self.term}: {self.count} {self.unit}"

    @property
    def energy_pj(self) -> float:
        """Count times constant, as far as it is billed."""
        return self.count * self.constant_pj * self.share


@dataclass(frozen=True)
class WireRow(EnergyRow):
    """One term of a wire group in one direction ('read' or 'write').

    current: 'static' (unit intervals at the costly level) or 'dynamic' (rising edges). driver: the group whose drivers
    its wires have. ui_ns: the unit interval.
    """

    group: str
    way: str
    current: str
    driver: str
    ui_ns: float


DATA_WIRES = frozenset({"dq", "dbi", "extra"})
"""Groups whose levels the data decide."""

STATIC_TERMS = ("refresh", "background", "power_down", "self_refresh")
"""How core terms begin that pass with time; refresh management answers activates."""


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
        one = i.power_mw("IDD5PB", "IDD2N") * part.per_bank_interval_cycles + i.power_mw("IDD2N", "IDD3N") * t.tRFCpb
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
    per_bank, per_rank = (
        dict(zip(COMMANDS, table.reshape(-1, len(COMMANDS)).sum(axis=0).tolist(), strict=True))
        for table in (counts.bank_commands, counts.rank_commands)
    )
    clocks = counts.background_cycles.reshape(-1, 5).sum(axis=0).tolist()
    events = {
        "activate": per_bank["ACT"],
        "precharge": per_bank["PRE"] + per_bank["PREA"] + per_bank["RDA"] + per_bank["WRA"],
        "read": per_bank["RD"] + per_bank["RDA"],
        "write": per_bank["WR"] + per_bank["WRA"] + per_bank["MWR"],
        "refresh": per_rank["REFab"] + per_rank["SRE"],  # self-refresh begins with one
        "background_active": clocks[0],
        "background_precharged": clocks[1],
        "power_down_active": clocks[2],
        "power_down_precharged": clocks[3],
        "refresh_per_bank": per_rank["REFpb"],
        "refresh_management": per_rank["RFM"],
        "refresh_two_banks": per_rank["REF2b"],
        "self_refresh": clocks[4],
    }
    rows = []
    for term, (unit, constant) in cached_on(part, core_constants_pj).items():
        static = term.startswith(STATIC_TERMS) and term != "refresh_management"
        rows.append(EnergyRow(term, events[term], unit, constant, kind="static" if static else "dynamic"))
    return rows


@dataclass(frozen=True)
class InterfaceEnergy:
    """Counts and energy of the wires, and the bits of data they moved.

    energy_pj: per group and current, e.g. energy_pj['dq']['static'].
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
            entry[row.current] += row.energy_pj
            entry["total"] += row.energy_pj
        return result

    @property
    def total_pj(self) -> float:
        return sum(row.energy_pj for row in self.rows)


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


def data_wire_costs(part: Part) -> WireCosts:
    """Return what the data wires cost, the mean of reads and writes."""
    both = [wire_constants_pj(part, "dq", way, part.beat_ns) for way in ("read", "write")]
    static, rise = ((a + b) / 2 for a, b in zip(*both, strict=True))
    level = part.interface.costly_level
    return WireCosts(static if level == 1 else 0.0, static if level == 0 else 0.0, rise)


def interface_rows(groups: Iterable[GroupCounts], part: Part) -> tuple[WireRow, ...]:
    """Return the energy of the wires, two rows per group and direction: GROUP_WAY_static and GROUP_WAY_dynamic."""
    return tuple(row for group in groups for row in wire_rows(group.group, group.group, [group], part))


def data_rows(wires: Sequence[WireCounts | None], bursts: Sequence[int], flag_wires: int, part: Part) -> list[WireRow]:
    """Return the energy of what an encoder chain drives, reads then writes, of so many bursts each.

    wires: int64[2, ...] of the data wires, of the first flag wire of each lane (`flag_wires` in all) and of those
    beyond. Flag wires that the part has no DBI pins for are taken to be driven like DQ wires, as `extra`.
    """
    o, rows = part.organisation, list[WireRow]()
    flag_group = "dbi" if "dbi" in part.interface.wires else "extra"
    of_burst = (o.burst_beats * o.dq_bits, min(flag_wires, 1) * o.burst_bytes, (flag_wires - 1) * o.burst_bytes)
    for k, way in enumerate(WAYS):
        groups: dict[str, list[GroupCounts]] = {}
        for name, counts, driven in zip(("dq", flag_group, "extra"), wires, of_burst, strict=True):
            if counts is not None and (driven > 0 or name == "dbi"):
                group = sent_group(name, way, counts.counts[k].sum(axis=0), bursts[k] * driven, part)
                groups.setdefault(name, []).append(group)
        for name, together in groups.items():
            rows += wire_rows(name, "dq" if name == "extra" else name, together, part)
    return rows


def wire_rows(name: str, driver: str, counts: Sequence[GroupCounts], part: Part) -> tuple[WireRow, WireRow]:
    """Return the two rows of wires of one direction that are called `name` and driven like the group `driver`."""
    way, ui_ns = counts[0].way, counts[0].ui_ns
    each = cached_on(part, wire_constants_pj, driver, way, ui_ns)
    costly = sum(g.zeros if part.interface.costly_level == 0 else g.ones for g in counts)
    rising = sum(g.rising for g in counts)
    always = name == "ck" or (name == "wck" and part.interface.wires[name].always)  # a clock that always runs
    kind = "static" if always else "dynamic"
    level, edges = (f"{name}_{way}_{current}" for current in WireConstants._fields)
    return (
        WireRow(level, costly, "unit intervals", each.static, name, way, "static", driver, ui_ns, kind=kind),
        WireRow(edges, rising, "rising edges", each.dynamic, name, way, "dynamic", driver, ui_ns, kind=kind),
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
    gaps: str | None = None,
) -> InterfaceEnergy:
    """Count what the wires do for a command table with data, and its energy per wire group.

    commands: CSV path, rows or columns as in hwmodel.dram.command_table. part: shipped name, path or mapping. dbi:
    data bus inversion by the part's rule. beat_order: 'last-to-first' turns the beats of each burst on the data wires.
    lane_order: lane_order[i] is the wire lane of byte lane i. end_cycle: clock at which clock wires stop (None: the
    table's end). metadata: a word per block of a burst (LPDDR6). gaps: data wires `rest` at the idle level between
    bursts that do not touch, or `hold` the last level (None: by the table's own rule, `hold` for those of a replay).
    Returns an InterfaceEnergy in pJ. Raises InputError for bursts that overlap, no data, or a part without DBI.
    """
    loaded = load_part(part)
    counts = count_interface(
        commands, part=loaded, dbi=dbi, beat_order=beat_order, lane_order=lane_order, end_cycle=end_cycle,
        metadata=metadata, gaps=gaps,
    )  # fmt: skip
    bits = counts.bursts * loaded.organisation.burst_bytes * 8
    return InterfaceEnergy(counts, interface_rows(counts.groups, loaded), bits)


def core_energy(
    commands: Any, *, part: str | Path | Mapping[str, Any] | Part, end_cycle: int | None = None
) -> tuple[EnergyRow, ...]:
    """Return the core energy of a command table in pJ, a row per term; data on the bus is not needed.

    commands: CSV path, rows or columns as in hwmodel.dram.command_table. end_cycle: clock at which background energy
    ends (None: that of the table). Raises InputError for a table or part that cannot be used.
    """
    loaded = load_part(part)
    return tuple(
        core_rows(count_commands(command_table(commands, part=loaded, end_cycle=end_cycle), part=loaded), loaded)
    )


def explain(rows: Iterable[EnergyRow]) -> list[dict[str, Any]]:
    """Return the rows as dicts (term, count, unit, constant_pj, energy_pj), ready for a table or JSON."""
    columns = ("term", "count", "unit", "constant_pj", "energy_pj")
    return [{name: getattr(row, name) for name in columns} for row in rows]


# Energy is linear in each estimated current and capacitance, so the ends of its range over all of them together are
# the sum of what each one does.


def scaled(part: Part, name: str, factor: float) -> Part:
    """Return a part with one ranged constant times a factor."""
    section, *path = name.split(".")
    if section == "currents":
        current = path[0].removesuffix("_mA")
        idd = {**part.currents.idd_ma, current: tuple(factor * ma for ma in part.currents.idd_ma[current])}
        return replace(part, currents=replace(part.currents, idd_ma=idd))
    group, constant = path[1:]
    wires = part.interface.wires[group]
    if constant.startswith("read"):
        changed = replace(wires, read_rise_pj=factor * wires.read_rise_pj)
    else:
        changed = replace(wires, write_rise_pj=factor * wires.write_rise_pj)
    return replace(part, interface=replace(part.interface, wires={**part.interface.wires, group: changed}))


def energy_range(
    part: Part,
    core: Sequence[EnergyRow],
    wires: Sequence[WireRow] = (),
    terms: Sequence[tuple[EnergyRow, float, float]] = (),
) -> tuple[float, float]:
    """Return (least, most) in pJ of the energy of rows of a part's core and wires, over the ranges of its estimates.

    Currents that would make a term negative (IDD0 below IDD3N) cannot be: the least is no less than all terms' own.
    terms: what `term_ranges` says of the same rows, where it is known.
    """
    of_core, of_wires = _at_ends(part, core, wires)
    least, most = _ends((_sums(wires, of_wires) + _sums(core, of_core))[:, None])
    own = [low for _, low, _ in terms or term_ranges(part, core, wires)]
    return max(float(least[0]), sum(own[: len(wires)]) + sum(own[len(wires) :])), float(most[0])


def term_ranges(
    part: Part, core: Sequence[EnergyRow], wires: Sequence[WireRow] = ()
) -> list[tuple[EnergyRow, float, float]]:
    """Return each row of a part's wires and core with its own (least, most) in pJ.

    Their sum has the narrower range of `energy_range`.
    """
    of_core, of_wires = _at_ends(part, core, wires)
    rows = [*wires, *core]
    nominal = np.hstack((of_wires, of_core)) * [row.count * row.share for row in rows]
    least, most = _ends(nominal)
    least = np.maximum(least, np.minimum(nominal[0], 0.0))  # the currents of one term rise together: it stays positive
    return list(zip(rows, least.tolist(), most.tolist(), strict=True))


def _ends(energy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return least and most of columns, float64[1 + 2 x ranges, n]: nominal, then with each constant at its ends."""
    moved = (energy[1:] - energy[0]).reshape(len(energy) // 2, 2, energy.shape[1])
    least, most = np.minimum(moved, 0.0).min(axis=1), np.maximum(moved, 0.0).max(axis=1)
    return energy[0] + least.sum(axis=0), energy[0] + most.sum(axis=0)


def _at_ends(part: Part, core: Sequence[EnergyRow], wires: Sequence[WireRow]) -> tuple[np.ndarray, np.ndarray]:
    of_wires = tuple((row.driver, row.way, row.ui_ns, row.current) for row in wires)
    return cached_on(part, _constants_at_ends, tuple(row.term for row in core), of_wires)


def _constants_at_ends(
    part: Part, terms: tuple[str, ...], wires: tuple[tuple[str, str, float, str], ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the constants of rows, float64[1 + 2 x ranges, rows]: of the part, then with each constant at its ends."""
    parts = [part, *(scaled(part, name, end) for name, ends in part.ranges.items() for end in ends)]
    core = [[constants[term][1] for term in terms] for constants in map(core_constants_pj, parts)]
    interface = [
        [getattr(wire_constants_pj(p, driver, way, ui_ns), current) for driver, way, ui_ns, current in wires]
        for p in parts
    ]
    return np.array(core).reshape(len(parts), -1), np.array(interface).reshape(len(parts), -1)


def _sums(rows: Sequence[EnergyRow], constants: np.ndarray) -> np.ndarray:
    """Return the energy of the rows in pJ with each set of constants, added up in the order of the rows."""
    energy = constants * np.array([row.count * row.share for row in rows], float)
    return energy.cumsum(axis=1)[:, -1] if rows else np.zeros(len(constants))
