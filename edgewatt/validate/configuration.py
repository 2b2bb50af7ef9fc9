"""Is this configuration sound? It must load, fit its parts, and its DRAM controller must issue only legal commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from edgewatt.validate.checks import Check, equal
from hwmodel.machine import Machine

REQUESTS = 2000


def configuration_checks(path: Path, *, seed: int = 0) -> list[Check]:
    """Check the configuration file of a run or a sweep, and the parts it names.

    Loading refuses what is wrong in the file itself (ConfigError names line and column). Then the part and the
    controller serve random, sequential and single-bank requests, and every command is held against the part's
    constraints by the independent checker.
    """
    from edgewatt.point.machine import build_machine
    from edgewatt.sweeps.plan import load_sweep

    points = load_sweep(path).points
    checks = [Check("configuration loads and its parts fit", "yes", f"{len(points)} points", True)]
    drams = {json.dumps(point.config["dram"], sort_keys=True): point for point in points}
    for point in drams.values():
        checks += _command_checks(build_machine(point), seed)
    return checks


def _command_checks(machine: Machine, seed: int) -> list[Check]:
    from hwmodel.dram.checker import check_trace
    from hwmodel.dram.command_table import from_trace
    from hwmodel.dram.engine import simulate_dram
    from hwmodel.dram.part_file import load_part

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
        broken = [
            violation.message
            for channel in run.command_trace or ()
            for violation in check_trace(
                from_trace(channel, part=part, end_cycle=run.end_cycle),
                part=part,
                read_dbi=controller.read_dbi,
                command_occupancy=controller.command_occupancy,
                refresh=controller.refresh,
            )
        ]
        measured = len(broken) if not broken else f"{len(broken)}, first: {broken[0]}"
        checks.append(equal(f"{part.name}: constraints broken by {name} requests", 0, measured))
    return checks
