"""Checks of a configuration, and of an order on a machine.

A configuration must load and fit its parts, and its DRAM controller must issue only legal commands. An order
is held against its bytes, rows and counts on a machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.checks.check import Check, equal
from edgewatt.orders.ordering import machine_cost_for
from hwmodel.machine import Machine
from hwmodel.replay import replay
from hwmodel.replay.hierarchy import burst_trace
from hwmodel.system.simulation import simulate
from traces.networks.network import Network
from traces.trace.build import build_trace, final_image
from traces.trace.chunks import Trace

REQUESTS = 2000


def configuration_checks(path: Path, *, seed: int = 0) -> list[Check]:
    """Check the configuration file of a run or a sweep, and the parts it names.

    Loading refuses what is wrong in the file itself (ConfigError names line and column). Then the part and the
    controller serve random, sequential and single-bank requests, and every command is held against the part's
    constraints by the independent checker.
    """
    from edgewatt.runs.model import build_machine
    from edgewatt.runs.plan import load_sweep

    points = load_sweep(path).points
    checks = [Check("configuration loads and its parts fit", "yes", f"{len(points)} points", True)]
    drams = {json.dumps(point.config["dram"], sort_keys=True): point for point in points}
    for point in drams.values():
        checks += _command_checks(build_machine(point), seed)
    return checks


def _command_checks(machine: Machine, seed: int) -> list[Check]:
    from hwmodel.dram.checker import broken_rules
    from hwmodel.dram.engine import simulate_dram
    from hwmodel.parts.part_file import load_part

    assert machine.part is not None
    part, controller = load_part(machine.part), machine.memory_controller()
    checks = []
    burst = part.organisation.burst_bytes
    rng = np.random.default_rng(seed)
    streams = {
        "random": rng.integers(0, 2**20, REQUESTS) * burst,
        "sequential": np.arange(REQUESTS) * burst,
        "far apart": rng.integers(0, 8, REQUESTS) * (part.organisation.capacity_bytes // 8),
    }
    for name, address in streams.items():
        is_write = rng.random(REQUESTS) < 0.3
        run = simulate_dram(address, is_write, np.arange(REQUESTS), part=part, controller=controller, trace=True)
        broken = broken_rules(run, part, controller)
        measured = len(broken) if not broken else f"{len(broken)}, first: {broken[0]}"
        checks.append(equal(f"{part.name}: constraints broken by {name} requests", 0, measured))
    return checks


def machine_checks(
    network: Network, edges: npt.NDArray[np.int64], system: str | Path | Machine, *, lanes: int = 16, seed: int = 0
) -> list[Check]:
    """Play a valid order on a system and check what it leaves in memory, what it moves, and that both timings agree.

    The outputs that the bursts leave in memory are those of the trace, byte for byte; a scratchpad moves the rows that
    `count_io` counts; replay and the system ask memory for the same bursts. Raises InputError for a system that does
    not fit.
    """
    judge = machine_cost_for(network, "energy", system, lanes=lanes, seed=seed)
    machine, layout = judge.machine, judge.layout
    trace = build_trace(network, edges, layout=layout, batch=lanes, seed=seed)
    counted, timed = replay(trace, machine), simulate(trace, machine)
    checks = [equal("output bytes in memory that differ after the run", 0, _wrong_outputs(network, trace, machine))]
    if counted.scratchpad is not None:
        checks += _row_checks(network, edges, machine, counted.scratchpad)
    for name in ("reads", "writes"):
        asked = [int(getattr(each.total, name).sum()) for each in (counted, timed.counts)]
        checks.append(equal(f"bursts asked for, {name}: replay, system", *asked))
    return checks


def _row_checks(network: Network, edges: npt.NDArray[np.int64], machine: Machine, moved: Any) -> list[Check]:
    from hwmodel.fastmemory.iomodel import count_io

    assert machine.scratchpad is not None
    spec = machine.scratchpad
    io = count_io(network, edges, memory=moved.memory, policy=spec.policy, pinning=spec.pinning)
    names = ("reads_neurons", "writes_live", "writes_outputs")
    return [
        equal(f"rows moved, {name}: count_io, scratchpad", getattr(io, name), getattr(moved, name)) for name in names
    ]


def _wrong_outputs(network: Network, trace: Trace, machine: Machine) -> int:
    """Return how many bytes of output rows differ between the memory behind the machine and the forward pass."""
    wanted = final_image(trace)
    left = final_image(burst_trace(trace, machine))
    plan, memory = trace.plan, trace.memory
    start = memory.base_address - burst_trace(trace, machine).memory.base_address
    rows = plan.neurons_offset + plan.row_pitch * network.outputs[network.in_degree[network.outputs] > 0]
    starts = (rows[None, :] + plan.pass_bytes * np.arange(plan.n_passes)[:, None]).ravel()
    at = (starts[:, None] + np.arange(plan.row_bytes)).ravel()
    return int((wanted[at] != left[at + start]).sum())
