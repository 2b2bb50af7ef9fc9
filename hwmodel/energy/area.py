"""Area on chip: SRAM by the technology's tables, encoder and decoder of the bus; arithmetic and control are left out.

A cache is as wide as its line, a scratchpad as its widest access; a chain takes one codec a stage and channel.
"""

from __future__ import annotations

from dataclasses import dataclass

from hwmodel.coding.chain import parse_chain
from hwmodel.coding.stage import ENCODERS
from hwmodel.energy.technology import load_technology
from hwmodel.machine import Machine

CODEC_POWER = 1.5  # Feinberg et al. 2020, section VIII-C: 8 times the area for 4 times the bytes of a block


@dataclass(frozen=True)
class Area:
    """Area of one block on chip in um2, from `low_um2` to `high_um2`."""

    name: str
    um2: float
    low_um2: float
    high_um2: float


def chip_area(machine: Machine) -> tuple[Area, ...]:
    """Return the area of a machine's caches or scratchpad and of its codecs; empty where the technology has none."""
    technology = load_technology(machine.technology)
    each = {f"l{k}": technology.line_cache(spec.size_bytes, spec.ways) for k, spec in enumerate(machine.caches, 1)}
    if machine.scratchpad is not None:
        width = max(machine.engine.access_bytes, machine.bus.block_bytes)
        each["scratchpad"] = technology.scratchpad(machine.scratchpad.size_bytes, width)
    areas = [
        Area(name, a.area_um2, a.area_um2 * technology.low, a.area_um2 * technology.high)
        for name, a in each.items()
        if a.area_um2 is not None
    ]
    codec = technology.codec
    stages = sum(not ENCODERS[name].item.plain for name in parse_chain(machine.encoder))
    if len(areas) < len(each) or (stages and codec is None):
        return ()
    if codec is not None and stages:
        channels = 1 if machine.part is None else machine.part.organisation.channels
        size = (machine.bus.block_bytes / codec.block_bytes) ** CODEC_POWER
        um2 = codec.area_um2 * size * stages * channels
        areas.append(Area("codec", um2, um2 * codec.low, um2 * codec.high))
    return tuple(areas)
