"""long-runs: legal on any network, tiles and blocks as they are asked for, runs that are alike side by side."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.near_oracle import near_oracle

from cython_ext.edges.runs import near_runs
from hwmodel.processor.inference import compile_inference
from reorder.order import order
from traces.base.errors import InputError
from traces.generators.networks import random_layered, uniform_layers
from traces.generators.radixnet import radix_net
from traces.networks.network import Network
from traces.networks.processing import processing_arrays


def runs_of(network: Network, **parameters: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources, target and length of each run."""
    sources, targets = processing_arrays(network, order(network, "long-runs", memory=10, **parameters))
    starts = np.flatnonzero(np.diff(targets, prepend=-1))
    return sources, targets[starts], np.diff(np.append(starts, len(targets)))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 5), st.integers(0, 2**16), st.none() | st.integers(1, 12), st.none() | st.integers(1, 12),
    st.booleans(), st.none() | st.integers(1, 12), st.booleans(),
)  # fmt: skip
def test_it_is_legal_on_any_network(
    layers: int,
    seed: int,
    sources: int | None,
    fused: int | None,
    alike: bool,
    near: int | None,
    skips: bool,
) -> None:
    network = random_layered(layers + 1, 9, 0.4, seed=seed)
    if skips:  # connections over a layer
        more = np.array([(0, len(network.depth) - 1)])
        network = Network(
            np.append(network.sources, more[:, 0]), np.append(network.targets, more[:, 1]), network.n_neurons,
            inputs=network.inputs, outputs=network.outputs,
        )  # fmt: skip
    found = order(network, "long-runs", memory=10, sources=sources, fused=fused, alike=alike, near=near)
    processing_arrays(network, found)  # a permutation, sources before they are used


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 30), st.integers(1, 6), st.integers(1, 8))
def test_near_takes_the_run_with_most_sources_in_the_window(seed: int, runs: int, groups: int, capacity: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    lengths = rng.integers(1, 5, runs)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    sources = np.concatenate([rng.permutation(n)[:length] for length in lengths])
    targets = np.repeat(rng.integers(0, n, runs), lengths)
    inner = np.sort(rng.choice(np.arange(1, runs), min(groups, runs) - 1, replace=False))
    bounds = np.concatenate(([0], inner, [runs]))
    found = near_runs(sources, targets, starts, bounds, n, capacity)
    assert found.tolist() == near_oracle(sources.tolist(), targets.tolist(), starts.tolist(), bounds.tolist(), capacity)


def test_without_options_it_is_target_after_target() -> None:
    network = random_layered(4, 30, 0.2)
    plain = order(network, "long-runs", memory=10)
    assert (plain.edges == order(network, "two-optimal", memory=10).edges).all()


def test_tiles_are_equal_and_as_large_as_they_may_be() -> None:
    network = uniform_layers([30, 8, 4], 1.0)
    sources, _, lengths = runs_of(network, sources=12)
    assert lengths.tolist() == [10] * 24 + [8] * 4  # 30 sources: three tiles of 10
    assert sources[:80].max() < 10


def test_targets_that_share_sources_follow_each_other() -> None:
    network = radix_net([[4, 4]], blocks=1)  # 16 neurons; targets of the second layer share four sources each
    sources, targets, _ = runs_of(network, alike=True)
    rows = sources.reshape(-1, 4)[len(targets) // 2 :]
    assert (rows.reshape(4, 4, 4) == rows.reshape(4, 4, 4)[:, :1]).all()
    network = random_layered(3, 40, 0.3)
    _, targets, lengths = runs_of(network, alike=True, sources=20)
    assert np.count_nonzero(np.diff(lengths)) < 60 < np.count_nonzero(np.diff(runs_of(network, sources=20)[2]))


def test_two_layers_at_a_time_need_less_memory() -> None:
    network = uniform_layers([16, 400, 16], 0.5)
    whole = compile_inference(network, order(network, "long-runs", memory=10))
    parts = compile_inference(network, order(network, "long-runs", memory=10, fused=100))
    assert parts.arena_bytes < whole.arena_bytes / 2
    inputs = np.random.default_rng(0).random((3, 16)).astype(np.float32)
    np.testing.assert_allclose(parts.run(inputs), whole.run(inputs), rtol=1e-4, atol=1e-5)


def test_bad_sizes_are_named() -> None:
    with pytest.raises(InputError, match="sources must be"):
        order(random_layered(2, 5, 0.5), "long-runs", memory=10, sources=0)
