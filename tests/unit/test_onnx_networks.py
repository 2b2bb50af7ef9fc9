"""ONNX models as networks: what the network computes is what ONNX's reference evaluator computes, or it is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traces.base.errors import InputError
from traces.networks.forward import forward
from traces.readers import load

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.application
node, array = onnx.helper.make_node, np.array
W = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
PADS = {"pads": array([0, 0, 1, 1, 0, 0, 0, 0])}


def model(file: Path, nodes: list[Any], constants: dict[str, np.ndarray], shape: tuple[int, ...], opset: int) -> Any:
    info = onnx.helper.make_tensor_value_info
    stored = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = onnx.helper.make_graph(nodes, "g", [info("x", 1, shape)], [info("y", 1, None)], stored)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(made, file)
    return made


def check(folder: Path, nodes: list[Any], constants: dict[str, Any], shape: tuple[int, ...], opset: int = 17) -> None:
    from onnx.reference import ReferenceEvaluator

    made = model(folder / "m.onnx", nodes, constants, shape, opset)
    network = load(folder / "m.onnx", kind="network")
    x = np.random.default_rng(1).standard_normal((8, *shape)).astype(np.float32)
    x[0] = -1 - np.arange(x[0].size).reshape(shape)
    for given in x:
        expected = ReferenceEvaluator(made).run(None, {"x": given})[0].ravel()
        assert np.allclose(forward(network, given.reshape(1, -1))[0, network.outputs], expected, atol=1e-5)


POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}


@pytest.mark.parametrize(
    "behind",
    [
        [node("MaxPool", ["t"], ["y"], **POOL)],
        [node("MaxPool", ["t"], ["u"], **POOL), node("Mul", ["u", "minus"], ["y"])],
        [node("Relu", ["t"], ["u"]), node("MaxPool", ["u"], ["v"], **POOL), node("Mul", ["v", "minus"], ["y"])],
        [node("MaxPool", ["t"], ["u"], **POOL), node("Relu", ["u"], ["v"]), node("Neg", ["v"], ["y"])],
        [node("GlobalMaxPool", ["t"], ["u"]), node("Mul", ["u", "minus"], ["y"])],
        [node("Slice", ["t", "one", "most", "axis"], ["u"]), node("Slice", ["t", "zero", "three", "axis"], ["v"]),
         node("Max", ["u", "v"], ["w"]), node("GlobalAveragePool", ["w"], ["y"])],
    ],
)  # fmt: skip
def test_maxima_over_a_padding_of_zero(tmp_path: Path, behind: list[Any]) -> None:
    numbers = {"zero": [0], "one": [1], "three": [3], "most": [4], "axis": [3]}
    constants = {**PADS, "minus": np.float32(-2), **{name: array(value) for name, value in numbers.items()}}
    check(tmp_path, [node("Pad", ["x", "pads"], ["t"]), *behind], constants, (1, 1, 3, 3))


def test_what_is_behind_a_padded_maximum_changes_nothing_before_it(tmp_path: Path) -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Mul", ["m", "minus"], ["s"]),
        node("Slice", ["r", "zero", "two", "axes"], ["t"]),
        node("Concat", ["s", "t"], ["y"], axis=1),
    ]
    constants = {"minus": np.float32(-2), "zero": array([0, 0]), "two": array([2, 2]), "axes": array([2, 3])}
    check(tmp_path, nodes, constants, (1, 1, 2, 2))


def test_a_neuron_that_has_a_bias_alone_keeps_its_sign(tmp_path: Path) -> None:
    nodes = [
        node("Gemm", ["x", "zeros", "minus"], ["t"]),
        node("MatMul", ["x", "w"], ["u"]),
        node("Relu", ["u"], ["v"]),
        node("Concat", ["t", "v"], ["r"], axis=1),
        node("MatMul", ["r", "q"], ["y"]),
    ]
    zeros = np.zeros((4, 1), np.float32)
    check(tmp_path, nodes, {"zeros": zeros, "minus": np.float32([-2]), "w": W, "q": W}, (1, 4))


@pytest.mark.parametrize("fill", [2, -5, -np.inf])
@pytest.mark.parametrize("behind", ["MaxPool", "AveragePool"])
def test_a_padding_with_another_number_is_refused(tmp_path: Path, fill: float, behind: str) -> None:
    pool = node(behind, ["t"], ["y"], **POOL)
    text = rf"m\.onnx: operator 't' .PAD. puts the constant {fill:g} into 't', only 0 is read: `edgewatt schedule`"
    forms: list[tuple[Any, dict[str, Any], int]] = [
        (node("Pad", ["x", "pads", "fill"], ["t"]), {**PADS, "fill": np.float32(fill)}, 17),
        (node("Pad", ["x"], ["t"], pads=PADS["pads"].tolist(), value=float(fill)), {}, 10),
    ]
    for pad, constants, opset in forms:
        model(tmp_path / "m.onnx", [pad, pool], constants, (1, 1, 3, 3), opset)
        with pytest.raises(InputError, match=text):
            load(tmp_path / "m.onnx", kind="network")


@pytest.mark.parametrize(
    ("nodes", "constants", "message"),
    [
        ([node("Pad", ["x", "p"], ["t"]), node("MatMul", ["t", "w"], ["y"])], {"p": array([0, -1, 0, 1]), "w": W},
         r"operator 't' .PAD. is not read .*negative values; a Slice crops.: `edgewatt schedule`"),
        ([node("Mean", ["x", "c"], ["t"]), node("MatMul", ["t", "w"], ["y"])], {"c": W[:1, :1], "w": W},
         r"operator 't' .ELEMENTWISE_MEAN. has no place in a network"),
        ([node("Reshape", ["x", "s"], ["i"]),
          node("MaxPool", ["i"], ["y"], kernel_shape=[1, 2], strides=[1, 3], ceil_mode=1)],
         {"s": array([1, 1, 1, 4])}, r"operator 'y' .MAX_POOL_2D. with ceil_mode=1, which is not read: its result"),
        ([node("Gemm", ["x", "w", "x"], ["y"])], {"w": np.eye(4, dtype=np.float32)},
         r"operator 'y' .FULLY_CONNECTED. has no place"),
        ([node("Reshape", ["x", "s"], ["i"]), node("Gemm", ["i", "w", "c"], ["y"])],
         {"s": array([2, 2]), "w": W[:2, :2], "c": W[:2, :1]}, r"'y' .FULLY_CONNECTED.: a bias of shape \[2, 1\], not"),
        ([node("Cast", ["x"], ["i"], to=7), node("Gather", ["w", "i"], ["y"])], {"w": W},
         r"operator 'i' .CAST. rounds to int64"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(tmp_path: Path, nodes: list[Any], constants: dict[str, Any], message: str) -> None:
    model(tmp_path / "m.onnx", nodes, constants, (1, 4), 17)
    with pytest.raises(InputError, match=rf"m\.onnx: .*{message}"):
        load(tmp_path / "m.onnx", kind="network")


@pytest.mark.parametrize("bias", [np.float32(2), W[:1, 0], W[:1, :1], W[0], W[:1], None])
@pytest.mark.parametrize("factors", [{}, {"alpha": -0.5}, {"alpha": 2.0, "beta": -3.0}, {"beta": 0.0}])
def test_biases_and_factors_of_gemm(tmp_path: Path, bias: Any, factors: dict[str, float]) -> None:
    operands = ["x", "w", *["b"] * (bias is not None)]
    constants = {"w": W, **({} if bias is None else {"b": array(bias)})}
    check(tmp_path, [node("Gemm", operands, ["y"], **factors)], constants, (1, 4))
    from traces.operators.execute import execute

    graph, x = load(tmp_path / "m.onnx", kind="opgraph"), np.ones((1, 4), np.float32)
    made = forward(load(tmp_path / "m.onnx", kind="network"), x)[0, -3:]
    assert np.allclose(execute(graph, {"x": x})["y"], made, atol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(0, None), (-0.2, None), (None, 0.3), (None, None), (0, 6), (-0.2, 0.3)])
def test_limits_of_clip(tmp_path: Path, low: float | None, high: float | None) -> None:
    limits = {name: value for name, value in (("min", low), ("max", high)) if value is not None}
    given = ["t", *[name if name in limits else "" for name in ("min", "max")]]
    constants = {"w": W, **{name: np.float32(value) for name, value in limits.items()}}
    check(tmp_path, [node("MatMul", ["x", "w"], ["t"]), node("Clip", given, ["y"])], constants, (1, 4))
    clip = node("Clip", ["t"], ["y"], **{name: float(value) for name, value in limits.items()})
    check(tmp_path, [node("MatMul", ["x", "w"], ["t"]), clip], {"w": W}, (1, 4), opset=10)
