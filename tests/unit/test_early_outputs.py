"""early-outputs: legal on any network, and minimal a little below the memory a network was grown for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.edges.search.base_orders import own_is_topological, two_optimal_order
from reorder.order import order
from traces.generators.networks import compact_growth, random_layered
from traces.networks.network import Network


@pytest.mark.parametrize(("seed", "memory"), [(1, 498), (2, 495)])
def test_a_grown_network_is_minimal_below_its_memory(seed: int, memory: int) -> None:
    network = compact_growth(500, 1000, 5, seed=seed)
    least = io_bounds(network).lower_total
    assert count_io(network, memory=memory).total > least  # the growth's own order is not
    assert count_io(network, order(network, "early-outputs", memory=memory), memory=memory).total == least
    assert count_io(network, order(network, "auto", memory=memory), memory=memory).total == least


def test_a_single_output_is_added_up_on_the_way() -> None:
    network = random_layered(3, 60, 0.2, seed=4)
    counts = [
        count_io(network, order(network, m, memory=50), memory=50).total for m in ("two-optimal", "early-outputs")
    ]
    assert counts[1] < counts[0]


@settings(max_examples=60, deadline=None)
@given(dags(), st.booleans())
def test_each_connection_into_an_output_follows_what_its_source_is_needed_for(
    network: Network, backwards: bool
) -> None:
    network = network.in_order(np.arange(network.n_connections)[:: -1 if backwards else 1])
    base = range(network.n_connections) if own_is_topological(network) else two_optimal_order(network).tolist()
    s, t = network.sources.tolist(), network.targets.tolist()
    moved = [bool(network.is_output[b]) and b not in s for b in t]

    def due(edge: int) -> int:
        needed = [
            k for k, other in enumerate(base) if t[other] == s[edge] or (s[other] == s[edge] and not moved[other])
        ]
        return 2 * max(needed, default=-1) + 1

    keys = [due(edge) if moved[edge] else 2 * k for k, edge in enumerate(base)]
    expected = [base[k] for k in sorted(range(len(keys)), key=keys.__getitem__)]
    assert order(network, "early-outputs", memory=3).edges.tolist() == expected


def test_an_output_that_others_read_stays() -> None:
    network = Network([0, 1, 2, 0], [2, 2, 3, 3], 4, inputs=np.array([0, 1]), outputs=np.array([2, 3]))
    assert order(network, "early-outputs", memory=4).edges.tolist() == [0, 3, 1, 2]
