"""The network refuses what is wrong and names the connection; what it accepts cannot change."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import networks

from traces.base.errors import InputError
from traces.networks.network import MAX_NEURONS, Network


def diamond(**changes: Any) -> Network:
    fields: dict[str, Any] = dict(
        sources=[0, 0, 1, 2],
        targets=[1, 2, 3, 3],
        n_neurons=4,
        inputs=[0],
        outputs=[3],
        weights=[1.0, 2.0, 3.0, 4.0],
        biases=[0.0, 0.5, 0.25, 0.0],
        layer=[0, 0, 1, 1],
        batch=[[1.0], [2.0]],
    )
    return Network(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(sources=[], targets=[]), "the network is empty"),
        (dict(n_neurons=0), "the network is empty"),
        (dict(n_neurons=-(10**5000)), "the network is empty: an int neurons"),
        (dict(n_neurons=3.5), "n_neurons must be an integer, not 3.5"),
        (dict(n_neurons=MAX_NEURONS + 1), "are too many"),
        (dict(targets=[1, 2, 3]), "4 sources but 3 targets"),
        (dict(sources=[0, 0, 1, 4]), r"connection 3: source neuron 4 does not exist \(ids are 0 to 3\)"),
        (dict(targets=[1, -2, 3, 3]), "connection 1: target neuron -2 does not exist"),
        (dict(inputs=[0, 7]), r"inputs\[1\]: neuron 7 does not exist"),
        (dict(outputs=[3, 3]), "outputs: neuron 3 is named twice"),
        (dict(sources=[0, 0, 3, 2]), "connection 2: neuron 3 feeds itself"),
        (dict(inputs=[0, 1]), r"connection 0 \(0 -> 1\) goes into an input neuron"),
        (dict(targets=[1, 1, 3, 3]), r"connection 1 repeats connection 0 \(0 -> 1\)"),
        (dict(sources=[0, 1, 2, 3], targets=[1, 2, 3, 1]), r"cycle through connection [123] \("),
        (dict(outputs=[0, 3]), "neuron 0 is an input and an output and has connections"),
        (dict(weights=[1, 2, np.nan, 4]), r"connection 2 \(1 -> 3\): weights\[2\] is nan"),
        (dict(weights=[1, 2, 3, 1e300]), r"connection 3 \(2 -> 3\): weights\[3\] is inf"),
        (dict(weights=[1, 2, 3]), "weights has 3 values, expected 4"),
        (dict(weights=[1, 2, 3, 4j]), "weights must hold real numbers, not complex"),
        (dict(weights=["1", "2", "3", "4"]), "weights must hold real numbers"),
        (dict(weights=[[1], [2, 3]]), "weights is not an array of numbers"),
        (dict(biases=[0, 0]), "biases has 2 values, expected 4"),
        (dict(biases=[0, 0, np.inf, 0]), r"biases\[2\] is inf"),
        (dict(layer=[0, 0, 1]), "layer has 3 values, expected 4"),
        (dict(layer=[0, 0, -1, 1]), "connection 2: its layer is negative"),
        (dict(layer=[0, 0, 1, 4]), "connection 3: its layer is 4, but 4 neurons have layers 0 to 3"),
        (
            dict(positions=[[0, -1, -1], [1, -1, -1], [1, -1, -1], [2**31 - 2, -1, -1]]),
            "neuron 3 lies in layer 2147483646, but 4 neurons have layers 0 to 3",
        ),
        (dict(batch=[[1.0, 2.0]]), r"batch has shape \(1, 2\), expected \(B, 1\)"),
        (dict(batch=[1.0]), "batch must be two-dimensional"),
        (dict(batch=[[np.nan]]), r"batch\[0, 0\] is nan"),
        (dict(activation="rellu"), "unknown activation 'rellu'.*did you mean 'relu'"),
        (dict(sources=[0.0, 0.0, 1.0, 2.0]), "sources must hold integers, not float64"),
        (dict(sources=[[0, 0, 1, 2]]), "sources must be one-dimensional"),
        (dict(sources=np.array([0, 0, 1, 2**63], np.uint64)), "above 2\\^63 - 1"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        diamond(**changes)


def test_arrays_are_read_only_copies() -> None:
    sources = np.array([0, 0, 1, 2])
    network = diamond(sources=sources)
    sources[0] = 2
    assert network.sources.tolist() == [0, 0, 1, 2]
    for values in (network.sources, network.weights, network.depth, network.in_degree, network.is_output):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        network.n_neurons = 9  # type: ignore[misc]


def test_structure() -> None:
    network = diamond(n_neurons=5, biases=None)
    assert network.n_connections == 4
    assert network.depth.tolist() == [0, 1, 1, 2, 0]
    assert network.in_degree.tolist() == [0, 1, 1, 2, 0] and network.out_degree.tolist() == [2, 1, 1, 0, 0]
    assert network.touched.tolist() == [True] * 4 + [False]
    assert network.is_output.tolist() == [False, False, False, True, False]


def test_small_floats_are_taken_as_they_are() -> None:
    assert diamond(weights=np.array([1, 2, 3, 4], ml_dtypes.bfloat16)).weights.dtype == np.float32  # type: ignore[union-attr]


def test_in_order_carries_what_belongs_to_a_connection() -> None:
    network = diamond().in_order([1, 0, 3, 2])
    assert network.sources.tolist() == [0, 0, 2, 1] and network.weights.tolist() == [2, 1, 4, 3]  # type: ignore[union-attr]
    for wrong in ([0, 1, 2], [0, 0, 1, 2], [0, 1, 2, 4], [-1, 0, 1, 2]):
        with pytest.raises(InputError, match="permutation"):
            network.in_order(wrong)


@settings(max_examples=100, deadline=None)
@given(networks())
def test_depth_is_the_longest_path(network: Network) -> None:
    longest = dict.fromkeys(range(network.n_neurons), 0)
    for _ in range(network.n_neurons):  # as often as a path can be long
        for a, b in zip(network.sources.tolist(), network.targets.tolist(), strict=True):
            longest[b] = max(longest[b], longest[a] + 1)
    assert network.depth.tolist() == list(longest.values())


def test_as_many_neurons_as_memory_holds(monkeypatch):
    """2^25 neurons were the most, whatever the machine; ids now take what 32 bits number."""
    n = 2**25 + 2
    network = Network([0], [n - 1], n_neurons=n, inputs=[0], outputs=[n - 1])
    assert network.n_neurons == n
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "512M")
    with pytest.raises(InputError, match=r"its 33554434 neurons would take .* bytes of memory, more than the bound"):
        Network([0], [n - 1], n_neurons=n, inputs=[0], outputs=[n - 1])
