"""The clock for studies of real processors: orders of one network by our kernels, and the libraries, in one process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewatt.checks.bench import one_thread, packed_step, peer_steps
from edgewatt.checks.clocks import measure, one_core
from hwmodel.processor.inference import compile_inference
from hwmodel.processor.limits import cpu_name
from traces.networks.network import Network

CONTROL = "control"


@dataclass(frozen=True)
class Way:
    """A way to work: an Ordering (None: the network's own order), 'runs' or 'literal', and input vectors at a time."""

    order: Any = None
    algorithm: str = "runs"
    lanes: int = 128


def this_processor() -> str:
    """Return what jobs are told apart by: times of another processor are others."""
    return cpu_name()


def times_of(network: Network, ways: Mapping[str, Way], peers: Sequence[str], batch: int, seed: int) -> dict[str, Any]:
    """Return median thread CPU microseconds of a batch by name, of 11 shuffled rounds on one core.

    The first way is timed twice: `control` over it is the A/A control. Libraries that are absent have no time.
    """
    vectors = np.random.default_rng(seed).random((batch, len(network.inputs)), np.float32)
    with one_core():
        made = {
            name: compile_inference(network, way.order, algorithm=way.algorithm, lanes=1 if batch == 1 else way.lanes)
            for name, way in ways.items()
        }
        first = next(iter(ways))
        made[CONTROL] = compile_inference(
            network, ways[first].order, algorithm=ways[first].algorithm, lanes=1 if batch == 1 else ways[first].lanes
        )
        steps: dict[str, Any] = {}
        for name, compiled in made.items():
            steps[name] = packed_step(compiled, vectors)
        their_steps: dict[str, Any] = {}
        missing: Any = {}
        if peers:
            their_steps, missing, _ = peer_steps(network, vectors, peers, made[first].neurons(vectors))
        with one_thread():
            measured = measure(steps | their_steps, seed=seed)
    return {
        "us": {name: measured.median_s(name) * 1e6 for name in (*steps, *their_steps)},
        "aa": measured.ratio(CONTROL, first),
        "missing": missing,
        "runs": {name: compiled.runs for name, compiled in made.items() if name != CONTROL},
        "connections": network.n_connections,
        "simd": made[first].simd,
        "date": time.strftime("%Y-%m-%d"),
    }
