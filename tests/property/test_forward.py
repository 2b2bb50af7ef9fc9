"""The vectorised forward pass against exact rational arithmetic."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.forward_oracle import forward_by_hand
from strategies import networks

from traces.networks.forward import forward
from traces.networks.network import Network


@settings(max_examples=150, deadline=None)
@given(networks())
def test_float32_equals_exact_sums_rounded_once(network: Network) -> None:
    assert network.batch is not None
    values = forward(network)
    assert values.dtype == np.float32 and values.shape == (len(network.batch), network.n_neurons)
    for row, inputs in zip(values, network.batch, strict=True):
        # Fractions of eighths stay short over so few layers: float64 sums are exact, so equality is due.
        assert row.tolist() == forward_by_hand(network, inputs.tolist())


@settings(max_examples=100, deadline=None)
@given(networks(), st.randoms(use_true_random=False))
def test_the_stored_order_changes_only_the_rounding(network: Network, random: object) -> None:
    order = np.arange(network.n_connections)
    random.shuffle(order)  # type: ignore[attr-defined]
    np.testing.assert_allclose(forward(network.in_order(order)), forward(network), rtol=1e-5, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(networks())
def test_integer_mode_equals_float64_on_whole_numbers(network: Network) -> None:
    assert network.weights is not None and network.biases is not None and network.batch is not None
    whole = network.with_(weights=network.weights * 8, biases=network.biases * 8, batch=network.batch * 8)
    assert np.array_equal(forward(whole, dtype=np.int64), forward(whole, dtype=np.float64))
