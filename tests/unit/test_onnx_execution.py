"""What the executor makes of ONNX operators, beside the formulas of the standard."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgewatt as ew
from edgewatt import InputError
from traces.operators.execute import execute

onnx = pytest.importorskip("onnx")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
X = np.random.default_rng(0).normal(3, 2, (1, 2, 3, 3)).astype(np.float32)


def saved(folder: Path, nodes: list[Any], inputs: dict[str, Any], constants: dict[str, Any], opset: int = 13) -> Path:
    info = helper.make_tensor_value_info
    made = helper.make_graph(
        nodes, "g", [info(name, FLOAT, shape) for name, shape in inputs.items()], [onnx.ValueInfoProto(name="y")],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize("opset", [7, 9, 13, 15])
def test_batch_normalization_uses_the_stored_statistics(tmp_path: Path, opset: int) -> None:
    values = {"g": np.ones(2), "b": np.zeros(2), "m": np.zeros(2), "v": np.ones(2)}
    node = helper.make_node("BatchNormalization", ["x", *values], ["y"])
    file = saved(tmp_path, [node], {"x": X.shape}, {k: v.astype(np.float32) for k, v in values.items()}, opset)
    assert np.allclose(execute(ew.load(file, kind="opgraph"), {"x": X})["y"], X / np.sqrt(1 + 1e-5))


def test_quantised_tensors_hold_stored_numbers(tmp_path: Path) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
    file = saved(tmp_path, [node], {"x": X.shape}, {"s": np.float32(0.05), "z": np.uint8(128)})
    found = execute(ew.load(file, kind="opgraph"), {"x": X})["y"]
    assert np.array_equal(found, np.clip(np.rint(X / np.float32(0.05)) + 128, 0, 255))


def test_a_convolution_by_computed_weights_with_a_constant_bias(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"])
    file = saved(tmp_path, [node], {"x": X.shape, "w": (1, 2, 3, 3)}, {"b": np.ones(1, np.float32)})
    found = execute(ew.load(file, kind="opgraph"), {"x": X, "w": X})["y"]
    assert np.allclose(found, (X * X).sum() + 1)


def test_a_symbol_has_one_size(tmp_path: Path) -> None:
    file = saved(tmp_path, [helper.make_node("Add", ["a", "b"], ["y"])], {"a": ("N", 3), "b": ("N", 3)}, {})
    graph = ew.load(file, kind="opgraph", shapes={"a": (2, 3)})
    assert {tensor.shape for tensor in graph.tensors.values()} == {(2, 3)}
    with pytest.raises(InputError, match="the dimension 'N' is 2, and 3 in the input 'b'"):
        ew.load(file, kind="opgraph", shapes={"a": (2, 3), "b": (3, 3)})


def test_softmax_of_old_operator_sets_takes_all_axes_from_its_own_on(tmp_path: Path) -> None:
    file = saved(tmp_path, [helper.make_node("Softmax", ["x"], ["y"], axis=1)], {"x": X.shape}, {}, 11)
    expected = np.exp(X) / np.exp(X).sum(axis=(1, 2, 3), keepdims=True)
    assert np.allclose(execute(ew.load(file, kind="opgraph"), {"x": X})["y"], expected, rtol=1e-4)


def test_weights_behind_a_dequantiser_have_the_bytes_of_the_file(tmp_path: Path) -> None:
    weights = np.random.default_rng(1).integers(-31, 32, (18, 5)).astype(np.int8)
    nodes = [
        helper.make_node("Reshape", ["x", "to"], ["flat"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["real"]),
        helper.make_node("MatMul", ["flat", "real"], ["y"]),
    ]
    constants = {"to": np.array([1, 18]), "w": weights, "s": np.float32(0.1), "z": np.int8(3)}
    graph = ew.load(saved(tmp_path, nodes, {"x": X.shape}, constants), kind="opgraph")
    assert sum(held.nbytes for held in graph.constants.values() if held.size > 2) == weights.size
    expected = X.reshape(1, 18) @ ((weights.astype(np.float32) - 3) * np.float32(0.1))
    assert np.allclose(execute(graph, {"x": X})["y"], expected, rtol=1e-4, atol=1e-4)


def test_a_product_of_stored_integers(tmp_path: Path) -> None:
    """QLinearMatMul by exact sums; its operand is quantised from reals."""
    rng = np.random.default_rng(2)
    weights = rng.integers(-31, 32, (3, 4)).astype(np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearMatMul", ["q", "s", "z", "w", "sw", "zw", "sy", "zy"], ["y"]),
    ]
    constants = {
        "s": np.float32(0.05), "z": np.uint8(100), "w": weights, "sw": np.float32(0.02), "zw": np.int8(1),
        "sy": np.float32(0.04), "zy": np.uint8(90),
    }  # fmt: skip
    graph = ew.load(saved(tmp_path, nodes, {"x": (2, 3)}, constants), kind="opgraph")
    x = rng.normal(0, 2, (2, 3)).astype(np.float32)
    stored = np.clip(np.rint(x / np.float32(0.05)) + 100, 0, 255)
    sums = (stored - 100) @ (weights.astype(float) - 1)
    expected = np.clip(np.rint(sums * (0.05 * 0.02 / 0.04)) + 90, 0, 255)
    assert np.abs(execute(graph, {"x": x})["y"].astype(float) - expected).max() <= 1


def test_a_recurrent_layer_with_functions_of_its_own_is_not_computed(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in (("w", (1, 8, 3)), ("r", (1, 8, 2)))}
    node = helper.make_node("LSTM", ["x", *weights], ["y"], hidden_size=2, activations=["HardSigmoid", "Tanh", "Tanh"])
    graph = ew.load(saved(tmp_path, [node], {"x": (4, 1, 3)}, weights), kind="opgraph")
    with pytest.raises(InputError, match="activations other than the usual ones"):
        execute(graph, {"x": np.ones((4, 1, 3), np.float32)})


@pytest.mark.parametrize(("kind", "attributes", "expected"), [
    ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, [[4, 5], [7, 8]]),
    ("GlobalAveragePool", {}, [[4]]),
])  # fmt: skip
def test_pools_of_nine_numbers(tmp_path: Path, kind: str, attributes: dict[str, Any], expected: list[Any]) -> None:
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    file = saved(tmp_path, [helper.make_node(kind, ["x"], ["y"], **attributes)], {"x": x.shape}, {})
    assert execute(ew.load(file, kind="opgraph"), {"x": x})["y"][0, 0].tolist() == expected


def test_elements_of_less_than_a_byte_are_packed() -> None:
    from traces.operators.opgraph import element_bits, stored_bytes

    assert [element_bits(dtype) for dtype in ("int2", "uint4", "float4_e2m1fn", "int8", "float32")] == [2, 4, 4, 8, 32]
    assert stored_bytes(np.array([1, 2, 3, 0, 1], np.uint8), "uint4").tolist() == [0x21, 0x03, 0x01]


def test_a_network_does_not_round_in_a_cast(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=onnx.TensorProto.INT32),
        helper.make_node("Cast", ["whole"], ["real"], to=FLOAT),
        helper.make_node("MatMul", ["real", "w"], ["y"]),
    ]
    file = saved(tmp_path, nodes, {"x": (1, 3)}, {"w": np.ones((3, 2), np.float32)})
    with pytest.raises(InputError, match="rounds to int32"):
        ew.load(file, kind="network")
