"""Kamatar 2023, Figures 3, 4a, 5a, 6a and 7a: connections per second on the processor at hand; and the clock for it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from timeit import repeat
from typing import Any

import numpy as np

import edgewatt as ew
from edgewatt.checks.bench import measure, one_core, one_thread, packed_step, peer_steps
from hwmodel.processor.inference import compile_inference
from hwmodel.processor.limits import cpu_name
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies.ego_misses import make_network, unsorted
from traces.networks.network import Network

SEEDS = (1, 2, 3, 4, 5)
BATCHES = (1, 128)
PEERS = ("scipy", "torch")
READINGS = ("runs", "literal")
RADIX, MORE_RADIX = (2, 8), (2, 4, 8, 16, 120)
RANDOM, MORE_RANDOM = (4,), (2, 4, 8, 16)
MORE_DENSITIES = (0.01, 0.1, 0.2)
TOY, MORE_TOY = (16,), (2, 4, 8, 16)


@dataclass(frozen=True)
class Way:
    """A way to work: an Ordering (None: the network's own order), 'runs' or 'literal', and input vectors at a time."""

    order: Any = None
    algorithm: str = "runs"
    lanes: int = 128


def times_of(
    network: Network, ways: Mapping[str, Way], peers: Sequence[str], batch: int, seed: int, threads: int = 1
) -> dict[str, Any]:
    """Return median thread CPU microseconds of a batch by name, of 11 shuffled rounds on one core.

    The first way is timed twice: `control` over it is the A/A control. Libraries that are absent have no time.
    threads: more than one: the least microseconds on the clock, on all cores, since CPU time cannot tell.
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
            us = {name: 1e6 * min(repeat(step, number=1, repeat=50)) for name, step in steps.items()}
    return {
        "us": us, "aa": us["control"] / us[first], "missing": missing, "connections": network.n_connections,
        "simd": made[first].simd, "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def jobs(full: bool) -> list[dict[str, Any]]:
    """Return a job for each network; with `full` more depths and densities, and the challenge's 120 layers."""
    networks: list[dict[str, Any]] = [{"kind": "radix", "layers": n} for n in (MORE_RADIX if full else RADIX)]
    networks += [{"kind": "random", "layers": n, "density": 0.05} for n in (MORE_RANDOM if full else RANDOM)]
    networks += [{"kind": "random", "layers": 4, "density": d} for d in (MORE_DENSITIES if full else ())]
    networks += [{"kind": "toy", "layers": n, "density": 0.05} for n in (MORE_TOY if full else TOY)]
    return [job | {"seed": s, "processor": cpu_name()} for job in networks for s in SEEDS]


def compute(job: Job) -> dict[str, Any]:
    """Time EGO's order, the layerwise one sorted and not, and the libraries."""
    network = make_network(job)
    orders = {
        "layerwise": ew.order(network, "layerwise", memory=100).edges,
        "unsorted": unsorted(network, job["seed"]),
    }
    if job["layers"] <= max(MORE_RANDOM):
        orders["ego"] = ew.order(network, "ego", memory=100).edges
    ways = {f"{name}, {how}": Way(order, how) for name, order in orders.items() for how in READINGS}
    peers = () if job["kind"] == "toy" else PEERS  # neurons without connections are in no layer of theirs
    return {str(batch): times_of(network, ways, peers, batch, job["seed"]) for batch in BATCHES}


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row for each number of vectors: microseconds, and million connections a second (each counted once a vector)."""
    return [
        {**job, "density": job.get("density"), "vectors": batch, "us": r["us"], "A/A": r["aa"],
         **{name: r["connections"] * batch / us for name, us in r["us"].items()}}
        for batch, r in ((b, result[str(b)]) for b in BATCHES)
    ]  # fmt: skip


OWN = tuple(f"{order}, {how}" for order in ("layerwise", "unsorted", "ego") for how in READINGS)
SPEED = "million connections a second"
FIGURES = [
    Figure(
        "ego-clock", "kamatar-2023", "3, 4a, 5a, 6a, 7a",
        "Figures 3 to 7: connections a second on the processor at hand",
        "1024 wide (toy: 16), one core, thread CPU time, 11 shuffled rounds. Another processor and kernel than the "
        "paper's. How many vectors run at once and whether sums stay in registers is not printed: both are timed. "
        "EON's own order is not timed: the paper calls its result no difference.",
        jobs, compute, rows,
        (*(Chart(number, x, names, SPEED, panel="vectors", where={"kind": kind, **where}, log="y")
           for number, x, kind, names, where in (
               ("3", "layers", "radix", (*PEERS, "layerwise, runs", "layerwise, literal"), {}),
               ("4a", "layers", "radix", OWN, {}), ("5a", "layers", "random", OWN, {"density": 0.05}),
               ("6a", "density", "random", OWN, {"layers": 4}), ("7a", "layers", "toy", OWN, {}))),
         Table("Million connections a second", ("kind", "layers", "density", "vectors"), (*PEERS, *OWN, "A/A"))),
        (1.32, 2.52), alone=True,
    )
]  # fmt: skip
