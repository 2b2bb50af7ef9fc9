"""Gleinig et al. 2023, Figures 2 to 6: I/Os of orders in the model of the paper's Algorithm 1.

Networks are random and ours, the x values of the paper's axes are not in its text. One seed draws a network and drives
the searches. Figures share their common setting, so a job is found by itself, whatever figure asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import edgewatt as ew
from papers.figure import Chart, Figure, Job, Row, Table
from traces.generators.networks import bert_ffn, compact_growth, random_layered, uniform_layers
from traces.networks.network import Network

SEEDS = (1, 2, 3, 4, 5)
ITERATIONS, FULL_ITERATIONS = 10_000, 1_000_000  # the paper's (section VI-A1) with --full
MOVES = 200_000  # the limit of our search in the default selection
LAYERED: dict[str, Any] = {"kind": "layered", "n_layers": 4, "width": 500, "density": 0.1}
GROWN: dict[str, Any] = {"kind": "compact-growth", "neurons": 1000, "in_degree": 5}
BEFORE, THEIRS, OURS = "two-optimal", "connection-reordering", ("output-stationary", "auto", "early-outputs")
METHODS = (BEFORE, THEIRS, *OURS)
BELOW_GROWTH = {100: (50, 98, 100, 200), 300: (298, 300, 400), 500: (495, 498, 500)}


def network_of(job: Job) -> Network:
    """Draw the network of a job."""
    seed = job["seed"]
    if job["kind"] == "compact-growth":
        return compact_growth(job["m_g"], job["neurons"], job["in_degree"], seed=seed)
    if job["kind"] == "bert-shape":
        return bert_ffn(job["density"], seed)
    if job["density"] > 0.5:  # where the generator of the paper's Appendix A ends
        return uniform_layers([job["width"]] * job["n_layers"] + [1], job["density"], seed)
    return random_layered(job["n_layers"], job["width"], job["density"], seed)


def compute(job: Job) -> dict[str, Any]:
    """Count every order, and the bound of Theorem 1. moves: of our search, None without limit, 0 to leave it out."""
    network, seed = network_of(job), job["seed"]
    options: dict[str, Any] = {"memory": job["memory"], "policy": job["policy"]}
    early = ("early-outputs",) if job["kind"] == "compact-growth" else ()
    orders = {name: ew.order(network, name, **options) for name in (BEFORE, "output-stationary", *early)}
    orders[THEIRS] = ew.order(network, THEIRS, iterations=job["iterations"], seed=seed, **options)
    if job["moves"] != 0:
        limit = {} if job["moves"] is None else {"moves": job["moves"]}
        orders["auto"] = ew.order(network, "auto", seed=seed, **limit, **options)
    counts = {name: ew.count_io(network, order, **options).total for name, order in orders.items()}
    if job["policy"] in ("rr", "lru") and job["kind"] == "layered":
        for name in (BEFORE, THEIRS):
            entries = three_accesses(network, orders[name].edges, job["policy"], job["memory"])
            counts[f"{name}, three accesses"] = entries
    curve = [[int(work), int(value)] for work, _, value in orders[THEIRS].curve]
    return {"bound": ew.io_bounds(network).lower_total, "curve": curve, **counts}


def three_accesses(network: Network, edges: Any, policy: str, memory: int) -> int:
    """I/Os of a cache of `memory` values that sees connection, source and target as accesses of one set.

    Algorithm 1 keeps the connection in a place of its own and never evicts source and target of the step.
    """
    n, word = len(edges), 4
    target = network.targets[edges]
    entries = np.stack([network.n_neurons + np.arange(n), network.sources[edges], target, target], axis=1)
    op = np.tile(np.array([0, 0, 0, 1], np.uint8), n)  # the target's place is read, then written
    address = (entries.reshape(-1) * word).astype(np.uint64)
    cache = ew.simulate_cache(
        op, address, np.full(4 * n, word), size_bytes=memory * word, line_bytes=word, ways=memory, policy=policy
    )
    return int(cache.load_line_misses + cache.store_line_misses + cache.writebacks + cache.dirty_at_end)


def rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    return [{**job, BEFORE: result[BEFORE], **{key: value for key, value in result.items() if key != "curve"}}]


def curve_rows(job: Job, result: Mapping[str, Any]) -> list[Row]:
    """A row for each look at the search; orders without iterations are level."""
    level = rows(job, result)[0]
    return [{**level, "iteration": max(1, at), THEIRS: value} for at, value in result["curve"]]


def _jobs(points: list[dict[str, Any]], more: list[dict[str, Any]]) -> Any:
    """Each point for every seed; with `full` all of them and long searches."""

    def jobs(full: bool) -> list[dict[str, Any]]:
        effort = {"iterations": FULL_ITERATIONS, "moves": None} if full else {"iterations": ITERATIONS, "moves": MOVES}
        usual = {"memory": 100, "policy": "min", **effort}
        wanted = [*points, *more] if full else points
        found = [usual | p | ({"moves": None} if full else {}) | {"seed": s} for p in wanted for s in SEEDS]
        return [job for job in found if job.get("density") != 1.0 or job["seed"] <= 3]  # one network for every seed

    return jobs


def _along(key: str, default: tuple[Any, ...], more: tuple[Any, ...], base: Mapping[str, Any] = LAYERED) -> Any:
    return _jobs(*([{**base, key: x} for x in xs] for xs in (default, more)))


def _figure(
    number: str, title: str, jobs: Any, chart: Chart, seconds: tuple[float, float], reading: str = ""
) -> Figure:
    reading = reading or "The x values of the paper's axis are not in its text; these are ours."
    numbers = Table("I/Os", tuple(filter(None, (chart.panel, chart.x))), ("bound", *chart.y))
    shows = (chart, numbers) if chart.over else (chart,)
    return Figure(f"gleinig-{number}", "gleinig-2023", number, f"Figure {number}: {title}", reading, jobs, compute,
                  rows if chart.over else curve_rows, shows, seconds, store="gleinig-io")  # fmt: skip


def _chart(number: str, x: str, log: str = "", panel: str = "") -> Chart:
    return Chart(number, x, METHODS, "I/Os ÷ lower bound", panel=panel, over="bound", log=log)


GROWTH = [{**GROWN, "m_g": m_g, "memory": m} for m_g, sizes in BELOW_GROWTH.items() for m in sizes]
FIGURES = [
    _figure("2a", "I/Os against width", _along("width", (100, 300, 500), (750,)), _chart("2a", "width"), (2, 170)),
    _figure("2b", "I/Os against depth", _along("n_layers", (2, 4), (8,)), _chart("2b", "n_layers"), (2.7, 230)),
    _figure("2c", "I/Os against density", _along("density", (0.001, 0.01, 0.1, 1.0), (0.005, 0.05, 0.2)),
            _chart("2c", "density", "x"), (5.8, 315),
            "The x values of the paper's axis are not in its text; these are ours. The generator of its Appendix A "
            "ends at half of all connections; the dense end is the fully connected network."),
    _figure("2d", "I/Os against fast memory", _along("memory", (10, 100), (50, 200, 400)), _chart("2d", "memory", "x"),
            (4.6, 230)),
    _figure("3", "networks of Compact Growth at other memory sizes", _jobs(GROWTH, []), _chart("3", "memory", "",
    "m_g"),
            (0.4, 38),
            "Each grown neuron has 5 connections as in the paper's Appendix B; its caption says 4. The two-optimal "
            "order groups the targets in the order of their growth, which is the growth's own order but inside each "
            "target."),
    _figure("4", "I/Os over annealing iterations, by eviction policy",
            _jobs([{**LAYERED, "policy": p, "moves": MOVES if p == "min" else 0} for p in ("rr", "lru", "min")], []),
            Chart("4", "iteration", (THEIRS, BEFORE, "output-stationary", "auto", "bound"), "I/Os", panel="policy",
                  log="x"),
            (1.5, 130), "Drawn is the best order so far; the paper does not say whether it draws the best or the "
                        "current."),
    _figure("5", "I/Os against fast memory, sparser and shallower",
            _along("memory", (100, 500, 600, 800), (10, 25, 50, 150, 200, 250, 300, 350, 400, 450),
                   {**LAYERED, "n_layers": 3, "density": 0.01}), _chart("5", "memory"), (0.7, 57)),
    _figure("6", "a random network of the shape of BERT's feed-forward block (not BERT)",
            _jobs([{"kind": "bert-shape", "density": 0.002}],
                  [{"kind": "bert-shape", "density": d, "policy": p} for p in ("min", "lru", "rr")
                   for d in (0.002, 0.005, 0.01) if (p, d) != ("min", 0.002)]),
            _chart("6", "density", "x", "policy"), (2.1, 106),
            "The paper prunes BERT-large's trained weights by magnitude. They are not ours to ship, so connections are "
            "drawn uniformly, 1024-4096-1024: it says nothing about BERT's own pattern."),
]  # fmt: skip
