"""A point's trace played on its machine, and what was counted by name."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from edgewatt.runs.model import Point, StepResults, build_machine
from hwmodel.fastmemory.scratchpad import ScratchpadCounts
from hwmodel.machine import Machine
from hwmodel.replay import ReplayResult
from hwmodel.replay.cache_pass import KeptPass, keep
from traces.base.progress import Progress
from traces.trace.chunks import Trace, by_stream
from traces.trace.partition import EnginesSpec, cut_work

if TYPE_CHECKING:
    from hwmodel.system.bounds import RunTime

KEPT_PASS_BYTES = 64 << 20
"""Most bytes of a pass through the caches that is kept for other points: 1.1 million bursts of 32 bytes."""


def keep_pass(point: Point, before: StepResults, progress: Progress | None) -> dict[str, np.ndarray]:
    return keep(before["trace"], build_machine(point), KEPT_PASS_BYTES) or {}


def check_pass(arrays: dict[str, np.ndarray], before: StepResults) -> None:
    if arrays:
        KeptPass(arrays)


def simulate_point(point: Point, before: StepResults, progress: Progress | None) -> dict[str, Any]:
    """Play the point's trace on its machine and return the results as JSON values."""
    machine = build_machine(point)
    arrays = before["cache_pass"] if before.worth_keeping("cache_pass") else {}
    trace = KeptPass(arrays, checked=True) if arrays else before["trace"]  # the memo has checked what came from a file
    return simulate(trace, machine, point.measure.timing, progress, point.machine.engines)


def simulate(
    trace: Trace | KeptPass,
    machine: Machine,
    timing: str,
    progress: Progress | None = None,
    engines: EnginesSpec = EnginesSpec(),
) -> dict[str, Any]:
    """Play a trace on a machine and return its results as JSON values; `timing` is 'replay' or 'system'.

    With 'replay', a kept pass through the same caches does as well, and one engine makes all accesses.
    """
    from hwmodel.energy.onchip import chip_area
    from hwmodel.energy.total import run_energy

    if timing == "system":
        assert isinstance(trace, Trace)
        result, timed, system = _system(trace, machine, progress, engines)
    else:
        result, timed, system = _replay(trace, machine, progress)
    assert result.dram is not None
    areas = () if machine.technology is None else chip_area(machine)
    total = result.total
    lanes: dict[str, Any] = {
        key: result.description[key] for key in ("lanes", "passes", "padded_lanes") if key in result.description
    }
    if result.description.get("samples", 1) > 1:
        lanes.setdefault("passes", result.description["samples"])  # one vector after the other
    return {
        **lanes,
        **({} if result.scratchpad is None else {"scratchpad": _scratchpad(result.scratchpad)}),
        "layout": result.description.get("layout", {}).get("kind"),
        "inputs": result.description.get("inputs"),
        "zeroed_weights": int(result.description.get("zeroed_weights", 0)),
        "accesses": by_stream(loads=result.loads, stores=result.stores, load_bytes=result.load_bytes,
                               store_bytes=result.store_bytes),
        "cache": [{**vars(c), "hits": c.hits, "misses": c.misses} for c in result.caches],
        "traffic": {
            "reads": int(total.reads.sum()),
            "writes": int(total.writes.sum()),
            "block_bytes": result.block_bytes,
            "bursts": total.bursts,
            "streams": by_stream(reads=total.reads, writes=total.writes, bursts=total.way_bursts.sum(axis=0)),
        },
        "bus": _bus(total, machine),
        "dram": {
            "commands": {name: count for name, count in result.dram.commands.items() if count},
            "cycles": result.dram.total_cycles,
            "row_hits": result.dram.counts.row_hits,
            "mean_read_latency_ns": result.dram.mean_read_latency_cycles * result.dram.tck_ns,
        },
        "energy_pj": run_energy(result, machine, timed.time_ns).as_record(),
        "time_ns": timed.time_ns,
        "bound_by": timed.bound_by.as_dict(),
        "roofline_ns": timed.roofline_ns,
        **({"area_um2": sum(area.um2 for area in areas), "area": [asdict(area) for area in areas]} if areas else {}),
        **system,
    }  # fmt: skip


def _scratchpad(counts: ScratchpadCounts) -> dict[str, Any]:
    return {
        **vars(counts),
        "bias_bytes": {"row": counts.bias_bytes_row, "scalar": counts.bias_bytes_scalar},
    }


def _replay(
    trace: Trace | KeptPass, machine: Machine, progress: Progress | None
) -> tuple[ReplayResult, RunTime, dict[str, Any]]:
    from hwmodel.replay import replay
    from hwmodel.system.bounds import issue_time

    result = replay(trace, machine, progress=progress)
    return result, issue_time(result, machine), {}


def _system(
    trace: Trace, machine: Machine, progress: Progress | None, engines: EnginesSpec
) -> tuple[ReplayResult, RunTime, dict[str, Any]]:
    from hwmodel.system.simulation import simulate as simulate_system

    result = simulate_system(cut_work(trace, engines), machine, progress=progress)
    each = [{**vars(engine), "stall_cycles": engine.stall_cycles} for engine in result.engines]
    return result.counts, result.run_time, {"engines": each}


def _bus(total: Any, machine: Machine) -> dict[str, Any]:
    counts = {
        "beats": total.bursts * machine.beats_per_block,
        "ones": total.ones,
        "toggles": total.toggles,
    }
    if total.wires is None:
        return {**counts, "streams": {}, "wires": {}}
    groups = {"dq": total.wires.data, "dbi": total.wires.flag}
    if total.extra_wires is not None:
        groups["extra"] = total.extra_wires
    there = {"dq": machine.part.organisation.dq_bits}  # LPDDR6 has half a byte lane
    wires = {
        name: {
            "ones": group.ones.sum(axis=0)[: there.get(name)].tolist(),
            "toggles": group.toggles.sum(axis=0)[: there.get(name)].tolist(),
        }
        for name, group in groups.items()
        if name != "dbi" or machine.flag_wires
    }
    ones = sum(np.asarray(group.ones.sum(axis=1)) for group in groups.values())
    toggles = sum(np.asarray(group.toggles.sum(axis=1)) for group in groups.values())
    return {**counts, "streams": by_stream(ones=ones, toggles=toggles), "wires": wires}
