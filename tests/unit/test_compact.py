"""Compact Growth: yes with an order, no with a proof, or unknown."""

from pathlib import Path

from oracles.least_io_oracle import least_io
from oracles.reference_networks import reorder_network
from oracles.theory import chains, dense_layers

from hwmodel.fastmemory.iomodel import compact_growth_memory, io_bounds
from reorder.edges.bounds.compact import compact_growth


def test_yes_comes_with_an_order() -> None:
    for network, memory in ((chains(6, 3), 6), (dense_layers([3, 3, 2]), 7)):
        found = compact_growth(network, memory)
        assert found.answer == "yes" and found.ordering is not None
        assert compact_growth_memory(network, found.ordering) <= memory


def test_no_comes_with_a_proof() -> None:
    network = dense_layers([3, 3])
    found = compact_growth(network, 4)  # K(3,3) is a core of degree 3
    assert found.answer == "no" and "degrees at least 3" in found.reason
    assert least_io(network, 4) > io_bounds(network).lower_total


def test_the_grown_network_at_its_memory(reference: Path) -> None:
    network, _ = reorder_network(reference, "compact_growth_mg300")
    assert compact_growth(network, 300).answer == "yes"
    assert compact_growth(network, 3).answer == "no"
