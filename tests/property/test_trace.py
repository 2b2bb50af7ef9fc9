"""Traces against the plain walk, against the forward pass, and through a file and back."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.trace_oracle import networks, random_network, topological_order, walk

from traces.formats import from_bits, to_bits
from traces.layout.settings import Layout
from traces.networks.forward import forward
from traces.trace.build import build_trace, stored_activations
from traces.trace.chunks import STREAMS
from traces.trace_files.npz import load_trace, save_trace


def accesses(trace):
    for chunk in trace:
        for i in range(len(chunk)):
            data = chunk.payload[chunk.payload_offset[i] : chunk.payload_offset[i + 1]].tobytes()
            yield STREAMS[chunk.stream[i]], int(chunk.op[i]), int(chunk.address[i]), int(chunk.size[i]), data


@settings(max_examples=60, deadline=None)
@given(networks, st.sampled_from(("csr", "coo", "tuples")), st.sampled_from(("run", "none")), st.integers(16, 300))
def test_accesses_and_bytes_equal_the_plain_walk(made, kind, registers, chunk_accesses):
    rng, activation = made
    network = random_network(rng, activation=activation)
    edges = topological_order(network, rng, rows=kind == "csr")
    layout = Layout(kind=kind, registers=registers, base_address=1000)
    trace = build_trace(network, edges, layout=layout, sample=1, chunk_accesses=chunk_accesses)
    got = [access for access in accesses(trace) if access[0] != "row_pointers"]
    base = {region.name: region.base_address for region in trace.memory.regions}
    expected = []
    for stream, (what, k), store, value in walk(
        network, edges, network.weights, network.batch[1], kind=kind, registers=registers == "run"
    ):
        data = np.float32(value).tobytes()
        if what == "neuron":
            where = base["neurons"] + 4 * k
        elif what == "tuple":
            ids = np.array([network.sources[edges[k]], network.targets[edges[k]]], "<u2").tobytes()
            where, data = base["tuples"] + 8 * k, ids + data
        elif what == "value":
            where = base["values"] + 4 * k
        else:
            where, data = base["column_ids" if what == "id" else "row_ids"] + 2 * k, np.uint16(value).tobytes()
        expected.append((stream, store, where, len(data), data))
    assert got == expected


@settings(max_examples=60, deadline=None)
@given(networks, st.sampled_from(("csr", "ell", "coo", "tuples")), st.sampled_from(("run", "none")))
def test_whole_number_networks_end_in_the_exact_forward_pass(made, kind, registers):
    rng, activation = made
    network = random_network(rng, whole_numbers=True, activation=activation)
    sizes = {name: np.abs(getattr(network, name)) for name in ("weights", "biases", "batch")}
    assume(forward(network.with_(activation="identity", **sizes), dtype=np.int64).max() < 2**24)  # exact in float32
    edges = topological_order(network, rng, rows=kind in ("csr", "ell"))
    trace = build_trace(network, edges, layout=Layout(kind=kind, registers=registers), sample=[2, 0])
    assert np.array_equal(stored_activations(trace, network.n_neurons), forward(network)[[2, 0]])


@settings(max_examples=40, deadline=None)
@given(networks, st.sampled_from(("fp32", "fp16", "bf16", "int8", "int4")), st.sampled_from((None, 32)))
def test_formats_end_near_the_forward_pass_of_the_stored_weights(made, name, row_alignment):
    rng, activation = made
    network = random_network(rng, activation=activation)
    bits, scale, _ = to_bits(network.weights, name)
    stored = network.with_(weights=from_bits(bits, name, scale=scale))
    edges = topological_order(network, rng, rows=True)
    layout = Layout(kind="csr", value_format=name, row_alignment_bytes=row_alignment)
    values = stored_activations(build_trace(network, edges, layout=layout), network.n_neurons)
    expected = forward(stored)[:1]
    assert np.allclose(values, expected, rtol=1e-4, atol=1e-4 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_neuron_formats_round_as_ml_dtypes_does(name):
    import ml_dtypes

    from cython_ext.trace.walk import neuron_bits, neuron_values

    number = {"fp16": 1, "bf16": 2}[name]
    dtype = np.float16 if name == "fp16" else ml_dtypes.bfloat16
    every = np.arange(65536, dtype=np.uint16)
    decoded = neuron_values(every.view(np.uint8), number)
    assert np.array_equal(decoded, every.view(dtype).astype(np.float32), equal_nan=True)
    values = np.random.default_rng(3).integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    near = decoded[np.isfinite(decoded)]
    values = np.concatenate([values, near, np.nextafter(near, np.float32(np.inf)), near[1:] / 2 + near[:-1] / 2])
    values = values[~np.isnan(values)].astype(np.float32)
    with np.errstate(over="ignore"):
        expected = values.astype(dtype).view(np.uint16)
    assert np.array_equal(neuron_bits(values, number).view(np.uint16), expected)


@settings(max_examples=20, deadline=None)
@given(networks, st.integers(16, 60))
def test_save_and_load(tmp_path_factory, made, chunk_accesses):
    rng, activation = made
    network = random_network(rng, activation=activation)
    trace = build_trace(network, topological_order(network, rng, rows=False), chunk_accesses=chunk_accesses)
    path = tmp_path_factory.mktemp("trace") / "walk.npz"
    save_trace(trace, path)
    loaded = load_trace(path)
    assert list(accesses(loaded)) == list(accesses(trace))
    assert np.array_equal(loaded.memory.image, trace.memory.image)
    assert loaded.memory.regions == trace.memory.regions and loaded.n_accesses == sum(map(len, trace))
    assert loaded.description == trace.description
