"""What a memory makes of an accelerator model's run: commands, ones, picojoules and nanoseconds by layer and tensor.

Each layer is played by itself. Wires and bursts belong to a tensor exactly, all else to the layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hwmodel.bus import WireCounts
from hwmodel.energy.total import ReplayEnergy, replay_energy
from hwmodel.machine import Machine
from hwmodel.replay import ReplayResult, replay
from traces.accelerators.scalesim import STREAM, TensorTraffic, as_trace, base_addresses
from traces.base.errors import InputError
from traces.trace.chunks import STREAMS


@dataclass(frozen=True)
class TensorCost:
    """One tensor of one layer.

    moved_bytes: as the tool asked for. missing: words of the tensor that were never moved. reads, writes: RD and WR
    commands. ones, toggles: on all data wires, flag wires counted. wire_pj: of DQ, DBI and extra wires. burst_pj: of
    its reads and writes inside the DRAM.
    """

    tensor: str
    moved_bytes: int
    missing: int
    reads: int
    writes: int
    ones: int
    toggles: int
    wire_pj: float
    burst_pj: float


@dataclass(frozen=True)
class LayerCost:
    """One layer: its tensors, the memory's time from its first clock to the last, and what its tensors share."""

    layer: int
    tensors: tuple[TensorCost, ...]
    time_ns: float
    activates: int
    total_pj: float

    @property
    def shared_pj(self) -> float:
        """Energy that belongs to no tensor: activates, background, refresh, strobes, clock, commands."""
        return self.total_pj - sum(each.wire_pj + each.burst_pj for each in self.tensors)


def layer_costs(
    traffic: Sequence[TensorTraffic], machine: Machine, bases: Mapping[tuple[int, str], int] | None = None
) -> list[LayerCost]:
    """Return what each layer of an accelerator's run costs on a machine with a part; words become bursts (`as_trace`).

    traffic: of `traces.accelerators.scalesim.read_run`. bases: byte address of each (layer, tensor); default
    `base_addresses`. Raises InputError without a part.
    """
    if machine.part is None:
        raise InputError("picojoules and nanoseconds need a memory part")
    where = base_addresses(traffic) if bases is None else bases
    costs = []
    for layer in sorted({each.layer for each in traffic}):
        mine = [each for each in traffic if each.layer == layer]
        result = replay(as_trace(mine, burst_bytes=machine.bus.block_bytes, bases=where), machine)
        energy = replay_energy(result, machine)
        assert result.dram is not None
        tensors = tuple(_tensor_cost(each, result, energy, machine) for each in mine)
        commands = result.dram.commands
        costs.append(LayerCost(layer, tensors, result.dram.time_ns, commands["ACT"], energy.total_pj))
    return costs


def _tensor_cost(each: TensorTraffic, result: ReplayResult, energy: ReplayEnergy, machine: Machine) -> TensorCost:
    """Count one stream of a replay, as if the wires had carried it alone where it was."""
    alone = np.arange(len(STREAMS)) == STREAM[each.tensor]
    run, flush = (
        replace(
            part,
            reads=part.reads * alone,
            writes=part.writes * alone,
            way_bursts=part.way_bursts * alone,
            way_wires=_only(part.way_wires, alone),
            way_extra_wires=_only(part.way_extra_wires, alone),
        )
        for part in (result.run, result.flush)
    )
    only = replace(result, run=run, flush=flush)
    reads, writes = (int(bursts.sum()) for bursts in only.total.way_bursts)
    constant = {row.term: row.constant_pj for row in energy.core}
    return TensorCost(
        each.tensor,
        len(each.word),
        each.missing,
        reads,
        writes,
        only.total.ones or 0,
        only.total.toggles or 0,
        replay_energy(only, machine).io_pj,
        reads * constant.get("read", 0.0) + writes * constant.get("write", 0.0),
    )


def _only(wires: WireCounts | None, alone: np.ndarray) -> WireCounts | None:
    return None if wires is None else WireCounts(wires.counts * alone[:, None, None])
