"""Least I/Os of tiny networks against all topological orders, and against what searches find."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

from cython_ext.edges.exact import least_order
from cython_ext.iomodel.counts import POLICY_CODES
from hwmodel.fastmemory.iomodel import count_io
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


def least(network: Network, memory: int, policy: str, bound: int) -> tuple[np.ndarray | None, bool]:
    ends = network.sources.astype(np.int32), network.targets.astype(np.int32)
    outputs = network.is_output.view(np.uint8)
    return least_order(*ends, network.n_neurons, outputs, memory, POLICY_CODES[policy], bound, STATES)


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@given(network=dags(max_neurons=7, max_connections=6), memory=st.integers(3, 5))
@settings(deadline=None, max_examples=40)
def test_no_order_has_fewer(policy: str, network: Network, memory: int) -> None:
    orders = topological_orders(network)
    best = min(count_io(network, np.array(order), memory=memory, policy=policy).total for order in orders)
    extra = best - network.n_connections
    edges, proved = least(network, memory, policy, 1000)
    assert proved and edges is not None
    assert count_io(network, edges, memory=memory, policy=policy).total == best
    assert least(network, memory, policy, extra) == (None, True)
    found, proved = least(network, memory, policy, extra + 1)
    assert proved and found is not None
