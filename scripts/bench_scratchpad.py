"""What an order saves on a machine: digits_wide on scratchpads and caches, and where on-chip memory is large enough.

    python scripts/bench_scratchpad.py             # both settings, then the sweep over sizes
    python scripts/bench_scratchpad.py --settings  # the first alone: 8 minutes, most of them published annealing
    python scripts/bench_scratchpad.py --sweep     # the second alone: a minute

Tuples, LPDDR4-3200 with DBI, system timing. Rows moved are checked against `count_io`. Background is what the memory
takes whether it works or not: standby, power-down and refresh of the core, and the clock on its wires. Counts and
energies do not depend on the machine that this runs on.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import edgewatt as ew
from hwmodel.caches.spec import CacheSpec
from hwmodel.energy.onchip import onchip_energy
from hwmodel.energy.replay import replay_energy
from hwmodel.system.simulation import simulate
from traces.base.resources import config_root

CASES = ((128, 65536), (16, 8192))  # lanes, bytes
ORDERS: dict[str, dict[str, Any]] = {
    "two-optimal": {},
    "connection-reordering": {"iterations": 200_000},  # the published annealing, with its published number of steps
    "auto": {"moves": 600_000},
}
NODES = ("lop-45nm", "lop-32nm", "lop-22nm")
SIZES = [1024 << k for k in range(1, 12)]  # 2 KiB to 2 MiB
SWEEP_LANES = 16


def machines(size: int) -> dict[str, Any]:
    """Return the machines of one size: software-managed, and as a cache that hardware manages."""
    common: dict[str, Any] = {"part": "lpddr4-3200", "encoder": "dbi-dc"}
    cache = CacheSpec(size, 64, 8, "lru")
    return {
        "scratchpad, MIN": ew.Machine(scratchpad=ew.ScratchpadSpec(size), **common),
        "cache, 8-way LRU": ew.Machine(caches=(cache,), **common),
        "cache, 8-way MIN": ew.Machine(caches=(replace(cache, policy="min"),), **common),
    }


def settings(network: Any, only: int | None) -> None:
    """Print both settings of lanes and bytes: every order on every memory."""
    print(
        "| lanes | KiB | memory | order | MB | vs two-optimal | DRAM and interface, uJ | vs | of it background | us |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for lanes, size in (case for case in CASES if only in (None, case[0])):
        memory = ew.ScratchpadSpec(size).memory(4 * lanes)
        orders = {name: ew.order(network, name, memory=memory, **given) for name, given in ORDERS.items()}
        for label, machine in machines(size).items():
            base: tuple[float, float] | None = None
            for name, order in orders.items():
                run = simulate(ew.build_trace(network, order, layout="tuples", lanes=lanes), machine)
                counts = run.counts
                if counts.scratchpad is not None:
                    counted = ew.count_io(network, order, memory=memory)
                    for field in ("reads_neurons", "writes_live", "writes_outputs"):
                        assert getattr(counts.scratchpad, field) == getattr(counted, field), field
                energy = replay_energy(counts, machine)
                megabytes, joules = (counts.read_bytes + counts.written_bytes) / 1e6, energy.total_pj / 1e6
                base = base or (megabytes, joules)
                print(
                    f"| {lanes} | {size // 1024} | {label} | {name} | {megabytes:.2f} | {change(megabytes, base[0])} "
                    f"| {joules:.1f} | {change(joules, base[1])} | {background_pj(energy) / energy.total_pj:.0%} "
                    f"| {run.time_ns / 1e3:.0f} |",
                    flush=True,
                )


def background_pj(energy: Any) -> float:
    """Return what the memory takes whether it works or not."""
    always = ("background", "power_down", "refresh", "ck_")
    return sum(row.energy_pj for row in (*energy.core, *energy.interface) if row.term.startswith(always))


def change(value: float, base: float) -> str:
    """Return a change in per cent."""
    return f"{100 * (value / base - 1):+.1f} %"


def sweep(network: Any) -> None:
    """Print the total energy over sizes of on-chip memory at three nodes, and the size of least energy."""
    print(f"\n{SWEEP_LANES} lanes, total energy in uJ (memory, on-chip memory, multiply-adds)\n")
    print(f"| memory | order | node | {' | '.join(f'{size // 1024} KiB' for size in SIZES)} | least at |")
    print("|" + "---|" * (len(SIZES) + 4))
    orders = {
        name: ew.order(network, name, memory=ew.ScratchpadSpec(16384).memory(4 * SWEEP_LANES), **ORDERS[name])
        for name in ("two-optimal", "auto")
    }
    for label in ("scratchpad, MIN", "cache, 4-way LRU"):
        for name, order in orders.items():
            trace = ew.build_trace(network, order, layout="tuples", lanes=SWEEP_LANES)
            totals: dict[str, list[float]] = {node: [] for node in NODES}
            for size in SIZES:
                machine = ew.Machine(caches=(CacheSpec(size, 64, 4, "lru"),), part="lpddr4-3200", encoder="dbi-dc")
                if label.startswith("scratchpad"):
                    machine = replace(machine, caches=(), scratchpad=ew.ScratchpadSpec(size))
                run = simulate(trace, machine)
                memory = replay_energy(run.counts, machine).total_pj
                for node, energies in totals.items():
                    chip = onchip_energy(run.counts, replace(machine, technology=node), run.time_ns)
                    energies.append((memory + chip.memory_pj + chip.compute_pj) / 1e6)
            for node, energies in totals.items():
                best = energies.index(min(energies))
                cells = " | ".join(f"{value:.1f}" for value in energies)
                print(f"| {label} | {name} | {node} | {cells} | {SIZES[best] // 1024} KiB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--settings", action="store_true", help="leave the sweep over sizes out")
    parser.add_argument("--sweep", action="store_true", help="the sweep over sizes alone")
    parser.add_argument("--lanes", type=int, choices=[lanes for lanes, _ in CASES], help="one of the settings alone")
    given = parser.parse_args()
    network = ew.load(config_root() / "examples" / "networks" / "digits_wide.npz")
    if not given.sweep:
        settings(network, given.lanes)
    if not given.settings:
        sweep(network)


if __name__ == "__main__":
    main()
