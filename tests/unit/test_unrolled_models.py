"""Convolutional models as networks: what the network computes is what the reference executor computes."""

from pathlib import Path

import numpy as np
import pytest

from hwmodel.processor.inference import compile_inference
from traces.base.errors import InputError
from traces.networks.forward import forward
from traces.operators.execute import execute
from traces.operators.opgraph import INPUT, Operator, OpGraph, Quantization, Tensor
from traces.readers import load
from traces.readers.parts.model_network import part_of, to_network
from traces.trace.build import build_trace, stored_activations

pytestmark = pytest.mark.application


class Builder:
    """Collects operators of a small model in one of the two orders of channels."""

    def __init__(self, channels_first: bool, seed: int) -> None:
        self.first, self.rng = channels_first, np.random.default_rng(seed)
        self.nodes: list[Operator] = []
        self.constants: dict[str, np.ndarray] = {}

    def shape(self, channels: int, height: int, width: int) -> tuple[int, ...]:
        return (1, channels, height, width) if self.first else (1, height, width, channels)

    def add(self, name, op, inputs, shape, constants=(), **attributes):
        tensors = (Tensor(name, shape, 4 * int(np.prod(shape)), name, "float32"),)
        if self.first and op in ("CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D", "CONCATENATION"):
            attributes["channel_axis"] = 1
        if op not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", INPUT):
            attributes["operands"] = (*inputs, *constants)
        self.nodes.append(Operator(name, op, tuple(inputs), tensors, tuple(constants), attributes))
        return name

    def weights(self, name, *shape, density=0.5):
        values = self.rng.standard_normal(shape).astype(np.float32)
        self.constants[name] = np.where(self.rng.random(shape) < density, values, 0).astype(np.float32)
        return name

    def kernel(self, name, outputs, inner, rows, columns, density=0.5):
        """Weights of a convolution as each kind of file stores them."""
        if self.first:
            return self.weights(name, outputs, inner, rows, columns, density=density)
        return self.weights(name, outputs, rows, columns, inner, density=density)

    def depthwise(self, name, channels, rows, columns):
        if self.first:
            return self.weights(name, channels, 1, rows, columns, density=0.9)
        return self.weights(name, 1, rows, columns, channels, density=0.9)

    def graph(self, *outputs):
        return OpGraph("model", tuple(self.nodes), outputs, self.constants)

    @property
    def layout(self):
        return {"weight_layout": "OIHW"} if self.first else {}


def resnet(first: bool, seed: int) -> OpGraph:
    """Stride, padding, groups, dilation, depthwise, a sum of branches, a mean and a matrix."""
    b = Builder(first, seed)
    b.add("x", INPUT, (), b.shape(4, 7, 6))
    b.add("c1", "CONV_2D", ["x"], b.shape(6, 4, 3), [b.kernel("w1", 6, 4, 3, 3), b.weights("b1", 6)],
          strides=(2, 2), padding="SAME", activation="RELU", **b.layout)  # fmt: skip
    b.add("d", "DEPTHWISE_CONV_2D", ["c1"], b.shape(6, 4, 3), [b.depthwise("wd", 6, 3, 3), b.weights("bd", 6)],
          padding=(1, 1, 1, 1) if first else "SAME", activation="RELU", **b.layout)  # fmt: skip
    b.add("g", "CONV_2D", ["d"], b.shape(8, 4, 3), [b.kernel("wg", 8, 3, 1, 1)], groups=2, padding="VALID", **b.layout)
    b.add("s", "CONV_2D", ["c1"], b.shape(8, 4, 3), [b.kernel("ws", 8, 6, 1, 1), b.weights("bs", 8)], **b.layout)
    b.add("sum", "ADD", ["g", "s"], b.shape(8, 4, 3), activation="RELU")
    b.add("t", "CONV_2D", ["sum"], b.shape(8, 4, 3), [b.kernel("wt", 8, 8, 3, 3)], padding="SAME", **b.layout)
    b.add("sum2", "ADD", ["t", "sum"], b.shape(8, 4, 3))
    b.add("r", "RELU", ["sum2"], b.shape(8, 4, 3))
    b.add("p", "AVERAGE_POOL_2D", ["r"], b.shape(8, 2, 2), window=(2, 2), strides=(2, 2), padding="SAME")
    b.add("cat", "CONCATENATION", ["p", "p2"][:1], b.shape(8, 2, 2), axis=1 if first else 3)
    b.add("flat", "RESHAPE", ["cat"], (1, 32))
    b.add("y", "FULLY_CONNECTED", ["flat"], (1, 5), [b.weights("wy", 5, 32), b.weights("by", 5)])
    return b.graph("y")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("first", [True, False])
