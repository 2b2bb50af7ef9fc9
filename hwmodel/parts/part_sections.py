"""The sections of a part: every number with unit and source, every contradiction named with its line.

The schema is documented in docs/concepts/dram-parts.md. All problems of a file are reported at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from hwmodel.parts.burst_cells import check_cells
from hwmodel.parts.part import (
    COMMANDS,
    AddressMap,
    Constant,
    Currents,
    Derating,
    Interface,
    Organisation,
    Part,
    Timing,
    WireGroup,
)
from traces.base.document import MOST_PROBLEMS
from traces.base.errors import InputError, did_you_mean, shown

SECTIONS = (
    "name", "extends", "with", "options", "standard", "note", "clock", "organisation", "timing", "commands", "currents",
    "interface", "temperature", "address_map",
)  # fmt: skip
LEAST = {"device_dq_bits": 4, "burst_beats": 2}  # of sizes that must be given, else 1
# What a timing name falls back to where a part makes no such distinction: 0 for those that have a default, unless said
# here; others must be given.
FALLBACK: dict[str, str | int] = {
    "RL_dbi": "RL", "tRCD_write": "tRCD", "tRPab": "tRP", "tRC": "tRAS + tRP", "tRRD_L": "tRRD", "tCCD_L": "tCCD",
    "tWTR_L": "tWTR", "tPPD": 0, "tRFCpb": 0, "tREFpb_gap": "tRFCpb", "tXP": 0, "tCKE": 0, "turnaround": 0, "tRTRS": 0,
    **{each.name: each.default for each in fields(Timing) if each.default is not MISSING},
}  # fmt: skip
WIRE_COMMANDS = ("ACT", "RD", "WR", "PRE", "REF")
CURRENTS = ("IDD0", "IDD2N", "IDD2P", "IDD3N", "IDD3P", "IDD4R", "IDD4W", "IDD5AB")
# IDD5PB: per-bank refresh; IDD6: self-refresh; I_beta: the share of IDD0 that flows while the row is precharged.
OPTIONAL_CURRENTS = ("IDD5PB", "IDD6", "I_beta")
PER_BANK = "IDD5PB_refreshes_per_tREFI"
WIRES = ("dq", "dbi", "dqs", "wck", "ck", "ca")
WIRE_CONSTANTS = (
    "count", "periods_per_clock", "beats_per_clock", "idle_level", "runs",
    *(f"{way}_{what}" for way in ("read", "write")
      for what in ("termination_ohm", "driver_ohm", "r_eq_ohm", "capacitance_pF", "rise_pJ")),
)  # fmt: skip
MOST_WIRES, MOST_RATE = 1 << 12, 1 << 12  # of a group (wires are counted one by one), and periods or beats in a clock
INTERFACE = ("termination", "dbi", "vddq_V", "vddq_per_voh", "wires", "command_levels", "cells")
_LEVEL = re.compile(r"0|1|V|R1?\d|C(1[0-5]|\d)|(BA|BG)[0-7]")

Keys = tuple[str, ...]
ABOUT = ("source", "estimate", "note", "range")  # what a constant says of its value


class Tree:
    """Plain nested data, the position of each key, and the problems found so far."""

    def __init__(self, data: Any, positions: Mapping[Keys, tuple[int, int]], where: str) -> None:
        self.data, self.positions, self.where = data, positions, where
        self.problems: list[str] = []
        self.constants: dict[str, Constant] = {}
        self.ranges: dict[str, tuple[float, float]] = {}
        self.files: tuple[Path, ...] = ()  # this one and those it extends

    def complain(self, keys: Keys, message: str) -> None:
        """Note a problem at a key (or at its nearest ancestor that has a position)."""
        at = keys
        while at and at not in self.positions:
            at = at[:-1]
        where = f"{self.where}:{self.positions[at][0]}:{self.positions[at][1]}" if at else self.where
        self.problems.append(f"{where}: {'.'.join(keys) + ': ' if keys else ''}{message}")

    def section(self, *keys: str, required: bool = True, known: Sequence[str] | None = None) -> Mapping[str, Any]:
        """Return a mapping, {} where it is none. known: the keys it may have; others are complained about."""
        node = self.data
        for key in keys:
            node = node.get(key) if isinstance(node, Mapping) else None
        if node is None and not required:
            return {}
        if not isinstance(node, Mapping):
            self.complain(keys, "this section is missing" if node is None else "must be a mapping of constants")
            return {}
        if known is not None:
            self.check_keys(keys, known)
        return node

    def check_keys(self, keys: Keys, known: Sequence[str]) -> None:
        for key in self.section(*keys, required=False):
            if key not in known:
                self.complain((*keys, str(key)), f"unknown key{did_you_mean(key, known)}")

    def text(self, *keys: str, default: str = "") -> str:
        node = self.data
        for key in keys:
            node = node.get(key, default) if isinstance(node, Mapping) else default
        if not isinstance(node, str):
            self.complain(keys, f"must be text, not {shown(node)}")
            return default
        return node

    def constant(
        self, keys: Keys, *, least: float, whole: bool, required: bool = True, most: float = 1e12
    ) -> float | None:
        """Return the value of {value, source, estimate, note}; a problem is noted and None returned."""
        section = self.section(*keys[:-1], required=False)
        if keys[-1] not in section:
            if required:
                self.complain(keys, "this constant is missing")
            return None
        node = section[keys[-1]]
        if not isinstance(node, Mapping) or "value" not in node:
            self.complain(keys, "write {value: NUMBER, source: WHERE IT COMES FROM}")
            return None
        for key in node:
            if key not in ("value", *ABOUT):
                self.complain((*keys, str(key)), f"unknown key{did_you_mean(key, ('value', *ABOUT))}")
        return self.number(keys, node["value"], least, whole, most) if self.record(keys, node["value"], node) else None

    def record(self, keys: Keys, value: Any, node: Mapping[str, Any]) -> bool:
        """Check the source of a constant and keep it; return whether it has one."""
        source, estimate = node.get("source"), node.get("estimate", False)
        if not isinstance(source, str) or not source.strip():
            self.complain(keys, "has no source: say which standard, datasheet or estimate it comes from")
            return False
        if not isinstance(estimate, bool):
            self.complain((*keys, "estimate"), f"must be true or false, not {shown(estimate)}")
            return False
        self._range(keys, node.get("range"), estimate)
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
        self.constants[".".join(keys)] = Constant(number, source, estimate)
        return True

    def _range(self, keys: Keys, ends: Any, estimate: bool) -> None:
        """Keep the range of an estimated current or capacitance: two factors, one on each side of 1."""
        if ends is None:
            return
        good = isinstance(ends, list) and len(ends) == 2
        if not good or any(isinstance(end, bool) or not isinstance(end, (int, float)) for end in ends):
            self.complain((*keys, "range"), f"must be two factors such as [0.6, 1.6], not {shown(ends)}")
        elif not 0 < ends[0] <= 1 <= ends[1] <= 100:
            self.complain((*keys, "range"), f"a range goes from a factor up to 1 to one from 1 on, not {ends}")
        elif not estimate or not keys[-1].endswith(("_mA", "_pF")):
            self.complain((*keys, "range"), "only estimated currents and capacitances have one")
        else:
            self.ranges[".".join(keys)] = float(ends[0]), float(ends[1])

    def number(self, keys: Keys, value: Any, least: float, whole: bool, most: float = 1e12) -> float | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            hint = " (a number in quotes: remove the quotes)" if isinstance(value, str) else ""
            self.complain(keys, f"must be a number, not {shown(value)}{hint}")
        elif not math.isfinite(value) or value < least or value > 1e12:
            self.complain(keys, f"must be at least {least:g} and finite, not {shown(value)}")
        elif value > most:
            self.complain(keys, f"must be at most {most:g}, not {shown(value)}")
        elif whole and value != int(value):
            self.complain(keys, f"must be a whole number, not {shown(value)}")
        else:
            return int(value) if whole else float(value)
        return None

    def finish(self) -> None:
        if self.problems:
            more = len(self.problems) - MOST_PROBLEMS
            last = [f"{self.where}: and {more} more problems"] if more > 0 else []
            raise InputError("\n".join(self.problems[:MOST_PROBLEMS] + last))


def build(tree: Tree) -> Part:
    tree.check_keys((), SECTIONS)
    name = tree.text("name", default="unnamed")
    tree.section("clock", known=("tCK_ns",))
    tck_ns = tree.constant(("clock", "tCK_ns"), least=1e-3, whole=False)
    organisation = _organisation(tree)
    timing = _timing(tree, tck_ns or 1.0)
    tree.section("commands", known=[f"{c}_cycles" for c in WIRE_COMMANDS])
    command_cycles = {c: tree.constant(("commands", f"{c}_cycles"), least=1, whole=True) for c in WIRE_COMMANDS}
    currents = _currents(tree)
    interface = _interface(tree, organisation)
    derating = _derating(tree)
    address_map = tree.section("address_map", known=("value", "source", "estimate", "note"))
    if address_map and isinstance(address_map.get("value"), str):
        tree.record(("address_map",), None, address_map)
    elif address_map:
        tree.complain(("address_map", "value"), "must be text such as 'offset:5 column:6 bank:3 row:16'")
    tree.finish()
    assert organisation and timing and currents and interface and tck_ns  # finish() raised otherwise
    _check_timing(tree, timing, organisation, currents)
    try:
        AddressMap.parse(address_map["value"], organisation)
    except InputError as error:
        tree.complain(("address_map",), str(error))
    tree.finish()
    return Part(
        name=name,
        standard=tree.text("standard"),
        tck_ns=tck_ns,
        organisation=organisation,
        timing=timing,
        command_cycles={c: int(n) for c, n in command_cycles.items() if n is not None},
        currents=currents,
        interface=interface,
        address_map=address_map["value"],
        note=tree.text("note").strip(),
        constants=tree.constants,
        derating=derating,
        ranges=tree.ranges,
    )


def _organisation(tree: Tree) -> Organisation | None:
    tree.section("organisation", known=[each.name for each in fields(Organisation)])
    values: dict[str, float | None] = {}
    for each in fields(Organisation):
        default = each.default if isinstance(each.default, int) else None
        least = LEAST.get(each.name, 1) if default is None else default
        value = tree.constant(("organisation", each.name), least=least, whole=True, required=default is None)
        values[each.name] = default if value is None else value
    if None in values.values():
        return None
    sizes = {key: int(value) for key, value in values.items() if value is not None}
    odd = {"devices_per_rank", "overhead_bits", "rows"} | (
        {"device_dq_bits", "burst_beats"} if sizes["overhead_bits"] else set()
    )
    for key, value in sizes.items():
        if key not in odd and value & (value - 1):
            tree.complain(("organisation", key), f"must be a power of two, not {value}")
            return None
    organisation = Organisation(**sizes)
    if organisation.burst_bytes < 1 or organisation.burst_bytes & (organisation.burst_bytes - 1):
        name = "overhead_bits" if sizes["overhead_bits"] else "devices_per_rank"
        tree.complain(
            ("organisation", name),
            "device_dq_bits x devices_per_rank x burst_beats - overhead_bits must be a power of two of bytes, not "
            f"{organisation.dq_bits} x {organisation.burst_beats} - {organisation.overhead_bits} bits",
        )
        return None
    if organisation.burst_beats % organisation.beats_per_clock:
        tree.complain(("organisation", "burst_beats"), "a burst must fill whole clocks and whole bytes")
    if organisation.refresh_banks > organisation.banks:
        tree.complain(("organisation", "refresh_banks"), f"at most the {organisation.banks} banks of a rank")
        return None
    if organisation.command_buses > 2:
        tree.complain(("organisation", "command_buses"), "must be 1 or 2")
    if organisation.rows > 1 << 20 or organisation.columns > 1 << 16:
        tree.complain(("organisation", "rows"), "at most 2^20 rows and 2^16 columns")
    if organisation.columns % organisation.columns_per_burst:
        tree.complain(("organisation", "columns"), "must be a multiple of burst_beats (or of column_step)")
    if organisation.ranks * organisation.pseudo_channels > 8:
        tree.complain(("organisation", "ranks"), "at most 8 ranks, those of pseudo channels counted together")
    if organisation.ranks * organisation.banks > 64:
        tree.complain(("organisation", "ranks"), "at most 64 banks in a channel")
    if organisation.capacity_bytes > 1 << 48 or organisation.channels > 64:
        tree.complain(("organisation", "channels"), "at most 2^48 bytes and 64 channels")
    return organisation


def _timing(tree: Tree, tck_ns: float) -> Timing | None:
    """Turn each constant into clocks: nanoseconds rounded up; given in both units, the larger holds (JEDEC's max)."""
    names = [each.name for each in fields(Timing)]
    section = tree.section("timing", known=[f"{name}_{unit}" for name in names for unit in ("ns", "cycles")])
    cycles: dict[str, int] = {}
    for name in names:
        both: list[int] = []
        ns = tree.constant(("timing", f"{name}_ns"), least=0, whole=False, required=False)
        clocks = tree.constant(("timing", f"{name}_cycles"), least=0, whole=True, required=False)
        if ns is not None:
            # A refresh interval is a maximum, so it is rounded down; every other time is a minimum.
            exact = ns / tck_ns
            both.append(math.floor(exact + 1e-6) if name == "tREFI" else math.ceil(exact - 1e-6))
        if clocks is not None:
            both.append(int(clocks))
        if both:
            cycles[name] = max(both)
        elif f"{name}_ns" in section or f"{name}_cycles" in section:
            continue  # already complained about
        elif name not in FALLBACK:
            tree.complain(("timing",), f"{name} is missing: give {name}_ns or {name}_cycles with its source")
        else:
            fallback = FALLBACK[name]
            cycles[name] = (
                fallback if isinstance(fallback, int) else sum(cycles.get(f, 0) for f in fallback.split(" + "))
            )
    if len(cycles) < len(names):
        return None
    for name, value in cycles.items():
        if value > 1 << 24:
            tree.complain(("timing",), f"{name} is {value} clocks: beyond 2^24")
    return Timing(**cycles)


def _check_timing(tree: Tree, t: Timing, organisation: Organisation, currents: Currents) -> None:
    """Refuse timings that contradict each other; the message shows both sides in clocks."""

    def key(name: str) -> Keys:
        section = tree.section("timing")
        return ("timing", next((f"{name}_{u}" for u in ("cycles", "ns") if f"{name}_{u}" in section), name))

    burst = organisation.burst_cycles
    for wrong, name, message in (
        (t.tRC < t.tRAS + t.tRP, "tRC", f"tRC {t.tRC} is shorter than tRAS + tRP = {t.tRAS} + {t.tRP} clocks"),
        (t.tRAS < t.tRCD, "tRAS", f"tRAS {t.tRAS} is shorter than tRCD {t.tRCD} clocks"),
        (t.tREFI <= t.tRFCab, "tREFI", f"refresh interval {t.tREFI} is not longer than the refresh {t.tRFCab} clocks"),
        (t.tFAW < t.tRRD, "tFAW", f"tFAW {t.tFAW} is shorter than tRRD {t.tRRD} clocks"),
        (t.tCCD < burst, "tCCD", f"tCCD {t.tCCD} is shorter than the burst of {burst} clocks"),
        (t.tRCD < 1, "tRCD", "tRCD must be at least 1 clock"),
        (t.tRP < 1, "tRP", "tRP must be at least 1 clock"),
        (t.tRPab < t.tRP, "tRPab", f"tRPab {t.tRPab} is shorter than tRP {t.tRP} clocks"),
        (0 < t.BL_L < burst, "BL_L", f"BL_L {t.BL_L} is shorter than the burst of {burst} clocks"),
        (0 < t.tCCD_L_WR < t.tCCD, "tCCD_L_WR", f"tCCD_L_WR {t.tCCD_L_WR} is shorter than tCCD {t.tCCD} clocks"),
        (t.tAAD >= t.tRCD, "tAAD", f"tAAD {t.tAAD} is not shorter than tRCD {t.tRCD} clocks"),
        (t.RL < 1, "RL", "RL must be at least 1 clock"),
        (t.RL_dbi < t.RL, "RL_dbi", f"RL_dbi {t.RL_dbi} is shorter than RL {t.RL} clocks"),
        (t.tRFCpb > t.tRFCab, "tRFCpb", f"tRFCpb {t.tRFCpb} is longer than tRFCab {t.tRFCab} clocks"),
        (
            t.tRFCpb * organisation.refresh_sets >= t.tREFI,  # each set of banks in turn, all of them once in tREFI
            "tRFCpb",
            f"tRFCpb {t.tRFCpb} is not shorter than the interval of per-bank refreshes, "
            f"tREFI / {organisation.refresh_sets} = {t.tREFI // organisation.refresh_sets} clocks",
        ),
        (t.tRRD_L < t.tRRD, "tRRD_L", f"tRRD_L {t.tRRD_L} is shorter than tRRD {t.tRRD} clocks"),
        (t.tCCD_L < t.tCCD, "tCCD_L", f"tCCD_L {t.tCCD_L} is shorter than tCCD {t.tCCD} clocks"),
        (t.tWTR_L < t.tWTR, "tWTR_L", f"tWTR_L {t.tWTR_L} is shorter than tWTR {t.tWTR} clocks"),
        (t.RL + burst < t.WL, "WL", f"WL {t.WL} is longer than RL + burst = {t.RL + burst} clocks"),
    ):
        if wrong:
            tree.complain(key(name), message)
    for name, base in (("IDD0", "IDD2N"), ("IDD4R", "IDD3N"), ("IDD4W", "IDD3N"), ("IDD5AB", "IDD3N")):
        if currents.power_mw(name, base) < 0:
            tree.complain(("currents", f"{name}_mA"), f"{name} draws less power than the background {base}")
    if t.tRFCpb and "IDD5PB" not in currents.idd_ma:
        tree.complain(("currents", "IDD5PB_mA"), "is missing, but the part has per-bank refresh (tRFCpb)")


def _derating(tree: Tree) -> Derating | None:
    if not tree.section("temperature", required=False, known=("above_C", "tREFI_factor", "add_ns")):
        return None
    above = tree.constant(("temperature", "above_C"), least=0, whole=False)
    factor = tree.constant(("temperature", "tREFI_factor"), least=0.01, whole=False)
    add_ns = tree.constant(("temperature", "add_ns"), least=0, whole=False)
    if factor is not None and factor > 1:
        tree.complain(("temperature", "tREFI_factor"), f"must be at most 1, not {factor}")
    return None if above is None or factor is None or add_ns is None else Derating(above, factor, add_ns)


def _currents(tree: Tree) -> Currents | None:
    section = tree.section("currents")
    rails = tuple(str(key)[:-2] for key in section if str(key).endswith("_V"))
    per_bank = tree.constant(("currents", PER_BANK), least=0, whole=False, required=False)
    tree.check_keys(
        ("currents",),
        [f"{rail}_V" for rail in rails] + [f"{name}_mA" for name in CURRENTS + OPTIONAL_CURRENTS] + [PER_BANK],
    )
    if section and not rails:
        tree.complain(("currents",), "names no supply rail: give e.g. vdd2_V")
    volts = tuple(tree.constant(("currents", f"{rail}_V"), least=0.1, whole=False) for rail in rails)
    idd: dict[str, tuple[float, ...]] = {}
    for name in CURRENTS + OPTIONAL_CURRENTS:
        keys = ("currents", f"{name}_mA")
        if keys[1] not in section:
            if section and name in CURRENTS:
                tree.complain(keys, "this constant is missing")
            continue
        node = section[keys[1]]
        if not isinstance(node, Mapping) or any(rail not in node for rail in rails):
            tree.complain(keys, "give milliamperes for each rail: {" + ", ".join(f"{r}: NUMBER" for r in rails) + "}")
            continue
        for extra in node:
            if extra not in (*rails, *ABOUT):
                tree.complain((*keys, str(extra)), f"unknown key{did_you_mean(extra, (*rails, *ABOUT))}")
        values = tuple(tree.number((*keys, rail), node[rail], 0, False) for rail in rails)
        if tree.record(keys, math.nan, node) and None not in values:
            idd[name] = tuple(v for v in values if v is not None)
            tree.constants.pop(".".join(keys))
            about = {key: node[key] for key in ("source", "estimate") if key in node}
            for rail, value in zip(rails, idd[name], strict=True):
                tree.record((*keys, rail), value, about)
    if None in volts:
        return None
    return Currents(rails, tuple(v for v in volts if v is not None), idd, per_bank)


def _interface(tree: Tree, organisation: Organisation | None) -> Interface | None:
    tree.section("interface", known=INTERFACE)
    termination = tree.text("interface", "termination")
    if termination not in ("vssq", "vddq", "none"):
        tree.complain(("interface", "termination"), f"must be vssq, vddq or none, not {shown(termination)}")
    dbi = tree.text("interface", "dbi")
    if dbi not in ("ones", "zeros", "toggles", "none"):
        tree.complain(("interface", "dbi"), f"must be ones, zeros, toggles or none, not {shown(dbi)}")
    vddq = tree.constant(("interface", "vddq_V"), least=0.1, whole=False)
    divisor = tree.constant(("interface", "vddq_per_voh"), least=1, whole=False, required=termination == "vssq")
    wires: dict[str, WireGroup] = {}
    cells = _cells(tree, organisation, dbi)
    tree.check_keys(("interface", "wires"), WIRES)
    for name in WIRES:
        if name in tree.section("interface", "wires"):
            group = _wire_group(tree, name, termination, vddq or 1.0, divisor or 1.0)
            if group is not None:
                wires[name] = group
    for name in ("dq", "ck", "ca", *(("dbi",) if dbi != "none" and not cells else ())):
        if name not in tree.section("interface", "wires"):
            tree.complain(("interface", "wires"), f"the group {name} is missing")
    levels = _command_levels(tree, wires)
    return Interface(termination, dbi, vddq, wires, levels, cells) if vddq else None


def _wire_group(tree: Tree, name: str, termination: str, vddq: float, divisor: float) -> WireGroup | None:
    """Derive R_eq = VDDQ / I and the energy of a rising edge from termination and capacitance.

    vssq (LVSTL): VOH = VDDQ / divisor, I = VOH / R_termination. vddq (POD): I = VDDQ / (R_driver + R_termination), the
    swing is VDDQ - VOL. none: full swing, no static current. A rising edge takes C * VDDQ * swing from the supply.
    """
    keys = ("interface", "wires", name)
    node = tree.section(*keys, known=WIRE_CONSTANTS)
    count = tree.constant((*keys, "count"), least=1, whole=True, most=MOST_WIRES)
    rates = {
        key: tree.constant((*keys, key), least=1, whole=True, required=name in owners, most=MOST_RATE)
        for key, owners in (("periods_per_clock", ("dqs", "wck", "ck")), ("beats_per_clock", ("ca",)))
    }
    idle = tree.constant((*keys, "idle_level"), least=0, whole=True, required=False) or 0
    if idle > 1:
        tree.complain((*keys, "idle_level"), "must be 0 or 1")
    runs = tree.text(*keys, "runs", default="bursts")
    if runs not in ("always", "bursts"):
        tree.complain((*keys, "runs"), f"must be always or bursts, not {shown(runs)}")
    ways = tuple(way for way in ("read", "write") if any(str(key).startswith(f"{way}_") for key in node))
    if not ways:
        tree.complain(keys, "gives no termination and capacitance: read_..., write_... or both")
    derived: dict[str, float | None] = {}
    for way in ("read", "write"):
        if way not in ways:
            derived[f"{way}_r"], derived[f"{way}_e"] = None, 0.0  # not driven that way
            continue

        def value(what: str, required: bool, way: str = way) -> float | None:
            return tree.constant((*keys, f"{way}_{what}"), least=0, whole=False, required=required)

        resistance = value("r_eq_ohm", False)
        swing = vddq
        if termination == "none":
            resistance = None
        else:
            pull = value("termination_ohm", resistance is None)
            driver = value("driver_ohm", termination == "vddq" and resistance is None)
            if termination == "vssq":
                swing = vddq / divisor
                resistance = resistance if resistance is not None else (pull or 0.0) * vddq / swing
            elif pull is not None and driver is not None:
                swing = vddq * pull / (pull + driver) if pull + driver else vddq
                resistance = resistance if resistance is not None else pull + driver
            if not resistance:
                tree.complain(keys, f"{way}: a terminated wire needs a resistance above 0")
        energy = value("rise_pJ", False)
        capacitance = value("capacitance_pF", energy is None)
        derived[f"{way}_r"] = resistance
        derived[f"{way}_e"] = energy if energy is not None else (capacitance or 0.0) * vddq * swing
    if count is None:
        return None
    return WireGroup(
        count=int(count),
        read_r_eq_ohm=derived["read_r"],
        write_r_eq_ohm=derived["write_r"],
        read_rise_pj=derived["read_e"] or 0.0,
        write_rise_pj=derived["write_e"] or 0.0,
        periods_per_clock=int(rates["periods_per_clock"] or 0),
        beats_per_clock=int(rates["beats_per_clock"] or 0),
        idle_level=int(idle),
        always=runs == "always",
    )


def _cells(tree: Tree, organisation: Organisation | None, dbi: str) -> tuple[str, ...]:
    section = tree.section("interface", "cells", required=False, known=("beats", "source", "note"))
    if not section:
        return ()
    rows = section.get("beats")
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        tree.complain(("interface", "cells", "beats"), "must be a list of texts, each for four beats or more")
        return ()
    tree.record(("interface", "cells"), None, section)
    cells = tuple(" ".join(row.split()) for row in rows)
    if organisation is not None:
        for problem in check_cells(cells, organisation, dbi):
            tree.complain(("interface", "cells", "beats"), problem)
    return cells


def _command_levels(tree: Tree, wires: Mapping[str, WireGroup]) -> dict[str, tuple[tuple[str, ...], ...]]:
    section = tree.section("interface", "command_levels")
    levels: dict[str, tuple[tuple[str, ...], ...]] = {}
    if section and not str(section.get("source", "")).strip():
        tree.complain(("interface", "command_levels"), "has no source")
    for command, beats in section.items():
        keys = ("interface", "command_levels", command)
        if command in ("source", "note"):
            continue
        if command not in COMMANDS:
            tree.complain(keys, f"unknown command{did_you_mean(command, COMMANDS)}")
            continue
        if not isinstance(beats, list) or not all(isinstance(beat, str) for beat in beats):
            tree.complain(keys, "must be a list of texts, one per beat")
            continue
        rows = tuple(tuple(beat.split()) for beat in beats)
        if not 1 <= len(rows) <= 8 or max(map(len, rows)) > 32:
            tree.complain(keys, "a command has 1 to 8 beats of at most 32 wires")
        for row in rows:
            if "ca" in wires and len(row) != wires["ca"].count:
                tree.complain(keys, f"a beat names {len(row)} levels, but there are {wires['ca'].count} command wires")
            for level in row:
                if not _LEVEL.fullmatch(level):
                    tree.complain(keys, f"level {level!r} is none of 0, 1, V, BA#, BG#, R#, C#")
        levels[command] = rows
    for command in ("ACT", "RD", "WR", "PRE", "REFab"):
        if section and command not in section:
            tree.complain(("interface", "command_levels"), f"the levels of {command} are missing")
    return levels
