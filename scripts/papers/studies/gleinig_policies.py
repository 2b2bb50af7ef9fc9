"""Gleinig et al. 2023, Figure 4: RR against LRU, where the connection is an entry of the same memory.

Algorithm 1 of the paper keeps the connection in a place of its own. A cache that is told of every access sees three:
the connection, its source and its target. Counted here is that other reading: M values in one set, replaced by LRU or
in turn.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

import edgewatt as ew
from papers.study import STUDIES, Done, Job, Study, StudyTable
from traces.generators.networks import random_layered

MEMORY = 100
SEEDS = (1, 2, 3, 4, 5)
ITERATIONS = 10_000


def jobs(full: bool) -> list[dict[str, Any]]:
    """A job a network; 100,000 iterations with `full`."""
    return [{"seed": seed, "iterations": 10 * ITERATIONS if full else ITERATIONS} for seed in SEEDS]


def compute(job: Job) -> dict[str, Any]:
    """Search under each policy of the paper's model; count the orders in both readings."""
    network = random_layered(4, 500, 0.1, job["seed"])
    totals: dict[str, Any] = {}
    for policy in ("rr", "lru"):
        options: dict[str, Any] = {"memory": MEMORY, "policy": policy}
        before = ew.order(network, "two-optimal", **options).edges
        after = ew.order(
            network, "connection-reordering", iterations=job["iterations"], seed=job["seed"], **options
        ).edges
        totals[policy] = {
            name: {
                "model": ew.count_io(network, edges, **options).total,
                "three accesses": _third(network, edges, policy),
            }
            for name, edges in (("before", before), ("after", after))
        }
    return totals


def _third(network: Any, edges: Any, policy: str) -> int:
    n = len(edges)
    word = 4
    target = network.targets[edges]
    entries = np.stack([network.n_neurons + np.arange(n), network.sources[edges], target, target], axis=1)
    op = np.tile(np.array([0, 0, 0, 1], np.uint8), n)  # the target's place is read, then written
    sizes = np.full(4 * n, word)
    address = (entries.reshape(-1) * word).astype(np.uint64)
    cache = ew.simulate_cache(op, address, sizes, size_bytes=MEMORY * word, line_bytes=word, ways=MEMORY, policy=policy)
    return int(cache.load_line_misses + cache.store_line_misses + cache.writebacks + cache.dirty_at_end)


def tables(done: Done) -> list[StudyTable]:
    """Return the medians of both readings."""
    rows = []
    for reading in ("model", "three accesses"):
        for name in ("before", "after"):
            counts = {p: [r[p][name][reading] for _, r in done] for p in ("rr", "lru")}
            rows.append((reading, name, *(f"{median(c):,.0f} ({min(c):,} to {max(c):,})" for c in counts.values()),
                         _apart(done, name, reading)))  # fmt: skip
    return [
        StudyTable("I/Os under RR and LRU, two readings", ("reading", "search", "RR", "LRU", "RR against LRU"), rows)
    ]


def _apart(done: Done, name: str, reading: str) -> str:
    return f"{100 * (median(r['rr'][name][reading] / r['lru'][name][reading] for _, r in done) - 1):+.1f} %"


def _alike(done: Done) -> tuple[str, str]:
    if not done:
        return "not run", ""
    words = (
        f"{reading}: RR {_apart(done, 'after', reading)} against LRU after the search"
        for reading in ("model", "three accesses")
    )
    return "; ".join(words), ""


STUDIES.register("gleinig-policies", summary="Figure 4: RR against LRU in two readings of the memory")(
    Study(jobs, compute, tables, {"alike": _alike})
)
