"""Pruning for the memory of a machine, and all that `edgewatt prune` finds and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewatt.config.source import NetworkFiles
from edgewatt.evaluation.costs import rows_of
from edgewatt.orders.describe import order_file
from edgewatt.orders.order_comparison import machine_of
from edgewatt.orders.request import need_npz
from edgewatt.prune.mask import MemoryMask
from edgewatt.prune.mask import memory_mask as mask_for
from edgewatt.prune.trained import PrunedNetwork, prune
from hwmodel.machine import Machine
from traces.base.errors import InputError
from traces.base.files import whole_file
from traces.base.units import in_one_unit
from traces.layout.settings import Layout
from traces.networks.network import Network
from traces.readers import native


def memory_mask(
    network: Network | Sequence[int],
    *,
    memory: int | None = None,
    machine: str | Path | Mapping[str, Any] | Machine | None = None,
    lanes: int = 16,
    **options: Any,
) -> MemoryMask:
    """Return masks with which a memory needs as few I/Os as there can be; see `edgewatt.prune.mask.memory_mask`.

    memory: M of the I/O model; or machine (a system's name, file or mapping, or a Machine): M is that of its on-chip
    memory for rows of `lanes` vectors. options: connections or density, policy, pinning, neurons, block,
    groups, extra, values, seed. Raises InputError naming the nearest M or number of connections.
    """
    if (memory is None) == (machine is None):
        raise InputError("give memory (M of the I/O model) or a machine, one of them")
    if machine is not None:
        memory = rows_of(machine_of(machine), Layout(lanes=lanes))
    return mask_for(network, memory=memory, **options)  # type: ignore[arg-type]


def prune_for_memory(
    network: Network,
    *,
    density: float | Sequence[float],
    calibration: Any,
    memory: int | None = None,
    system: str | Path | Mapping[str, Any] | Machine | None = None,
    lanes: int = 16,
    **options: Any,
) -> PrunedNetwork:
    """Prune a trained network into windows for a memory, beside free pruning; see `edgewatt.prune.trained.prune`.

    density: the share of connections that stays, or several. calibration: float[B, I] inputs, or an npz with `inputs`.
    system: a system's name, file or mapping, or a Machine: M is that of its on-chip memory for rows of `lanes` vectors
    unless `memory` says otherwise, and it is simulated. options: rounds, steps, extra, time_limit_s, seed, progress.
    Returns a PrunedNetwork. Raises InputError with the nearest M and density where a mask cannot be.
    """
    machine = None if system is None else machine_of(system)
    return prune(
        network, density=density, calibration=calibration, memory=memory, machine=machine, lanes=lanes, **options
    )


@dataclass(frozen=True, eq=False)
class Pruned:
    name: str
    made: PrunedNetwork

    @property
    def memory(self) -> int:
        return self.made.results[0].memory

    def as_dict(self) -> dict[str, Any]:
        rows = {"results": self.made.results, "front": self.made.front}
        return {"verdict": self.made.verdict, **{key: [r.as_dict() for r in of] for key, of in rows.items()}}

    def table(self) -> dict[str, list[str]]:
        results = self.made.results
        joules, energies = in_one_unit([r.energy_pj for r in results], 1e-12, "J", digits=4)
        seconds, times = in_one_unit([r.time_ns for r in results], 1e-9, "s", digits=4)
        columns = {
            "method": [r.method for r in results],
            "density": [f"{r.density:.3g}" for r in results],
            "connections": [f"{r.connections:,}" for r in results],
            "dead": [f"{r.dead:,}" if r.dead else "-" for r in results],
            "error": [f"{r.error:.4f}" for r in results],
            "accuracy %": ["-" if r.accuracy is None else f"{100 * r.accuracy:.2f}" for r in results],
            "I/Os": [f"{r.ios:,}" for r in results],
            "bound": [f"{r.bound:,}" for r in results],
            joules: energies,
            seconds: times,
            "front": ["*" if r in self.made.front else "" for r in results],
        }
        return {head: cells for head, cells in columns.items() if set(cells) != {"-"}}

    @property
    def sentences(self) -> tuple[str, str]:
        by_layer = (f"{r.method} {' '.join(f'{e:.3f}' for e in r.layer_errors)}" for r in self.made.results[:2])
        return f"Error by layer, on the vectors fitted to: {'; '.join(by_layer)}.", self.made.verdict


def prune_files(
    source: NetworkFiles, calibration: str | None, density: Sequence[float], *, output: str | None = None,
    order: str | None = None, seed: int = 0, system: str | None = None, lanes: int | None = None, **options: Any,
) -> Pruned:  # fmt: skip
    """Read, prune, and write network and order, as `edgewatt prune` says; options: of `prune_for_memory`."""
    need_npz("-o", output, "a network")
    need_npz("--order", order, "an order")
    if calibration is None or not density:
        missing = "--calibration NPZ (input vectors)" if calibration is None else "--density SHARE (what to keep)"
        raise InputError(f"{source.files[0]}: pruning needs {missing}")
    if lanes is not None and system is None:
        raise InputError("--lanes are input vectors of a pass on --system: name a machine, or leave --lanes out")
    network = source.network("prune")
    made = prune_for_memory(
        network, calibration=calibration, density=density, seed=seed, system=system,
        lanes=16 if lanes is None else lanes, **options,
    )  # fmt: skip
    first = made.results[0]
    if output:
        native.save(made.network, Path(output), extras={"error": first.error, "memory": first.memory})
    if order:
        about = {
            "network": made.network.name, "memory": first.memory, "policy": "min", "pinning": "literal",
            "method": made.order.method, "parameters": dict(made.order.parameters), "seed": seed, "truncated": False,
        }  # fmt: skip
        with whole_file(Path(order)) as stream:
            stream.write(order_file(made.order, about))
    return Pruned(network.name, made)
