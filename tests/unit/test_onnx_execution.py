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
