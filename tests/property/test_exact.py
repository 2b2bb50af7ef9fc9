"""Least I/Os of tiny networks against all topological orders, and against what searches find."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags
from oracles.theory import dense_layers

from cython_ext.edges.exact import least_order
from cython_ext.iomodel.counts import POLICY_CODES
from hwmodel.fastmemory.iomodel import count_io
from reorder.base import Task
from reorder.edges.bounds.bounds import theorem_1
from reorder.edges.search.small import least_total
from traces.networks.network import Network

STATES = 1 << 20


def topological_orders(network: Network) -> Iterator[list[int]]:
    waiting, order = network.in_degree.tolist(), []
    sources, targets = network.sources.tolist(), network.targets.tolist()

    def further() -> Iterator[list[int]]:
        if len(order) == len(sources):
            yield list(order)
        for edge in range(len(sources)):
            if edge not in order and not waiting[sources[edge]]:
                order.append(edge)
                waiting[targets[edge]] -= 1
                yield from further()
                waiting[targets[edge]] += 1
                order.pop()

    return further()


def least(
    network: Network, memory: int, policy: str, bound: int, states: int = STATES
) -> tuple[np.ndarray | None, bool, int]:
    ends = network.sources.astype(np.int32), network.targets.astype(np.int32)
    outputs = network.is_output.view(np.uint8)
    return least_order(*ends, network.n_neurons, outputs, memory, POLICY_CODES[policy], bound, states)


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@given(network=dags(max_neurons=7, max_connections=6), memory=st.integers(3, 5))
@settings(deadline=None, max_examples=40)
def test_no_order_has_fewer(policy: str, network: Network, memory: int) -> None:
    orders = topological_orders(network)
    best = min(count_io(network, np.array(order), memory=memory, policy=policy).total for order in orders)
    extra = best - network.n_connections
    edges, proved, floor = least(network, memory, policy, 1000)
    assert proved and edges is not None and floor == extra
    assert count_io(network, edges, memory=memory, policy=policy).total == best
    assert least(network, memory, policy, extra) == (None, True, extra)
    found, proved, floor = least(network, memory, policy, extra + 1)
    assert proved and found is not None and floor == extra


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@given(network=dags(max_neurons=12, max_connections=16), memory=st.integers(3, 5))
@settings(deadline=None, max_examples=30)
def test_what_is_proved_so_far_grows_up_to_the_optimum(policy: str, network: Network, memory: int) -> None:
    _, proved, best = least(network, memory, policy, 1000)
    floors = [least(network, memory, policy, 1000, states)[2] for states in (0, 1, 10, 100, 1000)]
    assert floors == sorted(floors) and (floors[-1] <= best or not proved)
    start = theorem_1(network) - network.n_connections
    assert all(start - len(network.outputs) <= floor for floor in floors[1:])


def test_networks_of_more_than_32_connections() -> None:
    """A network of two halves that share nothing: twice the optimum of one, whose bits lie in the other word."""
    half = dense_layers([4, 4])
    s, t = half.sources, half.targets
    both = [*s, *(s + 8)], [*t, *(t + 8)]
    twice = Network(*both, 16, [*range(4), *range(8, 12)], [*range(4, 8), *range(12, 16)])
    best = least(half, 6, "min", 1000)[2]
    edges, proved, floor = least(twice, 6, "min", 1000)
    assert proved and edges is not None and floor == 2 * best
    assert count_io(twice, edges, memory=6).total == 2 * (best + 16)
    wide = Network([0] * 55 + [1] * 5, [*range(2, 57), *range(2, 7)], 57, [0, 1], range(2, 57))
    for policy in ("min", "lru", "rr"):
        edges, proved, floor = least(wide, 5, policy, 1000, 2000)
        assert floor >= theorem_1(wide) - 60
    assert least_total(wide, Task(5), count_io(wide, memory=5).total) <= count_io(wide, memory=5).total
    assert least_total(wide, Task(5, "lru", "pin_both"), 1000) == 0, "not the same evictions"
