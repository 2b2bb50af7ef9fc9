"""What one order costs on one machine by the full simulation: I/Os of the model, bytes over the bus, energy, time."""

from __future__ import annotations

from typing import Any

from hwmodel.fastmemory.scratchpad import ScratchpadSpec
from hwmodel.machine import Machine
from traces.base.progress import Progress
from traces.base.units import engineering
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.trace.chunks import STREAMS

LEAST_CHANGE = 5e-4  # a change below it is no difference: sentences print tenths of a per cent, and it would be 0.0 %


def differs(cost: float, other: float) -> bool:
    return cost != other and abs(cost - other) >= LEAST_CHANGE * abs(other)


def rows_of(machine: Machine, layout: Layout) -> int:
    return rows_in(machine.scratchpad, machine.caches[0].size_bytes if machine.caches else 0, layout)


def rows_in(pad: ScratchpadSpec | None, cache_bytes: int, layout: Layout) -> int:
    if pad is not None:
        return pad.memory(layout.sum_row_bytes)
    return max(cache_bytes // layout.sum_pitch + 1, 3)


def costs_of(
    network: Network,
    edges: Any,
    machine: Machine,
    layout: Layout,
    *,
    memory: int,
    timing: str,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return io (I/Os), bytes, energy with its dynamic and static part (pJ), what of idle energy is billed (idle), time
    (ns), bound_by (shares of the time), streams (name -> bytes), terms (energy term -> pJ), layout (its kind) and
    sources (energy by source of the constants, with its range: `certainty.by_source`).

    The machine runs one pass of `layout.lanes` vectors. timing: 'system', or 'replay' (then time is issue time).
    """
    from edgewatt.results.certainty import by_source
    from hwmodel.energy.total import run_energy
    from hwmodel.fastmemory.iomodel import count_io
    from hwmodel.replay import replay
    from hwmodel.system.bounds import issue_time
    from hwmodel.system.simulation import simulate
    from traces.trace.build import build_trace

    trace = build_trace(network, edges, layout=layout, batch=layout.lanes, seed=seed)
    if timing == "system":
        run = simulate(trace, machine, progress=progress)
        result, timed = run.counts, run.run_time
    else:
        result = replay(trace, machine, progress=progress)
        timed = issue_time(result, machine)
    energy = run_energy(result, machine, timed.time_ns)
    pad = machine.scratchpad or ScratchpadSpec(2**20)
    bursts = result.total.way_bursts.sum(axis=0)
    io = count_io(network, edges, memory=memory, policy=pad.policy, pinning=pad.pinning)
    return {
        "io": io.total,
        "bytes": result.total.bursts * result.block_bytes,
        "energy": energy.total_pj,
        "dynamic": energy.kind_pj("dynamic"),
        "static": energy.kind_pj("static"),
        "idle": energy.bill.idle,
        "time": timed.time_ns,
        "bound_by": timed.bound_by.as_dict(),
        "streams": {name: int(n) * result.block_bytes for name, n in zip(STREAMS, bursts, strict=True) if n},
        "terms": {row.term: row.energy_pj for row in energy.rows},
        "layout": result.description["layout"]["kind"],
        "sources": by_source(energy.as_record()).tolist(),
    }


MOST_NAMED = 3  # parts of a change on a side; what is below NAMED_SHARE of the largest is not named
NAMED_SHARE = 0.05


def describe_change(cost: dict[str, Any], other: dict[str, Any], what: str = "energy") -> str:
    """Say how `what` ('energy', 'bytes', 'time') and then bytes or energy change from `other` to `cost`."""
    streams, terms = _changes(cost, other, "streams"), _changes(cost, other, "terms")
    energy = _balance("energy", {name: 1e-12 * pj for name, pj in terms.items()}, "J")
    moved = _balance("bytes", streams, "B")
    if not any(streams.values()) and not any(terms.values()):
        return "every stream moves as many bytes at the same energy, at other times"
    return f"{moved}; {energy}" if what == "bytes" else f"{energy}; {moved}"


def _changes(cost: dict[str, Any], other: dict[str, Any], key: str) -> dict[str, float]:
    names = sorted(cost[key].keys() | other[key].keys())
    return {name: cost[key].get(name, 0) - other[key].get(name, 0) for name in names}


def _balance(what: str, changes: dict[str, float], unit: str) -> str:
    total = sum(changes.values())
    if not any(changes.values()):
        return f"{what} as before"
    if abs(total) <= 1e-9 * max(map(abs, changes.values())):  # rounding of equal sums
        total = 0
    with_it = _named(changes, -1 if total <= 0 else 1, unit)
    back = _named(changes, 1 if total <= 0 else -1, unit)
    between = f"{', though ' if total > 0 else ', in return '}{back}" if back else ""
    so = "as before in sum" if not total else f"{'+' if total > 0 else ''}{_amount(total, unit)}"
    return f"{what} {so} ({with_it}{between})"


def _named(changes: dict[str, float], sign: int, unit: str) -> str:
    mine = sorted(((name, each) for name, each in changes.items() if sign * each > 0), key=lambda pair: -sign * pair[1])
    least = NAMED_SHARE * max(map(abs, changes.values()))
    parts = [(name, each) for name, each in mine[:MOST_NAMED] if abs(each) >= least]
    return ", ".join(f"{name} {'+' if each > 0 else ''}{_amount(each, unit)}" for name, each in parts)


def _amount(value: float, unit: str) -> str:
    return f"{value:d} {unit}" if isinstance(value, int) and abs(value) < 1000 else engineering(value, unit)