def test_the_network_computes_what_the_model_does(first: bool, seed: int) -> None:
    graph = resnet(first, seed)
    network = to_network(graph)
    x = np.random.default_rng(seed).random(graph.tensors["x"].shape).astype(np.float32)
    expected = execute(graph, {"x": x})["y"].reshape(-1)
    found = forward(network, x.reshape(1, -1))[0, network.outputs]
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert network.activation == "relu" and not network.notes
    stored = sum(int(np.count_nonzero(graph.constants[name])) for name in ("w1", "wd", "wg", "ws", "wt", "wy"))
    # The identity adds 1 to the middle taps of its channels (up to 8 more, or one instead), each size of window a mean.
    assert -1 <= int(network.weight_ids.max()) + 1 - stored <= 8 + 3
    trace = build_trace(network, inputs=x.reshape(1, -1))
    assert trace.memory.region("values").n_bytes == 4 * (int(network.weight_ids.max()) + 1)
    assert network.positions.shape == (network.n_neurons, 3)
    image = network.positions[network.inputs]
    assert image[:, 0].max() == 0 and set(map(tuple, image[:, 1:].tolist())) == {
        (y, x) for y in range(7) for x in range(6)
    }
    assert (network.positions[network.targets, 0] > network.positions[network.sources, 0]).all()


def test_a_convolution_by_hand() -> None:
    b = Builder(True, 0)
    b.add("x", INPUT, (), (1, 1, 3, 3))
    b.constants["w"] = np.array([[[[1, 0], [0, 2]]]], np.float32)
    b.add("y", "CONV_2D", ["x"], (1, 1, 2, 2), ["w"], weight_layout="OIHW")
    network = to_network(b.graph("y"))
    pairs = list(zip(network.sources.tolist(), network.targets.tolist(), network.weights.tolist(), strict=True))
    assert pairs == [(0, 9, 1), (4, 9, 2), (1, 10, 1), (5, 10, 2), (3, 11, 1), (7, 11, 2), (4, 12, 1), (8, 12, 2)]
    assert network.weight_ids.tolist() == [0, 1] * 4


def mixture(first: bool, seed: int) -> OpGraph:
    """PReLU, slopes, ReLU6, maxima, limits, normalisation, resizing and a result that two read before it is active."""
    b = Builder(first, seed)
    channel = (3, 1, 1) if first else (3,)
    b.add("x", INPUT, (), b.shape(2, 7, 6))
    b.add("c", "CONV_2D", ["x"], b.shape(3, 7, 6), [b.kernel("w", 3, 2, 3, 3), b.weights("bw", 3)], padding="SAME",
          **b.layout)  # fmt: skip
    for name, op, constant in (("n", "MUL", 0.5), ("o", "ADD", 0.1)):
        b.constants[f"{name}c"] = (b.rng.standard_normal(channel) + constant).astype(np.float32)
        before = b.nodes[-1].name
        b.add(name, op, [before], b.shape(3, 7, 6), [f"{name}c"])
    b.add("p", "PRELU", ["o"], b.shape(3, 7, 6), [b.weights("slope", *channel, density=1)])
    b.add("m", "MAX_POOL_2D", ["p"], b.shape(3, 4, 3), window=(3, 2), strides=(2, 2), padding="SAME")
    b.add("d", "CONV_2D", ["m"], b.shape(3, 4, 3), [b.kernel("v", 3, 3, 1, 1, density=0.9)], **b.layout)
    b.add("e", "LEAKY_RELU", ["d"], b.shape(3, 4, 3), alpha=0.3)  # d is read twice
    b.constants["limit"] = np.array([0.2], np.float32)
    b.add("f", "MAXIMUM", ["d"], b.shape(3, 4, 3), ["limit"])
    b.add("g", "ADD", ["e", "f"], b.shape(3, 4, 3), activation="RELU6")
    b.add("s", "SUB", ["m", "g"], b.shape(3, 4, 3))
    if not first:
        b.constants["size"] = np.array([5, 7], np.int32)
        b.add("r", "RESIZE_BILINEAR", ["s"], b.shape(3, 5, 7), ["size"], half_pixel_centers=True)
        b.add("t", "DEPTHWISE_CONV_2D", ["r"], b.shape(3, 4, 3), [b.depthwise("u", 3, 2, 3)], strides=(1, 2),
              activation="TANH")  # fmt: skip
    else:
        b.add("t", "TANH", ["s"], b.shape(3, 4, 3))
    b.constants["axes"] = np.array([2, 3] if first else [1, 2], np.int32)
    for name, op in (("mean", "MEAN"), ("most", "REDUCE_MAX")):
        b.add(name, op, ["t"], (1, 3), ["axes"])
    b.add("cat", "CONCATENATION", ["mean", "most"], (1, 6), axis=1)
    b.add("y", "FULLY_CONNECTED", ["cat"], (1, 4), [b.weights("z", 4, 6, density=0.9), b.weights("bz", 4)])
    b.add("end", "SOFTMAX", ["y"], (1, 4))
    return b.graph("end", "cat")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("first", [True, False])
