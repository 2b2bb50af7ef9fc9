"""Pruning for the memory of a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgewatt.evaluation.costs import rows_of
from edgewatt.orders.pays_machine import machine_of
from edgewatt.prune.mask import MemoryMask
from edgewatt.prune.mask import memory_mask as mask_for
from edgewatt.prune.trained import PrunedNetwork, prune
from hwmodel.machine import Machine
from traces.base.errors import InputError
from traces.layout.settings import Layout
from traces.networks.network import Network


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
    memory for rows of `lanes` vectors. options: connections or density, policy, pinning, neurons, pattern, block,
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
