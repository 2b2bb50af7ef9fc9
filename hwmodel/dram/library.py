"""The file that the C library opens: a controller's tables, and energies per event, clock and level (energy_only.h)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cython_ext
from hwmodel.dram.controller import ControllerSpec, controller_spec
from hwmodel.dram.energy import core_constants_pj, wire_constants_pj, wire_rows
from hwmodel.dram.interface import running_wires, strobes
from hwmodel.dram.tables import kernel_tables, shared_channels
from hwmodel.parts.part import Part
from hwmodel.parts.part_file import load_part
from traces.base.files import whole_file

CORE = (
    "activate", "precharge", "read", "write", "refresh", "refresh_per_bank", "refresh_management", "background_active",
    "background_precharged", "power_down_active", "power_down_precharged", "self_refresh",
)  # fmt: skip
DBI_RULES = ("none", "ones", "zeros", "toggles")


def include_folder() -> Path:
    """Return the folder to include from: `#include "dram/edgewatt_dram.h"`."""
    return Path(cython_ext.__path__[0])


def write_library_file(
    path: str | Path,
    part: str | Path | Mapping[str, Any] | Part,
    controller: ControllerSpec | Mapping[str, Any] | None = None,
) -> None:
    """Write the file that edgewatt_dram_open reads. Raises InputError as load_part and simulate_dram do."""
    loaded, spec = load_part(part), controller_spec(controller)
    tables = kernel_tables(loaded, spec)
    channels = loaded.organisation.channels // shared_channels(loaded, spec)
    numbers = [channels, spec.requests_per_clock or 1, *tables.settings.values()]
    numbers += [*tables.wire_cycles.tolist(), *tables.gap.reshape(-1).tolist()]
    numbers += [len(tables.fields), *tables.fields.reshape(-1).tolist()]
    with whole_file(Path(path)) as stream:
        stream.write(f"edgewatt-dram 4 {loaded.tck_ns!r}\n{' '.join(map(str, numbers))}\n".encode())
        stream.write(f"{' '.join(map(repr, map(float, _energies(loaded))))}\n".encode())
        levels = [each.shape[1] for each in tables.levels if each is not None][:1] or [1]
        for each in tables.levels:
            levels += [0] if each is None else [len(each), *each.reshape(-1).tolist()]
        stream.write(f"{' '.join(map(str, levels))}\n".encode())


def _energies(part: Part) -> list[float]:
    """Return, in the order of the C library's file, pJ of the core, strobes, clocks and command wires, the shape of a
    burst, and pJ of DQ and DBI reads and writes."""
    o, wires = part.organisation, part.interface.wires
    core = core_constants_pj(part)
    numbers = [core[term][1] if term in core else 0.0 for term in CORE]
    for way in ("read", "write"):
        numbers.append(sum(row.energy_pj for g in strobes(way, 1, part) for row in wire_rows("dqs", "dqs", [g], part)))
    running = {
        name: sum(row.energy_pj for row in wire_rows(name, name, [running_wires(name, "write", 1, part)], part))
        for name in ("ck", "wck")
        if name in wires
    }
    always = "wck" in wires and wires["wck"].always
    numbers.append(running.get("ck", 0.0) + (running["wck"] if always else 0.0))
    numbers.append(0.0 if always else running.get("wck", 0.0))
    numbers += _levels(part, "ca", "write", part.tck_ns / (wires["ca"].beats_per_clock or 1))
    whole = not part.interface.cells and o.dq_bits % 8 == 0
    numbers += [
        o.burst_cycles,
        o.byte_lanes if whole else 0,
        DBI_RULES.index(part.interface.dbi),
        part.interface.idle_level,
    ]
    for name in ("dq", "dbi"):
        for way in ("read", "write"):
            numbers += _levels(part, name, way, part.beat_ns)
    return numbers


def _levels(part: Part, group: str, way: str, ui_ns: float) -> list[float]:
    """Return pJ of a unit interval at 0 and at 1, and of a rising edge; zeros for wires that the part has not."""
    if group not in part.interface.wires:
        return [0.0, 0.0, 0.0]
    static, rise = wire_constants_pj(part, group, way, ui_ns)
    costly = part.interface.costly_level
    return [static if costly == 0 else 0.0, static if costly == 1 else 0.0, rise]