def test_neurons_with_unlike_activations(first: bool, seed: int) -> None:
    graph = mixture(first, seed)
    network = to_network(graph)
    assert network.activation == "mixed" and network.notes[-1].startswith("the final SOFTMAX is left out")
    x = np.random.default_rng(seed).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    values = execute(graph, {"x": x})
    expected = np.concatenate((values["y"].ravel(), values["cat"].ravel()))
    found = forward(network, x.reshape(1, -1))[0, network.outputs]
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)
    held = stored_activations(build_trace(network, inputs=x.reshape(1, -1)), network.n_neurons)[0]
    assert np.allclose(held[network.outputs], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("more", [False, True])
def test_a_value_times_its_sigmoid_is_silu(more: bool) -> None:
    b = Builder(False, 4)
    b.add("x", INPUT, (), (1, 6))
    b.add("z", "FULLY_CONNECTED", ["x"], (1, 5), [b.weights("w", 5, 6, density=1)])
    b.add("g", "LOGISTIC", ["z"], (1, 5))
    b.add("s", "MUL", ["g", "z"], (1, 5))
    b.add("y", "FULLY_CONNECTED", ["s"], (1, 3), [b.weights("v", 3, 5, density=1)])
    graph = b.graph("y", *["z"] * more)
    network, x = to_network(graph), b.rng.standard_normal((1, 6)).astype(np.float32)
    values = execute(graph, {"x": x})
    expected = np.concatenate([values[name].ravel() for name in graph.outputs])
    assert np.allclose(forward(network, x)[0, network.outputs], expected, atol=1e-5)
    assert more or network.activation == "silu"
    with pytest.raises(InputError, match="a product of two results is not a sum"):
        to_network(b.graph("y", "g"))


def test_maxima_by_hand() -> None:
    b = Builder(True, 1)
    b.add("x", INPUT, (), (1, 1, 1, 3))
    b.add("m", "MAX_POOL_2D", ["x"], (1, 1, 1, 1), window=(1, 3))
    network = to_network(b.graph("m"))
    for values in ([1, 2, 3], [3, -1, -2], [-5, -4, -7]):
        assert forward(network, [values])[0, network.outputs].tolist() == [max(values)]
    assert network.n_connections == 8 and network.n_neurons == 3 + 4
    assert compile_inference(network).run(np.array([[-5, -4, -7]], np.float32)).tolist() == [[-4]]


@pytest.mark.parametrize(
    ("op", "numbers", "more"),
    [("TILE", [1, 2**30, 2**30, 1], {}), ("PAD", [[0, 0], [2**30, 0], [0, 2**30], [0, 0]], {}),
     ("RESIZE_NEAREST_NEIGHBOR", [2**30, 2**30], {}), ("RESIZE_BILINEAR", [2**40, 2], {}),
     ("MAX_POOL_2D", None, {"window": (2**19, 2**19), "padding": (2**19, 2**19, 2**19, 2**19)})],
)  # fmt: skip
def test_sizes_that_constants_ask_for_are_claimed_first(op: str, numbers: object, more: dict) -> None:
    b = Builder(False, 4)
    b.add("x", INPUT, (), (1, 4, 4, 1))
    if numbers is not None:
        b.constants["n"] = np.array(numbers, np.int64)
    b.add("m", op, ["x"], (1, 4, 4, 1), ["n"] * (numbers is not None), **more)
    b.add("y", "CONV_2D", ["m"], (1, 4, 4, 1), [b.kernel("w", 1, 1, 1, 1, density=1)])
    with pytest.raises(InputError, match=rf"operator 'm' .{op}.*bytes of memory"):
        to_network(b.graph("y"))


@pytest.mark.parametrize(("fill", "zero_point"), [(0, None), (7, None), (3, 3), (7, 3)])
def test_a_padding_of_tensorflow_lite_holds_zeros(fill: int, zero_point: int | None) -> None:
    b = Builder(False, 5)
    b.add("x", INPUT, (), (1, 3, 3, 1))
    b.constants.update(n=np.array([[0, 0], [1, 0], [1, 0], [0, 0]], np.int32), fill=np.array([fill], np.int8))
    b.add("m", "PADV2", ["x"], (1, 4, 4, 1), ["n", "fill"])
    b.add("y", "MAX_POOL_2D", ["m"], (1, 2, 2, 1), window=(2, 2), strides=(2, 2))
    scale = {} if zero_point is None else {"fill": Quantization(np.array([0.5]), np.array([zero_point]))}
    graph = b.graph("y").with_(quantization=scale)
    if fill != (zero_point or 0):
        with pytest.raises(InputError, match=f"operator 'm' .PADV2. puts the constant {'7' if not scale else '2'} int"):
            to_network(graph)
        return
    x = -np.arange(1, 10, dtype=np.float32)
    network = to_network(graph)
    assert forward(network, x.reshape(1, -1))[0, network.outputs].tolist() == [0, 0, 0, -5]
    assert execute(graph, {"x": x.reshape(1, 3, 3, 1)})["y"].ravel().tolist() == [0, 0, 0, -5]


def test_some_operators_of_a_model() -> None:
    graph = resnet(False, 1)
    part = part_of(graph, ["g", "su[lm]", "s"])
    assert [node.name for node in part.nodes] == ["d", "c1", "g", "s", "sum"] and part.outputs == ("sum",)
    network, rng = to_network(part), np.random.default_rng(5)
    given = {name: rng.standard_normal(graph.tensors[name].shape).astype(np.float32) for name in ("d", "c1")}
    found = forward(network, np.concatenate([x.ravel() for x in given.values()])[None])[0, network.outputs]
    assert np.allclose(found, execute(part, given)["sum"].ravel(), atol=1e-5)
    with pytest.raises(InputError, match=r"model: no operator 'conv\*' .known: c1, d"):
        part_of(graph, ["g", "conv*"])


def test_too_large_a_model_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "4K")
    with pytest.raises(InputError, match=r"a network of [\d,]+ connections in its layers alone .96 bytes each"):
        to_network(resnet(True, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(strides=(0, 1)), "strides"),
        (dict(padding=(0, 0, 1)), "padding"),
        (dict(dilations=(9, 9)), "does not fit the image"),
        (dict(groups=3), "in 3 groups do not fit 4 channels"),
        (dict(activation="ELU"), "has the activation ELU: a network has relu, relu6"),
    ],
)
def test_layers_that_do_not_fit(change: dict, message: str) -> None:
    b = Builder(True, 2)
    b.add("x", INPUT, (), (1, 4, 5, 5))
    b.add("y", "CONV_2D", ["x"], (1, 4, 3, 3), [b.kernel("w", 4, 4, 3, 3)], **{**b.layout, **change})
    with pytest.raises(InputError, match=f"operator 'y' .CONV_2D.*{message}"):
        to_network(b.graph("y"))


