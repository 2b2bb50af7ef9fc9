"""Orders that trade I/Os against ones and toggles: a search over weights, and what remains undominated.

For each weighting the search starts from each given edge ordering and takes over, run by run, the permutation of the
run that lowers ``w_io * I/Os + w_ones * ones + w_toggles * toggles``: one made for ones, one made for toggles (each by
order_tuples' methods). Stretches that do not pay are halved, as in `order_both`. Runs themselves never change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.base import Progress, Task, check_order
from reorder.joint.inside_runs import run_problem
from reorder.joint.io_neutral import Counter, changed_stretches
from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.cost import field_edges, field_ones
from reorder.tuples.groups import order_all
from reorder.tuples.tuple_problem import CHAINS, Coding, Int64Array
from traces.base.errors import InputError
from traces.networks.network import Network

WEIGHTS = (
    (1.0, 0.0, 0.0),
    (1.0, 0.1, 0.0),
    (1.0, 1.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.0, 1.0, 1.0),
    (0.0, 0.0, 1.0),
    (1.0, 0.0, 0.1),
)


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """One undominated order: where it started, its weights (I/Os, ones, toggles) and its three costs."""

    edges: Int64Array
    start: str
    weights: tuple[float, float, float]
    io: int
    ones: int
    toggles: int

    @property
    def costs(self) -> tuple[int, int, int]:
        """I/Os, ones and toggles."""
        return self.io, self.ones, self.toggles


def undominated(points: Sequence[Tradeoff]) -> list[Tradeoff]:
    """Return the points that no other equals or beats in all three costs, by I/Os; of equal ones the first."""
    kept: list[Tradeoff] = []
    for point in sorted(points, key=lambda p: p.costs):
        if not any(all(a <= b for a, b in zip(k.costs, point.costs, strict=True)) for k in kept):
            kept.append(point)
    return kept


def pareto_orders(
    network: Network,
    orders: Mapping[str, npt.ArrayLike],
    *,
    memory: int,
    policy: str = "min",
    pinning: str = "literal",
    value_format: str,
    encoder: str = "base-xor+dbi-dc",
    block_bytes: int = 32,
    bus_bytes: int | None = None,
    weights: Sequence[tuple[float, float, float]] = WEIGHTS,
    method: str = "local-search",
    rounds: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
    **parameters: Any,
) -> list[Tradeoff]:
    """Return the undominated orders found, from lowest I/Os to highest.

    orders: name -> edge ordering to start from. weights: (I/Os, ones, toggles) of each search, none negative.
    rounds: evaluations per search and start. ones and toggles are those of the weights and source ids as separate
    arrays under `encoder`, toggles with each array alone on `bus_bytes` lanes (default: the width of its elements).
    """
    if not orders:
        raise InputError("a Pareto search needs at least one edge ordering to start from")
    for given in weights:
        if len(given) != 3 or min(given) < 0 or not np.isfinite(given).all() or max(given) == 0:
            raise InputError(f"weights {given!r}: three numbers of at least 0 (I/Os, ones, toggles), not all 0")
    own = TUPLE_ORDERS[method].make_parameters(parameters)
    count, n = Counter(network, Task(memory, policy, pinning)), network.n_connections
    kind: dict[str, Any] = dict(value_format=value_format, block_bytes=block_bytes, bus_bytes=bus_bytes)

    def solve(base: Int64Array, bounds: Int64Array, metric: str) -> Int64Array:
        chain = encoder if metric == "ones" else "dbi-dc" if CHAINS.get(encoder, Coding()).dbi else "raw"
        problem = run_problem(network, base, bounds, encoder=chain, metric=metric, **kind)
        return base[order_all(problem, method, seed=seed, parameters=own)]

    def costs(edges: Int64Array) -> tuple[int, int, int]:
        whole, still = run_problem(network, edges, np.array([0, n]), encoder=encoder, **kind), np.arange(n)
        ones = sum(field_ones(whole, f, still) for f in whole.fields)
        return n + sum(count(edges)), ones, sum(field_edges(whole, f, still)[0] for f in whole.fields)

    points, done = [], 0
    for name, edges in orders.items():
        start = check_order(network, edges)
        bounds = np.append(np.flatnonzero(np.diff(network.targets[start], prepend=-1)), n).astype(np.int64)
        candidates = [solve(start, bounds, metric) for metric in ("ones", "toggles")]
        before = costs(start)
        points.append(Tradeoff(start, name, (0.0, 0.0, 0.0), *before))
        for weight in weights:
            current, best, left = start, before, rounds
            for candidate in candidates:
                open_ = [changed_stretches(current, candidate, bounds)]
                while open_ and left > 0:
                    part = open_.pop()
                    if not part:
                        continue
                    trial = current.copy()
                    for k in part:
                        trial[bounds[k] : bounds[k + 1]] = candidate[bounds[k] : bounds[k + 1]]
                    trial_costs = costs(trial)
                    left -= 1
                    if np.dot(weight, trial_costs) < np.dot(weight, best):
                        current, best = trial, trial_costs
                    elif len(part) > 1:
                        open_ += [part[len(part) // 2 :], part[: len(part) // 2]]
            points.append(Tradeoff(check_order(network, current), name, weight, *best))
            done += 1
            if progress:
                progress(done, len(orders) * len(weights), name)
    return undominated(points)
