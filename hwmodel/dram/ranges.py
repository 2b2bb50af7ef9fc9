"""Energies with the range that a part's estimates leave: estimated currents and capacitances have one, as factors.

Energy is linear in each of them, so the ends of its range over all of them together are the sum of what each one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from hwmodel.parts.part import Part

T = TypeVar("T")


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


def _ends(part: Part) -> list[list[Part]]:
    return [[scaled(part, name, end) for end in ends] for name, ends in part.ranges.items()]


def kept(part: Part, make: Callable[[Part], T]) -> T:
    """Return what `make` makes of a part, made once for as long as the part lives (as by functools.cached_property)."""
    if make.__qualname__ not in part.__dict__:
        part.__dict__[make.__qualname__] = make(part)
    made: T = part.__dict__[make.__qualname__]
    return made


def energy_range(part: Part, energy: Callable[[Part], float]) -> tuple[float, float]:
    """Return (least, most) of an energy, a function of the part, over the ranges of its estimates; in its unit."""
    nominal = energy(part)
    least = most = nominal
    for ends in kept(part, _ends):
        moved = [energy(end) - nominal for end in ends]
        least, most = least + min(0.0, *moved), most + max(0.0, *moved)
    return least, most
