"""The interface section of a part file: termination, wires and what commands put on them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hwmodel.parts.burst_cells import check_cells
from hwmodel.parts.part import COMMANDS, Interface, Organisation, WireGroup
from hwmodel.parts.part_tree import Tree
from traces.base.errors import did_you_mean

WIRES = ("dq", "dbi", "dqs", "wck", "ck", "ca")
WIRE_CONSTANTS = (
    "count", "periods_per_clock", "beats_per_clock", "idle_level", "runs",
    *(f"{way}_{what}" for way in ("read", "write")
      for what in ("termination_ohm", "driver_ohm", "r_eq_ohm", "capacitance_pF", "rise_pJ")),
)  # fmt: skip
LEVELS = tuple(COMMANDS)
_LEVEL = re.compile(r"0|1|V|R1?\d|C(1[0-5]|\d)|(BA|BG)[0-7]")


def read_interface(tree: Tree, organisation: Organisation | None) -> Interface | None:
    tree.section("interface")
    tree.check_keys(
        ("interface",), ("termination", "dbi", "vddq_V", "vddq_per_voh", "wires", "command_levels", "cells")
    )
    termination = tree.text("interface", "termination")
    if termination not in ("vssq", "vddq", "none"):
        tree.complain(("interface", "termination"), f"must be vssq, vddq or none, not {termination!r}")
    dbi = tree.text("interface", "dbi")
    if dbi not in ("ones", "zeros", "toggles", "none"):
        tree.complain(("interface", "dbi"), f"must be ones, zeros, toggles or none, not {dbi!r}")
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
    node = tree.section(*keys)
    tree.check_keys(keys, WIRE_CONSTANTS)
    count = tree.constant((*keys, "count"), least=1, whole=True)
    rates = {
        key: tree.constant((*keys, key), least=1, whole=True, required=name in owners)
        for key, owners in (("periods_per_clock", ("dqs", "wck", "ck")), ("beats_per_clock", ("ca",)))
    }
    idle = tree.constant((*keys, "idle_level"), least=0, whole=True, required=False) or 0
    if idle > 1:
        tree.complain((*keys, "idle_level"), "must be 0 or 1")
    runs = tree.text(*keys, "runs", default="bursts")
    if runs not in ("always", "bursts"):
        tree.complain((*keys, "runs"), f"must be always or bursts, not {runs!r}")
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
    section = tree.section("interface", "cells", required=False)
    if not section:
        return ()
    tree.check_keys(("interface", "cells"), ("beats", "source", "note"))
    rows = section.get("beats")
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        tree.complain(("interface", "cells", "beats"), "must be a list of texts, each for four beats or more")
        return ()
    tree.record(("interface", "cells"), "cells", None, section)
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
        if command not in LEVELS:
            tree.complain(keys, f"unknown command{did_you_mean(command, LEVELS)}")
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
