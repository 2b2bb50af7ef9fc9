"""Tuple order inside an edge ordering: connections of a run change places, the runs themselves do not.

`order_jointly` does so without changing any I/O. An *I/O-neutral window* is a segment of consecutive connections of one
run during which nothing is loaded: all its sources and its target are resident. Nothing is evicted either, so what is
resident is the same at its start and its end however its connections are permuted. Under RR nothing else could change,
as hits leave no trace. Under MIN evictions look at next uses; a value whose next use lies in the window was never
evicted before it (it is a hit there), so every victim's next use lies beyond the window's other end or before its
start, and moving uses about inside the window changes no comparison. Hence reads, writes and their order stay exactly
as they are. Under LRU the recency of the window's sources changes, and with it perhaps a later victim: windows are kept
only if a recount shows no further I/O.

`spare_runs`: whole runs are permuted where a recount of the inference confirms that no read or write is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import cython_ext.iomodel.counts as iomodel
from reorder.base import Progress, check_order
from reorder.tuples.base import TUPLE_ORDERS
from reorder.tuples.cost import wire_cost
from reorder.tuples.groups import order_all
from reorder.tuples.matrix import id_field, stride_bounds, value_field
from reorder.tuples.tuple_problem import CHAINS, Coding, Int64Array, TupleProblem
from traces.networks.checks import checked_memory, policy_codes
from traces.networks.network import Network, weights_of
from traces.networks.processing import processing_arrays


def run_problem(
    network: Network,
    edges: Int64Array,
    bounds: Int64Array,
    *,
    value_format: str,
    id_bits: int | None = None,
    **kind: Any,
) -> TupleProblem:
    """The problem whose slot k is connection edges[k]: its weight, and its source counted from its layer's lowest."""
    weights = weights_of(network, "an order of tuples")
    ids = network.sources
    if network.layer is not None:
        low = np.full(int(network.layer.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(low, network.layer, ids)
        ids = ids - low[network.layer]
    width = id_bits or (16 if ids.max(initial=0) < 2**16 else 32)
    values, *_ = value_field(weights[edges], value_format)
    rows = np.cumsum(np.diff(network.targets[edges], prepend=-1) != 0) - 1
    return TupleProblem((values, id_field("source ids", ids[edges], width)), bounds, rows, **kind)


def order_run_tuples(
    network: Network,
    edges: npt.ArrayLike,
    *,
    stride: int | str,
    method: str = "local-search",
    value_format: str,
    encoder: str = "base-xor+dbi-dc",
    inverts: bool | None = None,
    block_bytes: int = 32,
    stride_restart: str = "row",
    objective: str = "joint",
    id_bits: int | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    **parameters: Any,
) -> Int64Array:
    """Return int64[W]: `edges` with the connections of each run reordered for few ones on the wires.

    A run is consecutive connections with one target. Sources of a run are complete before it starts, so the result is
    topological and has the same runs. stride: tuples that may be swapped (from the start of each run, or of the
    order with stride_restart='continuous'), or 'row' for whole runs.
    encoder: under an encoder whose ones no order changes (raw, dbi-dc), tuples are ordered for base-xor all the same.
    inverts: whether the bus inverts bytes (DBI); None: where `encoder` does, and where CHAINS does not know it.
    value_format: of weights. block_bytes, id_bits, objective ('joint', 'values', 'ids'), method (of TUPLE_ORDERS) and
    its parameters: as of `order_tuples`. Raises InputError for an order or an option that cannot be used.
    """
    order = check_order(network, edges)
    TUPLE_ORDERS[method]  # an unknown name is said before any work
    if inverts is None:
        inverts = CHAINS.get(encoder, Coding(dbi=True)).dbi
    runs = np.cumsum(np.diff(network.targets[order], prepend=-1) != 0)
    bounds = stride_bounds(runs, stride, stride_restart, rows_may_mix=False)
    coding = "base-xor+dbi-dc" if inverts else "base-xor"
    kind: dict[str, Any] = {"encoder": coding, "block_bytes": block_bytes, "objective": objective}
    problem = run_problem(network, order, bounds, value_format=value_format, id_bits=id_bits, **kind)
    own = TUPLE_ORDERS[method].make_parameters(parameters)
    positions = order_all(problem, method, seed=seed, parameters=own, workers=workers, progress=progress)
    return check_order(network, order[positions])


@dataclass(frozen=True)
class JointCosts:
    """I/Os (reads and writes of the I/O model) and ones (or what the metric counts) of one order."""

    reads: int
    writes: int
    ones: float

    @property
    def io(self) -> int:
        return self.reads + self.writes


@dataclass(frozen=True, eq=False)
class JointOrder:
    """Result of `order_jointly`.

    edges: int64[W], same runs, no more I/Os. before, after: costs of the given and the found order. free: what a tuple
    order that ignores I/Os reaches inside the same runs; still: what I/O-neutral windows alone reach.
    still_connections: connections in windows of two or more; windows: their number.
    whole_runs: runs permuted beyond their windows. recounts: how many were needed.
    """

    edges: Int64Array
    before: JointCosts
    after: JointCosts
    free: JointCosts
    still: JointCosts
    still_connections: int
    windows: int
    whole_runs: int
    recounts: int

    @property
    def share(self) -> float:
        """Saved ones over what the unrestricted tuple order saves (1 where that saves nothing)."""
        possible = self.before.ones - self.free.ones
        return (self.before.ones - self.after.ones) / possible if possible else 1.0


def io_neutral_windows(
    network: Network, edges: npt.ArrayLike, *, memory: int, policy: str = "min", pinning: str = "literal"
) -> Int64Array:
    """Return int64[K + 1] bounds that cut an order into I/O-neutral windows and single connections. O(W + N)."""
    sources, targets = processing_arrays(network, edges)
    codes = policy_codes(policy, pinning)
    outputs = network.is_output.astype(np.uint8)
    loads = iomodel.neuron_loads(sources, targets, network.n_neurons, outputs, checked_memory(memory), *codes)
    cut = np.ones(len(sources), bool)
    cut[1:] = (loads[1:] > 0) | (loads[:-1] > 0) | (np.diff(targets) != 0)
    return np.append(np.flatnonzero(cut), len(sources)).astype(np.int64)


def _accept(
    given: Int64Array,
    target: Int64Array,
    bounds: Int64Array,
    count: Callable[[Int64Array], tuple[int, int]],
    most: int,
    progress: Progress | None,
) -> tuple[Int64Array, int]:
    """Copy segments of `target` into `given`, halving those that would raise reads or writes.

    Segments are bounds[k]:bounds[k+1]; inside each, both orders hold the same connections. most: counts to spend.
    Returns the order and how many segments were copied.
    """
    current, limit, taken = given.copy(), count(given), 0
    changed = np.unique(np.searchsorted(bounds, np.flatnonzero(given != target), side="right") - 1).tolist()
    pending = [changed] if changed else []
    tried = 0
    while pending and tried < most:
        part = pending.pop()
        trial = current.copy()
        for k in part:
            trial[bounds[k] : bounds[k + 1]] = target[bounds[k] : bounds[k + 1]]
        counts = count(trial)
        tried += 1
        if counts[0] <= limit[0] and counts[1] <= limit[1]:
            current, limit = trial, counts
            taken += len(part)
        elif len(part) > 1:
            half = len(part) // 2
            pending += [part[half:], part[:half]]
        if progress and tried % 16 == 0:
            progress(tried, None, "recounts")
    return current, taken


def order_jointly(
    network: Network,
    edges: npt.ArrayLike,
    *,
    memory: int,
    policy: str = "min",
    pinning: str = "literal",
    value_format: str,
    encoder: str = "base-xor+dbi-dc",
    block_bytes: int = 32,
    metric: str = "ones",
    objective: str = "joint",
    id_bits: int | None = None,
    method: str = "local-search",
    spare_runs: bool = True,
    recounts: int = 2000,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    **parameters: Any,
) -> JointOrder:
    """Reorder connections inside the runs of an edge ordering for few ones, without one more read or write.

    memory, policy, pinning: of the I/O model. spare_runs: also permute whole runs where a recount allows it, with at
    most `recounts` counts of the whole inference; I/Os may then also fall. Without it they stay as they are; under
    LRU they may fall. edges: int[W]. metric: 'ones' or 'toggles'. value_format, encoder, block_bytes, objective,
    id_bits, method, parameters: see `order_run_tuples`. Returns a JointOrder. Raises InputError for an order or an
    option that cannot be used.
    """
    order = check_order(network, edges)
    own = TUPLE_ORDERS[method].make_parameters(parameters)
    codes, outputs = policy_codes(policy, pinning), network.is_output.astype(np.uint8)
    sources, targets = network.sources.astype(np.int32), network.targets.astype(np.int32)
    room, counted = checked_memory(memory), 0
    kind: dict[str, Any] = dict(
        value_format=value_format, id_bits=id_bits, encoder=encoder, block_bytes=block_bytes, metric=metric,
        objective=objective,
    )  # fmt: skip
    n = len(order)

    def count(edges: Int64Array) -> tuple[int, int]:
        """Return the reads and writes of an order."""
        nonlocal counted
        counted += 1
        row = iomodel.count(sources[edges], targets[edges], network.n_neurons, outputs, room, *codes)
        return int(row[0]), int(row[1] + row[2])

    def solve(base: Int64Array, bounds: Int64Array) -> Int64Array:
        problem = run_problem(network, base, bounds, **kind)
        return base[order_all(problem, method, seed=seed, parameters=own, workers=workers, progress=progress)]

    def costs(candidate: Int64Array) -> JointCosts:
        reads, writes = count(candidate)
        whole = run_problem(network, candidate, np.array([0, n]), **kind)
        return JointCosts(n + reads, writes, wire_cost(whole, np.arange(n)).cost)

    windows = io_neutral_windows(network, order, memory=memory, policy=policy, pinning=pinning)
    runs = np.append(np.flatnonzero(np.diff(network.targets[order], prepend=-1)), n).astype(np.int64)
    accepted, _ = _accept(order, solve(order, windows), windows, count, recounts, progress)
    still = costs(accepted)
    free = solve(order, runs)
    whole_runs = 0
    if spare_runs:
        accepted, whole_runs = _accept(accepted, free, runs, count, recounts, progress)
    lengths = np.diff(windows)
    return JointOrder(
        check_order(network, accepted),
        costs(order),
        costs(accepted),
        costs(free),
        still,
        int(lengths[lengths > 1].sum()),
        int((lengths > 1).sum()),
        whole_runs,
        counted,
    )