def test_a_layer_without_activation_between_others() -> None:
    b = Builder(True, 3)
    b.add("x", INPUT, (), (1, 2, 4, 4))
    b.add("a", "CONV_2D", ["x"], (1, 2, 4, 4), [b.kernel("w", 2, 2, 1, 1, density=1)], activation="RELU", **b.layout)
    b.add("b", "CONV_2D", ["a"], (1, 2, 4, 4), [b.kernel("v", 2, 2, 1, 1, density=1)], **b.layout)
    b.add("y", "CONV_2D", ["b"], (1, 2, 4, 4), [b.kernel("u", 2, 2, 1, 1, density=1)], **b.layout)
    graph = b.graph("y")
    x = b.rng.standard_normal((1, 2, 4, 4)).astype(np.float32)
    network = to_network(graph)
    assert np.allclose(forward(network, x.reshape(1, -1))[0, network.outputs], execute(graph, {"x": x})["y"].ravel())


@pytest.mark.parametrize("name", ["mlperf_tiny_resnet8_int8"])
def test_a_reference_model(reference: Path, name: str) -> None:
    path = reference / "models" / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"no {path.name} in the reference data")
    network = load(path, kind="network")
    assert network.positions is not None and network.weight_ids is not None
    assert network.n_connections > 10**7
