"""Magnitude pruning keeps the largest weights, over all or in every layer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from traces.base.errors import InputError
from traces.generators.networks import uniform_layers
from traces.networks.network import Network
from traces.networks.prune import prune_magnitude


def test_by_hand() -> None:
    network = Network([0, 0, 1, 1], [2, 3, 2, 3], 4, inputs=[0, 1], outputs=[2, 3], weights=[1, -4, 3, -3])
    kept = prune_magnitude(network, n_connections=2)
    assert kept.weights.tolist() == [-4, 3]  # type: ignore[union-attr]
    assert (kept.sources.tolist(), kept.targets.tolist(), kept.n_neurons) == ([0, 1], [3, 2], 4)
    assert prune_magnitude(network, density=0.75).n_connections == 3


@settings(max_examples=100, deadline=None)
@given(networks(), st.data())
def test_no_dropped_weight_is_larger_than_a_kept_one(network: Network, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, network.n_connections))
    kept = prune_magnitude(network, n_connections=n)
    assert kept.n_connections == n
    left = set(zip(kept.sources.tolist(), kept.targets.tolist(), strict=True))
    pairs = zip(network.sources.tolist(), network.targets.tolist(), strict=True)
    stays = np.array([pair in left for pair in pairs])
    magnitude = np.abs(network.weights)  # type: ignore[arg-type]
    assert stays.sum() == n and np.array_equal(network.weights[stays], kept.weights)  # type: ignore[index, arg-type]
    assert magnitude[~stays].max(initial=0) <= magnitude[stays].min()


@pytest.mark.parametrize("keep", [3, 4, 10, 57, 300])
def test_layer_scope_keeps_the_same_share_of_each_layer(keep: int) -> None:
    network = uniform_layers([10, 20, 5, 2], 1.0, seed=3)
    counts = np.bincount(network.layer)  # type: ignore[arg-type]
    kept = prune_magnitude(network, n_connections=keep, scope="layer")
    got = np.bincount(kept.layer, minlength=3)  # type: ignore[arg-type]
    assert got.sum() == keep and got.min() >= 1
    assert (np.abs(got - counts * keep / counts.sum()) <= 1).all()
    for number in range(3):
        all_of_it = np.sort(np.abs(network.weights[network.layer == number]))[::-1]  # type: ignore[index]
        its = np.sort(np.abs(kept.weights[kept.layer == number]))[::-1]  # type: ignore[index]
        assert np.array_equal(its, all_of_it[: got[number]])


def test_refusals() -> None:
    network = uniform_layers([4, 4, 4], 0.5)
    for given_arguments, message in (
        ({}, "give either density or n_connections"),
        ({"density": 0.5, "n_connections": 3}, "give either"),
        ({"density": 0.0}, "above 0 and at most 1"),
        ({"n_connections": 17}, "17 connections cannot be kept of 16"),
        ({"density": 0.5, "scope": "layers"}, r"unknown scope 'layers' \(did you mean 'layer'"),
        ({"n_connections": 1, "scope": "layer"}, "cannot be shared by 2 layers"),
    ):
        with pytest.raises(InputError, match=message):
            prune_magnitude(network, **given_arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no weights"):
        prune_magnitude(network.with_(weights=None), density=0.5)
    with pytest.raises(InputError, match="is not layered"):
        prune_magnitude(network.with_(layer=None), density=0.5, scope="layer")
