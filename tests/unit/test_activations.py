"""Activations beyond ReLU: as defined, the same in a trace as in a forward pass, refused where kernels lack them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.theory import dense_layers

from hwmodel.processor.export_c import export_c
from hwmodel.processor.inference import compile_inference
from traces.base.errors import InputError
from traces.layout.settings import Layout
from traces.networks.forward import SMOOTH, forward
from traces.networks.network import ACTIVATIONS, COMPILED_ACTIVATIONS, Network, renumbered
from traces.readers import load
from traces.readers.native import save
from traces.trace.build import build_trace, stored_activations

BY_HAND = {
    "leaky-relu": lambda z: z if z > 0 else z * float(np.float32(0.01)),
    "tanh": math.tanh,
    "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    "silu": lambda z: z / (1 + math.exp(-z)),
    "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    "hard-swish": lambda z: z * min(max(z + 3, 0), 6) / 6,
    "relu6": lambda z: min(max(z, 0.0), 6.0),
}


def network(activation: str) -> Network:
    rng = np.random.default_rng(3)
    made = dense_layers([6, 7, 4])
    weights = rng.normal(0, 2, made.n_connections).astype(np.float32)
    biases = rng.normal(0, 1, made.n_neurons).astype(np.float32)
    batch = rng.normal(0, 1, (3, 6)).astype(np.float32)
    return made.with_(weights=weights, biases=biases, batch=batch, activation=activation)


def test_every_activation_is_known_somewhere() -> None:
    assert set(BY_HAND) == set(SMOOTH) and (*COMPILED_ACTIVATIONS, *SMOOTH) == ACTIVATIONS


@pytest.mark.parametrize("name", SMOOTH)
def test_hidden_neurons_are_activated_and_outputs_linear(name: str) -> None:
    given, plain = network(name), forward(network("identity"), dtype=np.float64)
    found = forward(given, dtype=np.float64)
    hidden = np.setdiff1d(np.flatnonzero(given.in_degree), given.outputs)
    assert np.allclose(
        found[:, hidden], np.vectorize(BY_HAND[name], otypes=[float])(plain[:, hidden]), rtol=1e-12, atol=1e-14
    )
    first = given.outputs[0]
    here = given.targets == first
    sums = found[:, given.sources[here]] @ given.weights[here].astype(np.float64) + given.biases[first]
    assert np.allclose(found[:, first], sums)


@pytest.mark.parametrize("name", SMOOTH)
def test_a_trace_holds_what_the_forward_pass_gives(name: str) -> None:
    given = network(name)
    trace = build_trace(given, layout=Layout(lanes=3), inputs=given.batch)
    held = stored_activations(trace, given.n_neurons, "fp32")
    fed = np.flatnonzero(given.in_degree)
    assert np.allclose(held[:, fed], forward(given)[:, fed], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_kernels_without_an_activation_refuse_it(name: str) -> None:
    given = network(name)
    for make in (compile_inference, export_c):
        with pytest.raises(InputError, match=f"not {name}: `edgewatt run`, `order` and `break-even` take it"):
            make(given)
    with pytest.raises(InputError, match="no whole numbers"):
        forward(given, dtype=np.int64)
    with pytest.raises(InputError, match=f"int8 knows the activations identity and relu; {name}"):
        build_trace(given, layout=Layout(lanes=3, value_format="int8", neuron_format="int8"), inputs=given.batch)


def mixed(seed: int, names: tuple[str, ...] = ACTIVATIONS) -> Network:
    """A network whose neurons have each an activation of `names`, outputs too, and a slope."""
    rng, made = np.random.default_rng(seed), network("identity")
    codes = [ACTIVATIONS.index(rng.choice([n for n in names if n != "clipped-relu"])) for _ in range(made.n_neurons)]
    slopes = rng.normal(0, 1, made.n_neurons).astype(np.float32)
    return made.with_(activation="mixed", activations=codes, slopes=slopes)


@pytest.mark.parametrize("seed", range(5))
def test_neurons_of_unlike_activations(seed: int, tmp_path: Path) -> None:
    given = mixed(seed)
    found = forward(given, dtype=np.float64)
    for neuron in np.flatnonzero(given.in_degree).tolist():
        here, name = given.targets == neuron, ACTIVATIONS[given.activations[neuron]]
        slope = float(given.slopes[neuron])
        rules = BY_HAND | {"relu": lambda z: max(z, 0), "leaky-relu": lambda z, a=slope: z if z > 0 else a * z}
        z = found[:, given.sources[here]] @ given.weights[here].astype(np.float64) + given.biases[neuron]
        assert np.allclose(found[:, neuron], np.vectorize(rules.get(name, float), otypes=[float])(z), atol=1e-12), name
    held = stored_activations(build_trace(given, inputs=given.batch), given.n_neurons)
    fed = np.flatnonzero(given.in_degree)
    assert np.allclose(held[:, fed], forward(given)[:, fed], rtol=1e-5, atol=1e-5)
    save(given, tmp_path / "n.npz")
    again = load(tmp_path / "n.npz")
    turned = renumbered(again, np.r_[np.arange(6)[::-1], 6 + np.arange(7)[::-1], 13 + np.arange(4)[::-1]])
    assert np.allclose(forward(turned)[:, turned.outputs], forward(given)[:, given.outputs], atol=1e-6)
    plain = again.with_(activation="relu")
    assert plain.activations is None and plain.slopes is None


def test_kernels_take_relu_and_none_a_neuron() -> None:
    given = mixed(1, ("identity", "relu"))
    found = compile_inference(given).neurons(given.batch)
    assert np.allclose(found, forward(given), rtol=1e-5, atol=1e-5)
    assert (found[:, given.outputs] == 0).any() and (found[:, 6:13] < 0).any()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"activation": "mixed"}, "go with the activation mixed"),
        ({"activations": np.zeros(17, int)}, "go with the activation mixed"),
        ({"activation": "mixed", "activations": np.full(17, 2)}, "without clipped-relu"),
        ({"activation": "mixed", "activations": np.zeros(3, int)}, "activations has 3 values, expected 17"),
        ({"slopes": [1.0]}, "slopes has 1 values, expected 17"),
    ],
)
def test_activations_that_do_not_fit(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        network("relu").with_(**changes)


@pytest.mark.parametrize(
    ("op", "given", "found"),
    [
        ("LeakyRelu", {"alpha": 0.01}, "leaky-relu"),
        ("LeakyRelu", {"alpha": 0.2}, "mixed"),
        ("HardSwish", {}, "hard-swish"),
        ("Gelu", {}, "gelu"),
        ("Gelu", {"approximate": "tanh"}, "approximation by tanh"),
        ("Sigmoid", {}, "sigmoid"),
        ("Elu", {}, "no place in a network"),
    ],
)
def test_onnx_names_them(op: str, given: dict[str, Any], found: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    weights = [onnx.numpy_helper.from_array(np.eye(4, dtype=np.float32), name) for name in ("a", "b")]
    nodes = [h.make_node("MatMul", ["x", "a"], ["s"]), h.make_node(op, ["s"], ["t"], **given),
             h.make_node("MatMul", ["t", "b"], ["y"])]  # fmt: skip
    ends = [h.make_tensor_value_info(name, 1, [1, 4]) for name in "xy"]
    graph = h.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 20)]), tmp_path / "m.onnx")
    if " " in found:
        with pytest.raises(InputError, match=found):
            load(tmp_path / "m.onnx", kind="network")
    else:
        assert load(tmp_path / "m.onnx", kind="network").activation == found
