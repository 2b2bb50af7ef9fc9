"""The clock for studies of real processors: orders of one network by our kernels, and the libraries, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewatt.checks.bench import one_thread, packed_step, peer_steps
from edgewatt.checks.clocks import measure, one_core
from hwmodel.processor.calibration import cpu_name
from hwmodel.processor.inference import compile_inference
from traces.networks.network import Network


@dataclass(frozen=True)
class Way:
    """A way to work: an Ordering (None: the network's own order), 'runs' or 'literal', and input vectors at a time."""

    order: Any = None
    algorithm: str = "runs"
    lanes: int = 128


def this_processor() -> str:
    """Return what jobs are told apart by: times of another processor are others."""
    return cpu_name()


def _clocked(step: Callable[[], object]) -> float:
    begun = time.perf_counter()
    step()
    return 1e6 * (time.perf_counter() - begun)


def times_of(
    network: Network, ways: Mapping[str, Way], peers: Sequence[str], batch: int, seed: int, threads: int = 1
) -> dict[str, Any]:
    """Return median thread CPU microseconds of a batch by name, of 11 shuffled rounds on one core.

    The first way is timed twice: `control` over it is the A/A control. Libraries that are absent have no time.
    threads: more than one: the least microseconds on the clock of 200 rounds on all cores, since CPU time cannot tell.
    """
    vectors = np.random.default_rng(seed).random((batch, len(network.inputs)), np.float32)
    first = next(iter(ways))
    with one_core() if threads == 1 else nullcontext():
        made = {
            name: compile_inference(
                network, way.order, algorithm=way.algorithm, lanes=1 if batch == 1 else way.lanes, threads=threads
            )
            for name, way in (*ways.items(), ("control", ways[first]))
        }
        steps: dict[str, Any] = {name: packed_step(compiled, vectors) for name, compiled in made.items()}
        missing: Any = {}
        if peers:
            theirs, missing, _ = peer_steps(network, vectors, peers, made[first].neurons(vectors))
            steps |= theirs
        if threads == 1:
            with one_thread():
                measured = measure(steps, seed=seed)
            us = {name: measured.median_s(name) * 1e6 for name in steps}
        else:
            us = {name: min(_clocked(step) for _ in range(200)) for name, step in steps.items()}
    return {
        "us": us,
        "aa": us["control"] / us[first],
        "missing": missing,
        "connections": network.n_connections,
        "simd": made[first].simd,
        "date": time.strftime("%Y-%m-%d"),
    }
