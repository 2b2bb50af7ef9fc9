"""Orders in which connections wait for others of their target while both of their values stay in fast memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.moves import io_moves
from oracles.random_networks import dags

from cython_ext.iomodel.counts import LOAD
from hwmodel.fastmemory.iomodel import count_io
from reorder.base import check_order
from reorder.edges.machine.links import gathered, windows
from reorder.edges.machine.surrogate import MachineShape
from reorder.edges.search.objectives import count_runs
from reorder.order import order
from traces.generators.networks import random_layered
from traces.networks.network import Network


def slow_windows(network: Network, edges: np.ndarray, shape: MachineShape) -> list[tuple[int, int]]:
    """Walk the order: where the stay of each value begins and ends, and when it is complete."""
    given = {"memory": shape.memory, "policy": shape.policy, "pinning": shape.pinning}
    moves = io_moves(network, edges, **given)
    loads = {(int(s), int(x)) for s, x, k in zip(moves.step, moves.neuron, moves.kind, strict=True) if k == LOAD}
    ends = list(zip(network.sources[edges].tolist(), network.targets[edges].tolist(), strict=True))
    stays: dict[int, list[list[int]]] = {}
    complete = dict.fromkeys(range(network.n_neurons), -1)
    for k, (source, target) in enumerate(ends):
        complete[target] = k
        for x in (source, target):
            if x not in stays or (k, x) in loads:
                stays.setdefault(x, []).append([k, k])
            stays[x][-1][1] = k
    found = []
    for k, (source, target) in enumerate(ends):
        (a, b), (c, d) = (next(stay for stay in stays[x] if stay[0] <= k <= stay[1]) for x in (source, target))
        found.append((max(a, c, complete[source] + 1), min(b, d, complete[target])))
    return found


def most_apart(stretches: list[tuple[int, int]]) -> int:
    """Return the most stretches of which no two meet, by trying: the least places that meet all are as many."""
    best = {0: 0}
    for begin, end in sorted(stretches, key=lambda one: one[1]):
        count = 1 + max(n for last, n in best.items() if last <= begin)
        best[end + 1] = max(best.get(end + 1, 0), count)
    return max(best.values())


@given(dags(), st.sampled_from(["targets", "sources"]), st.sampled_from(["min", "lru", "rr"]), st.integers(3, 8))
@settings(deadline=None)
def test_as_few_stretches_as_the_stays_allow(network: Network, by: str, policy: str, memory: int) -> None:
    shape = MachineShape(memory, policy, "literal")
    own = network.targets if by == "targets" else network.sources
    for method in ("random-topological", "two-optimal", "by-source"):
        edges = order(network, method, memory=memory).edges
        first, last = windows(network, edges, shape)
        told = list(zip(first.tolist(), last.tolist(), strict=True))
        assert told == slow_windows(network, edges, shape)
        assert all(a <= k <= b for k, (a, b) in enumerate(told))
        found = gathered(network, edges, shape, by)
        check_order(network, found)
        least = sum(most_apart([w for w, x in zip(told, own[edges], strict=True) if x == n]) for n in set(own.tolist()))
        assert count_runs(own[found]) <= least
        if policy == "min":
            loads = [play_reads(network, each, memory) for each in (edges, found)]
            assert loads[1] <= loads[0]


def play_reads(network: Network, edges: np.ndarray, memory: int) -> int:
    return int(count_io(network, edges, memory=memory, policy="min").reads_neurons)


@pytest.mark.parametrize("seed", range(3))
def test_runs_become_fewer_where_sources_stream(seed: int) -> None:
    network = random_layered(3, 100, 0.1, seed=seed)
    shape = MachineShape(30, "min", "literal")
    edges = order(network, "tiles", memory=30).edges
    found = gathered(network, edges, shape, "targets")
    assert count_runs(network.targets[found]) < 0.95 * count_runs(network.targets[edges])
