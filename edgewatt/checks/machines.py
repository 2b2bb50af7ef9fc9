"""Checks of a configuration, and of an order on a machine.

A configuration must load and fit its parts, its DRAM controller must issue only legal commands, and its encoders must
send its own bytes as their bit-by-bit references do. An order is held against its bytes, rows and counts on a machine.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgewatt.checks.check import Check, equal, relative
from edgewatt.evaluation.costs import rows_of
from edgewatt.orders.ordering import machine_cost_for
from edgewatt.orders.pays import METRICS, WORDS
from edgewatt.runs.model import Member, Point
from hwmodel.bus import Bus
from hwmodel.coding import ENCODERS, Stage, parse_chain
from hwmodel.coding.codec import BitBus
from hwmodel.machine import Machine
from hwmodel.replay import replay
from hwmodel.replay.hierarchy import burst_trace
from hwmodel.system.simulation import simulate
from traces.networks.network import Network
from traces.trace.build import build_trace, final_image
from traces.trace.chunks import Trace

REQUESTS = 2000
BURSTS = 2000


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
    encoders = {(point.machine.encoder, repr((point.machine.bus, point.layout))): point for point in reversed(points)}
    checks += [check for point in reversed(encoders.values()) for check in _encoder_checks(point)]
    return checks


def _encoder_checks(point: Point) -> list[Check]:
    """Send the first bursts of a point through its encoder chain twice: by the kernels and bit by bit."""
    from edgewatt.runs.compute import Computation
    from edgewatt.runs.memo import Memo
    from edgewatt.runs.model import build_machine
    from edgewatt.runs.steps import STEPS

    if not STEPS["trace"].when(point):
        return []  # I/Os alone, or a GPU's products: nothing crosses a bus
    if point.order is not None:
        own = replace(point.order, ordering=Member("two-optimal"), stride=Member("none"))
        point = replace(point, order=own)
    trace, machine = Computation(point, Memo())["trace"], build_machine(point)
    stages = [ENCODERS[stage].item for stage in parse_chain(machine.encoder)]
    if not trace.has_data or any(stage.encode_bits is Stage.encode_bits for stage in stages):
        return []  # nothing to send, or an encoder without a reference
    data, stream = _first_bursts(trace, machine)
    sent = [
        machine.encoder_chain(trace.description.get("element_bytes"), engine).encode(data, stream)
        for engine in ("kernels", "bitarray")
    ]
    buses = Bus(machine.bus.bus_bytes), BitBus(machine.bus.bus_bytes)
    for bus, coded in zip(buses, sent, strict=True):
        bus.send(coded.data, coded.flags)
    n = len(stream)
    name = f"{machine.encoder}, {point.layout.format if point.layout else 'recorded'} data"
    differing = int(np.count_nonzero((sent[0].data != sent[1].data).reshape(n, -1).any(axis=1))) if n else 0
    kernels, bits = (bus.counts.totals for bus in buses)
    return [
        equal(f"{name}: of {n} bursts, sent otherwise than bit by bit", 0, differing),
        equal(f"{name}: ones, toggles, rising edges", ", ".join(map(str, bits)), ", ".join(map(str, kernels))),
    ]


def _first_bursts(trace: Trace, machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes uint8[n * block_bytes] and streams uint8[n] of the first bursts a trace causes."""
    data, stream, n = [np.zeros(0, np.uint8)], [np.zeros(0, np.uint8)], 0
    for chunk in burst_trace(trace, machine):
        assert chunk.payload is not None
        data.append(chunk.payload[: BURSTS * machine.bus.block_bytes])
        stream.append(np.asarray(chunk.stream, np.uint8))
        n += len(chunk)
        if n >= BURSTS:
            break
    return np.concatenate(data)[: BURSTS * machine.bus.block_bytes], np.concatenate(stream)[:BURSTS]


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


UNITS = {"io": "", "bytes": "", "energy": ", pJ", "time": ", ns"}


def machine_checks(
    network: Network, edges: npt.NDArray[np.int64], system: str | Path | Machine, *, lanes: int = 16, seed: int = 0
) -> list[Check]:
    """Play a valid order on a system and check what it leaves in memory, what it moves, and that both timings agree.

    The outputs that the bursts leave in memory are those of the trace, byte for byte; a scratchpad moves the rows that
    `count_io` counts; replay and the system ask memory for the same bursts. Last come I/Os, bytes, energy and time
    beside those of two-optimal: stated, not judged. Raises InputError for a system that does not fit.
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
    memory, mine, other = rows_of(machine, layout), judge.costs(edges), judge.costs(judge.plain)
    for metric in METRICS:
        name = f"{WORDS[metric]}{UNITS[metric]} at M = {memory}: two-optimal, this order"
        checks.append(
            Check(name, other[metric], mine[metric], True, relative(other[metric], mine[metric]), stated=True)
        )
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
