"""What one order costs on one machine by the full simulation: I/Os of the model, bytes over the bus, energy, time."""

from __future__ import annotations

from typing import Any

import numpy as np

from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import Machine
from hwmodel.replay import ReplayResult
from traces.access.trace import STREAMS
from traces.base.errors import InputError
from traces.base.units import engineering
from traces.layouts.layout import Layout
from traces.work.network import Network

TIMINGS = ("replay", "system")


def check_timing(timing: str) -> str:
    """Return 'replay' or 'system'. Raises InputError for another name."""
    if timing not in TIMINGS:
        raise InputError(f"timing must be 'system' or 'replay', not {timing!r}")
    return timing


def rows_of(machine: Machine, layout: Layout) -> int:
    """Return M of the I/O model: of a scratchpad its own, of the first cache the rows it has room for."""
    if machine.scratchpad is not None:
        return machine.scratchpad.memory(layout.row_pitch)
    return max(machine.caches[0].size_bytes // layout.row_pitch + 1, 3)


def costs_of(
    network: Network, edges: Any, machine: Machine, layout: Layout, *, memory: int, timing: str, seed: int = 0
) -> dict[str, Any]:
    """Return io (I/Os), bytes, energy (pJ), time (ns), streams (name -> bytes) and terms (energy term -> pJ).

    The machine runs one pass of `layout.lanes` vectors. timing: 'system', or 'replay' (then time is issue time).
    """
    from hwmodel.energy.onchip import onchip_energy
    from hwmodel.energy.replay import replay_energy
    from hwmodel.fastmemory.iomodel import count_io
    from hwmodel.replay import replay
    from hwmodel.system.simulation import simulate
    from traces.access.build import build_trace

    trace = build_trace(network, edges, layout=layout, batch=layout.lanes, seed=seed)
    if timing == "system":
        run = simulate(trace, machine)
        result, time_ns = run.counts, run.time_ns
    else:
        result = replay(trace, machine)
        assert result.dram is not None
        time_ns = max(result.dram.time_ns, result.engine_accesses / machine.engine.accesses_per_ns)
    energy = replay_energy(result, machine)
    rows = [*energy.interface, *energy.core]
    if machine.technology is not None:
        chip = onchip_energy(result, machine, time_ns)
        rows += [*chip.memory, *chip.compute]
    pad = machine.scratchpad or ScratchpadSpec(2**20)
    io = count_io(network, edges, memory=memory, policy=pad.policy, pinning=pad.pinning)
    return {
        "io": io.total,
        "bytes": result.read_bytes + result.written_bytes,
        "energy": sum(row.energy_pj for row in rows),
        "time": time_ns,
        "streams": _stream_bytes(result),
        "terms": {row.term: row.energy_pj for row in rows},
    }


def largest_change(cost: dict[str, Any], other: dict[str, Any], key: str) -> tuple[str, float]:
    """Return the stream ('streams', bytes) or energy term ('terms', pJ) that differs most, and cost's less other's."""
    names = sorted(cost[key].keys() | other[key].keys())
    change = {name: cost[key].get(name, 0) - other[key].get(name, 0) for name in names}
    largest = max(names, key=lambda name: abs(change[name]))
    return largest, change[largest]


def change_in_words(cost: dict[str, Any], other: dict[str, Any]) -> str:
    """Say which stream and which energy term change most from `other` to `cost`; what does not change is not named."""
    stream, moved = largest_change(cost, other, "streams")
    term, pj = largest_change(cost, other, "terms")
    if not moved and not pj:
        return "every stream moves as many bytes at the same energy, at other times"
    bytes_ = f"{stream} moves {_signed(moved, 'B')}" if moved else "every stream moves as many bytes"
    joules = f"the energy term {term} changes by {_signed(pj * 1e-12, 'J')}" if pj else "no energy term changes"
    return f"{bytes_}, and {joules}"


def _signed(value: float, unit: str) -> str:
    few = isinstance(value, int) and abs(value) < 1000
    return f"{value:+d} {unit}" if few else f"{'+' if value > 0 else ''}{engineering(value, unit)}"


def _stream_bytes(result: ReplayResult) -> dict[str, int]:
    bursts = np.asarray(result.total.reads + result.total.writes)
    return {name: int(n) * result.block_bytes for name, n in zip(STREAMS, bursts, strict=True) if n}
