"""ONNX models on which ONNX's own shape inference ends the process, takes all memory or never ends: one message."""

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

import edgewatt as ew
from edgewatt import InputError
from traces.readers.parts.onnx_inference import Inference

onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
FLOAT, INT64, STRING = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.STRING


def model(
    node: Any, inputs: dict[str, Any], kind: int = FLOAT, values: dict[str, Any] | None = None, opset: int = 20
) -> bytes:
    import numpy as np

    info = [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (values or {}).items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", info, outputs, stored)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return bytes(made.SerializeToString())


make = helper.make_node
HOSTILE = {
    "pattern of nothing": (make("RegexFullMatch", [""], ["y"], pattern="a"), {"x": (1,)}, STRING),
    "matrix like nothing": (make("EyeLike", ["nowhere"], ["y"]), {"x": (2, 2)}),
    "norm of an axis far away": (make("LayerNormalization", ["x", "x"], ["y"], axis=2**63 - 1), {"x": (2, 2)}),
    "gathered from less than nothing": (make("GatherND", ["x", "i"], ["y"]), {"x": (2, 2), "i": (1, -1)}),
    "more parts than told": (make("Split", ["x"], ["y", "z"], num_outputs=1), {"x": (2, 2)}),
    "two thousand million parts": (make("Split", ["x"], ["y"], num_outputs=2**31 - 1), {"x": (2, 2)}),
    "gathered from 2^62": (make("Gather", ["x", "i"], ["y"]), {"x": (2**62,), "i": (2**62,)}),
    "a character that is none": (make("Einsum", ["x"], ["y"], equation="�->"), {"x": (2, 2)}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_one_message(what: str, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(model(*HOSTILE[what]))
    with pytest.raises(InputError, match=r"m\.onnx"):
        ew.load(file)


def test_inference_that_ends_is_a_message() -> None:
    """Past all checks, the process that infers may end: ours does not."""
    node = make("RegexFullMatch", [""], ["y"], pattern="a")
    opsets = [helper.make_opsetid("", 20)]
    with (
        Inference(onnx, Path("m.onnx")) as inference,
        pytest.raises(InputError, match=r"m\.onnx: .*does not survive"),
    ):
        inference.types([node], {}, [], opsets)


def test_inference_keeps_its_limit_of_memory() -> None:
    node = make("Split", ["x"], ["y"], num_outputs=2**31 - 1)
    types = {"x": helper.make_tensor_type_proto(FLOAT, (2, 2)).tensor_type}
    with Inference(onnx, Path("m.onnx")) as inference:
        try:
            assert inference.types([node], types, [], [helper.make_opsetid("", 20)]) == {}
            assert inference.why
        except InputError as error:
            assert "does not survive" in str(error)


@pytest.mark.parametrize("kind", ["onnx", "tflite"])
def test_odd_models(kind: str, tmp_path: Path) -> None:
    """A short slice of `python -m fuzz.odd_models 100000`."""
    pytest.importorskip(kind)
    from fuzz.odd_models import read_all

    first = random.Random(kind).randrange(1000)
    counts = read_all(kind, range(first, first + 60), tmp_path, tmp_path / "seed")
    assert set(counts) <= {"read", "refused", "ended inference"}, counts


MANY_SIDES: dict[str, tuple[Any, ...]] = {
    "a sum": (make("Add", ["x", "z"], ["y"]), {"x": (1,) * 40, "z": (1,) * 40}),
    "a product": (make("MatMul", ["x", "z"], ["y"]), {"x": (1,) * 40, "z": (1,) * 40}),
    "copies": (make("Expand", ["c", "x"], ["y"]), {"x": (1, 3, 4, 5)}, FLOAT, {"c": [0, 2]}, 23),
}


@pytest.mark.parametrize("what", MANY_SIDES)
@pytest.mark.parametrize("kind", ["opgraph", "network"])
def test_more_axes_than_arrays_have(what: str, kind: str, tmp_path: Path) -> None:
    """NumPy broadcasts 32 axes and raises a RuntimeError beyond."""
    file = tmp_path / "m.onnx"
    made = onnx.load_from_string(model(*MANY_SIDES[what]))
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, (8, 8)))
    made.graph.value_info.append(helper.make_tensor_value_info("y", FLOAT, (5, 3, 1, 1)))
    file.write_bytes(made.SerializeToString())
    with contextlib.suppress(InputError):
        ew.load(file, kind=kind)
