"""Several input vectors at a time: rows of lanes hold what each vector holds alone, and connections are read once."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.trace_oracle import networks, random_network, small_network, topological_order

from traces.base.errors import InputError
from traces.layout.kind import LAYOUTS
from traces.layout.settings import Layout
from traces.trace.build import build_trace, final_image, stored_activations
from traces.trace.chunks import STREAMS
from traces.trace_files.npz import load_trace, save_trace

CONNECTIONS = [STREAMS.index(name) for name in ("values", "ids", "row_pointers", "tuples")]


def accesses(trace):
    return [
        (int(a), int(n), int(o), int(s))
        for chunk in trace
        for a, n, o, s in zip(chunk.address, chunk.size, chunk.op, chunk.stream, strict=True)
    ]


@settings(max_examples=150, deadline=None)
@given(networks, st.integers(1, 9), st.integers(1, 9), st.sampled_from(["fp32", "fp16", "bf16"]), st.data())
def test_lanes_hold_what_each_vector_holds_alone(made, lanes, n_vectors, neuron_format, data):
    rng, activation = made
    network = random_network(rng, activation=activation)
    kind = data.draw(st.sampled_from(list(LAYOUTS)))
    by_source = LAYOUTS[kind].item.runs_of == "source"
    edges = topological_order(network, rng, rows=not by_source)
    if by_source:
        edges = np.lexsort((network.targets, network.sources, network.depth[network.sources]))
        if not LAYOUTS[kind].item.holds(network, edges):
            return
    layout = Layout(kind=kind, neuron_format=neuron_format, registers=data.draw(st.sampled_from(["run", "none"])))
    vectors = rng.standard_normal((n_vectors, len(network.inputs))).astype(np.float32)
    alone = build_trace(network, edges, layout=layout, inputs=vectors)
    together = build_trace(network, edges, layout=layout, inputs=vectors, lanes=lanes)
    n = network.n_neurons
    assert np.array_equal(stored_activations(alone, n, neuron_format), stored_activations(together, n, neuron_format))
    passes = -(-n_vectors // lanes)
    one, many = accesses(alone), accesses(together)
    for stream in range(len(STREAMS)):  # every pass reads connections once, and moves each row as one access
        count = lambda found: sum(access[3] == stream for access in found)  # noqa: B023, E731
        assert count(many) * n_vectors == count(one) * passes
    rows = {size for _, size, _, stream in many if stream not in CONNECTIONS}
    assert rows == {lanes * (4 if neuron_format == "fp32" else 2)}
    if lanes > 1:
        said = together.description
        assert (said["lanes"], said["passes"], said["padded_lanes"]) == (lanes, passes, passes * lanes - n_vectors)


def test_rows_start_at_aligned_addresses_and_padding_computes_on_zeros():
    network = small_network()
    trace = build_trace(network, lanes=3, sample=[0, 1], layout=Layout(alignment_bytes=64))
    starts = {a % 64 for a, n, _, s in accesses(trace) if s not in CONNECTIONS}
    assert starts == {0}
    image = final_image(trace)
    region = trace.memory.region("neurons")
    rows = image[region.base_address - trace.memory.base_address :][: region.n_bytes].view(np.float32).reshape(6, 16)
    padded = build_trace(network, inputs=[[0, 0]])
    assert rows[:, 2].tolist() == stored_activations(padded, 6)[0].tolist()
    assert (rows[:, 3:] == 0).all()


def test_long_rows_are_one_access_and_survive_a_file(tmp_path):
    trace = build_trace(small_network(), lanes=128, batch=128)
    assert {n for _, n, _, s in accesses(trace) if s not in CONNECTIONS} == {512}
    save_trace(trace, tmp_path / "long.npz")
    again = load_trace(tmp_path / "long.npz")
    assert accesses(again) == accesses(trace)
    assert np.array_equal(stored_activations(again, 6), stored_activations(trace, 6))


def test_batches_of_any_size():
    network = small_network()  # two rows
    taken = build_trace(network, batch=2).description
    assert taken["inputs"] == "batch rows 0, 1" and taken["samples"] == 2
    drawn = build_trace(network, batch=5, seed=3).description
    assert drawn["inputs"] == "5 rows drawn from 2 batch rows, seed 3" and drawn["samples"] == 5
    without = build_trace(small_network(batch=None), lanes=4).description
    assert without["samples"] == 4 and without["padded_lanes"] == 0
    short = build_trace(network, lanes=4).description
    assert short["samples"] == 2 and short["padded_lanes"] == 2
    assert asdict(Layout())["lanes"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lanes": 0}, "lanes must be a whole number of at least 1, not 0: input vectors at a time"),
        ({"lanes": True}, "Layout lanes: True is a bool, wanted: int"),
        ({"lanes": 10**6}, "lanes must be at most 8192 in fp32, not 1000000"),
        ({"batch": 0}, "batch must be a whole number of at least 1, not 0: the number of input vectors"),
        ({"batch": 2, "sample": [0]}, "give either a list of samples or a batch size, not both"),
        ({"batch": 2, "inputs": [[1, 2]]}, "batch is 2, but 1 input vectors are given: leave batch out"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(InputError) as caught:
        build_trace(small_network(), **arguments)
    assert str(caught.value) == message
