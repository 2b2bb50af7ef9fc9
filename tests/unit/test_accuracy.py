"""Accuracy as executed equals a plain NumPy forward pass in the same order, in every format."""

import numpy as np
import pytest

import edgewatt as ew
from traces.base.errors import InputError
from traces.formats import from_bits, to_bits
from traces.layout.settings import Layout
from traces.readers.native import read_extras
from traces.trace.accuracy import accuracy_of

pytestmark = pytest.mark.application

FORMATS = ("fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4")


def plain_pass(network, edges, value_format, vectors):
    """Connection after connection in float32; shares nothing with the walk."""
    bits, scale, _ = to_bits(network.weights[edges], value_format)
    weights = np.asarray(from_bits(bits, value_format, scale=scale), np.float32)
    values = np.tile(network.biases.astype(np.float32)[:, None], (1, len(vectors)))
    values[network.inputs] = vectors.T
    left = network.in_degree.copy()
    for weight, s, t in zip(weights, network.sources[edges], network.targets[edges], strict=True):
        values[t] = values[t] + weight * values[s]
        left[t] -= 1
        if not left[t] and not network.is_output[t]:
            values[t] = np.maximum(values[t], np.float32(0))
    return values[network.outputs].T


@pytest.mark.parametrize("value_format", FORMATS)
@pytest.mark.parametrize("name", ["digits_small", "digits_wide"])
def test_both_networks_in_seven_formats(name, value_format):
    path = f"configs/examples/networks/{name}.npz"
    network, extras = ew.load(path), read_extras(path)
    vectors = (extras["test_images"] / float(extras["pixel_max"])).astype(np.float32)
    edges = ew.order(network, "two-optimal", memory=100).edges
    found = accuracy_of(network, edges, Layout("tuples", value_format=value_format), vectors, extras["test_labels"])
    plain = plain_pass(network, edges, value_format, vectors)
    assert found.accuracy == float((plain.argmax(axis=1) == extras["test_labels"]).mean())
    exact = plain_pass(network.with_(weights=network.weights), edges, "fp32", vectors)
    assert found.agreement == pytest.approx(float((plain.argmax(axis=1) == exact.argmax(axis=1)).mean()), abs=0.01)
    print(name, value_format, found)


def test_records_and_bad_labels():
    config = {"network": {"file": "configs/examples/networks/digits_small.npz"}, "formats": ["fp32", "int4"]}
    rows = [r.results["accuracy"] for r in ew.run({**config, "accuracy": True, "timing": "replay"})]
    assert rows[0]["agreement"] == 1 and rows[1]["relative_error"] > rows[0]["relative_error"]
    network = ew.load("configs/examples/networks/digits_small.npz")
    with pytest.raises(InputError, match="labels must be 64 numbers from 0 to 9"):
        accuracy_of(network, None, Layout("tuples"), network.batch, np.full(64, 10))
