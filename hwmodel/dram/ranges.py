"""Energies with the range that a part's estimates leave: estimated currents and capacitances have one, as factors.

Energy is linear in each of them, so the ends of its range over all of them together are the sum of what each one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hwmodel.dram.energy import EnergyRow, WireRow, core_constants_pj, wire_constants_pj
from hwmodel.parts.part import Part, kept


def scaled(part: Part, name: str, factor: float) -> Part:
    """Return a part with one ranged constant (a key of Part.ranges) times a factor."""
    section, *place = name.split(".")
    if section == "currents":
        current = place[0].removesuffix("_mA")
        idd = {**part.currents.idd_ma, current: tuple(factor * ma for ma in part.currents.idd_ma[current])}
        return replace(part, currents=replace(part.currents, idd_ma=idd))
    group, constant = place[1:]
    wires = part.interface.wires[group]
    if constant.startswith("read"):
        changed = replace(wires, read_rise_pj=factor * wires.read_rise_pj)
    else:
        changed = replace(wires, write_rise_pj=factor * wires.write_rise_pj)
    return replace(part, interface=replace(part.interface, wires={**part.interface.wires, group: changed}))


def energy_range(part: Part, core: Sequence[EnergyRow], wires: Sequence[WireRow] = ()) -> tuple[float, float]:
    """Return (least, most) in pJ of the energy of rows of a part's core and wires, over the ranges of its estimates."""
    names = tuple(row.term for row in core), tuple((row.driver, row.way, row.ui_ns, row.kind) for row in wires)
    of_core, of_wires = kept(part, _constants_at_ends, *names)
    nominal, *ends = _sums(wires, of_wires) + _sums(core, of_core)
    moved = (np.array(ends) - nominal).reshape(-1, 2)
    least, most = np.minimum(moved, 0.0).min(axis=1), np.maximum(moved, 0.0).max(axis=1)
    return float(sum(least.tolist(), nominal)), float(sum(most.tolist(), nominal))


def _constants_at_ends(
    part: Part, terms: tuple[str, ...], wires: tuple[tuple[str, str, float, str], ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the constants of rows, float64[1 + 2 x ranges, rows]: of the part, then with each constant at its ends."""
    parts = [part, *(scaled(part, name, end) for name, ends in part.ranges.items() for end in ends)]
    core = [[constants[term][1] for term in terms] for constants in map(core_constants_pj, parts)]
    interface = [
        [getattr(wire_constants_pj(p, driver, way, ui_ns), kind) for driver, way, ui_ns, kind in wires] for p in parts
    ]
    return np.array(core), np.array(interface)


def _sums(rows: Sequence[EnergyRow], constants: np.ndarray) -> np.ndarray:
    """Return the energy of the rows in pJ with each set of constants, added up in the order of the rows."""
    energy = constants * np.array([row.count for row in rows], float)
    return energy.cumsum(axis=1)[:, -1] if rows else np.zeros(len(constants))
