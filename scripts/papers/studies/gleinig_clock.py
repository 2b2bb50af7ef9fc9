"""Gleinig et al. 2023, Figures 7 and 8: time of inference of 128 vectors on the processor at hand.

The paper's routine is CSRMM of MKL 2021.3.0: mkl_scsrmm, column-major and one-based; handles made once are beside it.
How the paper's program treats partial sums is not printed, so both readings are timed: every connection loads and
stores its target (Algorithm 1 as printed), or consecutive connections of one target keep the sum in registers (runs).
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import edgewatt as ew
from hwmodel.processor.limits import cpu_name
from papers.figure import Chart, Figure, Job, Row, Table
from papers.studies.ego_clock import Way, times_of
from papers.studies.gleinig_io import LAYERED, network_of

VARIES = {"7a": "density", "7b": "n_layers", "7c": "width", "8": "density"}
POINTS = {"7a": (0.001, 0.01, 0.1), "7b": (2,), "7c": (250,), "8": (0.01, 0.1)}
MORE = {"7a": (0.001, 0.01, 0.1, 0.5, 1.0), "7b": (2, 8), "7c": (125, 250, 1000), "8": (0.01, 0.05, 0.1)}
SEEDS = (1, 2, 3)
MEMORY, BATCH, ITERATIONS = 100, 128, 1000
PEERS = ("mkl-scsrmm", "mkl")
READINGS = ("runs", "literal")


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a network; MKL's two threads at the density of the paper's 45 times and its BERT's. More with `full`."""
    planned: list[dict[str, Any]] = []
    for panel, xs in (MORE if full else POINTS).items():
        base = {"kind": "bert-shape"} if panel == "8" else LAYERED
        for x in xs:
            threads = (1, 2) if x in (0.001, 0.1) and panel in ("7a", "8") else (1,)
            planned += [{"panel": panel, **base, VARIES[panel]: x, "threads": n} for n in threads]
    effort = {"iterations": ITERATIONS * (10 if full else 1), "processor": cpu_name()}
    return [{**job, **effort, "seed": s} for job in planned for s in SEEDS[: 1 if job["panel"] == "8" else 3]]


def compute(job: Job) -> dict[str, Any]:
    """Time the two orders in both readings, the fastest order, and MKL; with threads in a child."""
    if job["threads"] == 1:
        return timed(job)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _threads, (job["threads"],)) as child:
        return child.submit(timed, job).result()


def _threads(count: int) -> None:
    """Let MKL have threads: it asks once, before its first product."""
    os.environ |= {"MKL_THREADING_LAYER": "INTEL", "MKL_NUM_THREADS": str(count)}


def timed(job: Job) -> dict[str, Any]:
    """Time a job in this process."""
    network, seed = network_of(job), job["seed"]
    options: dict[str, Any] = {"memory": MEMORY, "policy": "min", "iterations": job["iterations"], "seed": seed}
    orders = {
        "two-optimal": ew.order(network, "two-optimal", memory=MEMORY),
        "reordered": ew.order(network, "connection-reordering", **options),
    }
    ways = {f"{name}, {how}": Way(order, how) for name, order in orders.items() for how in READINGS}
    if job["threads"] == 1:
        fastest = ew.orders.fastest_order(network, batch=BATCH)
        ways["fastest"] = Way(fastest.ordering, "runs", fastest.lanes)
    return times_of(network, ways, PEERS, BATCH, seed, threads=job["threads"])


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    return [{**job, **result["us"], "A/A": result["aa"], "simd": result["simd"], "date": result["date"]}]


TIMES = (*PEERS, *(f"{name}, {how}" for how in READINGS for name in ("two-optimal", "reordered")), "fastest")
FIGURES = [
    Figure(
        "gleinig-clock", "gleinig-2023", "7, 8", "Figures 7 and 8: time of inference on the processor at hand",
        "128 vectors, 11 shuffled rounds. One thread: CPU time on one core. Two: MKL has two threads, ours one, least "
        "time on the clock. Another processor and kernel than the paper's; Figure 8's network is random, of BERT's "
        "shape.",
        jobs, compute, rows,
        (*(Chart(panel, x, TIMES, "microseconds", where={"panel": panel}, series="threads", log="xy")
           for panel, x in VARIES.items()),
         Table("Microseconds for 128 vectors", ("panel", "density", "n_layers", "width", "threads"),
               (*TIMES, "A/A", "processor", "simd", "date"))),
        (2.2, 7.3), alone=True, version=2,
    )
]  # fmt: skip
