"""ONNX models whose shapes and weights are computed from constants, and whose weights lie beside them."""

import contextlib
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgewatt as ew
from edgewatt import InputError
from traces.operators.opgraph import real_values
from traces.readers.reader import load, written

onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
FLOAT = onnx.TensorProto.FLOAT
RNG = np.random.default_rng(0)
WEIGHTS: dict[str, Any] = {
    "w": RNG.normal(size=(8, 3, 3, 3)).astype(np.float32),
    "b": np.arange(8, dtype=np.float32),
    "q": RNG.integers(-100, 100, (8, 4, 1, 1)).astype(np.int8),
    "scale": np.float32(0.02),
    "zero": np.int8(3),
    "axis1": np.array([1]),
    "half": np.array([2]),
    "from": np.array([0]),
    "minus": np.array([-1]),
    "which": np.array(0),
    "v": RNG.normal(size=(8 * 6 * 6, 5)).astype(np.float32),
}


def model(batch: int | str = 1) -> Any:
    """As PyTorch writes them: a bias that stands for another one, quantized weights, shapes read from tensors."""
    make = helper.make_node
    nodes = [
        make("Identity", ["b"], ["b2"]),
        make("DequantizeLinear", ["q", "scale", "zero"], ["qf"]),
        make("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        make("Shape", ["c"], ["cs"]),
        make("Gather", ["cs", "axis1"], ["channels"], axis=0),
        make("Div", ["channels", "half"], ["middle"]),
        make("Slice", ["c", "from", "middle", "axis1"], ["left"]),
        make("Conv", ["left", "qf", "b2"], ["d"]),
        make("Relu", ["d"], ["r"]),
        make("Shape", ["r"], ["rs"]),
        make("Gather", ["rs", "which"], ["n"], axis=0),
        make("Constant", [], ["zero_axis"], value=numpy_helper.from_array(np.array([0]))),
        make("Unsqueeze", ["n", "zero_axis"], ["n1"]),
        make("Concat", ["n1", "minus"], ["sides"], axis=0),
        make("Reshape", ["r", "sides"], ["flat"]),
        make("MatMul", ["flat", "v"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", FLOAT, (batch, 3, 6, 6))], [info("y", FLOAT, (batch, 5)), info("r", FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in WEIGHTS.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(file: Path, batch: int = 1) -> list[np.ndarray]:
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    x = np.random.default_rng(1).normal(size=(batch, 3, 6, 6)).astype(np.float32)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


@pytest.mark.parametrize("batch", [1, "N"])
def test_what_follows_from_constants_and_shapes_is_a_constant(tmp_path: Path, batch: int | str) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(model(batch), file)
    graph = ew.load(file, kind="opgraph", batch=1)
    assert [n.op for n in graph.nodes] == ["INPUT", "CONV_2D", "SLICE", "CONV_2D", "RELU", "RESHAPE", "FULLY_CONNECTED"]
    assert [n.output.shape for n in graph.nodes[2:]] == [(1, 4, 6, 6), (1, 8, 6, 6), (1, 8, 6, 6), (1, 288), (1, 5)]
    assert np.array_equal(graph.constants["qf"], WEIGHTS["q"])  # a byte an element, as the file has it
    assert np.array_equal(real_values(graph, "qf"), (WEIGHTS["q"].astype(np.float32) - 3) * np.float32(0.02))
    assert np.array_equal(graph.constants["b2"], WEIGHTS["b"])
    assert graph.constants["sides"].tolist() == [1, -1]
    assert graph.outputs == ("y", "r")


@pytest.mark.parametrize(("kind", "made"), [("Trilu", np.triu), ("Sin", np.sin), ("Exp", np.exp), ("Sign", np.sign)])
def test_masks_and_tables_of_constants_are_constants(kind: str, made: Any, tmp_path: Path) -> None:
    """They were operators, and their results activations."""
    table = RNG.normal(size=(4, 4)).astype(np.float32)
    nodes = [helper.make_node(kind, ["a"], ["m"]), helper.make_node("Mul", ["x", "m"], ["y"])]
    ends = [[helper.make_tensor_value_info(name, FLOAT, (4, 4))] for name in "xy"]
    graph = helper.make_graph(nodes, "g", *ends, [numpy_helper.from_array(table, "a")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    read = ew.load(tmp_path / "m.onnx", kind="opgraph")
    assert [n.op for n in read.nodes] == ["INPUT", "MUL"]
    assert np.allclose(read.constants["m"], made(table))


def test_nodes_of_constants_and_shapes_are_written_back(tmp_path: Path) -> None:
    file, after = tmp_path / "m.onnx", tmp_path / "after.onnx"
    onnx.save(model("N"), file)
    graph = ew.load(file, kind="opgraph", batch=1)
    after.write_bytes(written(file, graph))
    for batch in (1, 3):  # shapes stay open
        for expected, found in zip(run(file, batch), run(after, batch), strict=True):
            assert np.array_equal(expected, found)
    again = ew.load(after, kind="opgraph", batch=1)
    assert [n.name for n in again.nodes] == [n.name for n in graph.nodes]


def test_a_value_of_too_many_bytes_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Expand", ["one", "huge"], ["e"]),
        helper.make_node("ReduceSum", ["e"], ["s"]),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    info = [helper.make_tensor_value_info(name, FLOAT, (1,)) for name in "xy"]
    constants = {"one": np.ones(1, np.float32), "huge": np.array([1 << 40])}
    made = helper.make_graph(
        nodes, "g", info[:1], info[1:], [numpy_helper.from_array(v, k) for k, v in constants.items()]
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    with pytest.raises(InputError, match=r"m\.onnx: constant 'e' .* would take 8,796,093,022,208 bytes"):
        load(tmp_path / "m.onnx", kind="opgraph")


def _beside(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "m.onnx"
    onnx.save(model(), file, save_as_external_data=True, location="m.onnx.data", size_threshold=200)
    assert (folder / "m.onnx.data").is_file()
    return file


def test_weights_in_a_file_beside_the_model(tmp_path: Path) -> None:
    file = _beside(tmp_path / "two")
    onnx.save(model(), tmp_path / "one.onnx")
    found, expected = load(file, kind="opgraph"), load(tmp_path / "one.onnx", kind="opgraph")
    assert found.constants.keys() == expected.constants.keys()
    assert all(np.array_equal(found.constants[k], expected.constants[k]) for k in expected.constants)
    after = tmp_path / "after.onnx"  # in another folder: its weights are in it
    after.write_bytes(written(file, found))
    for a, b in zip(run(file), run(after), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("location", "../secret", r"constant 'w' lies in '\.\./secret', which is not a file in the model's folder"),
        ("location", "/etc/hostname", "which is not a file in the model's folder"),
        ("location", "link", "which is not a file in the model's folder"),
        ("location", "none", "lies in 'none', which is not beside the model"),
        ("location", ".", r"lies in '\.', which is not beside the model"),
        ("offset", "1000000", r"constant 'w' is not at 1000000 to 1000864 of 'm\.onnx\.data': 864 bytes are wanted"),
        ("offset", "-1", "is not at -1 to"),
        ("length", "3", "864 bytes are wanted"),
        ("offset", "x", "constant 'w' invalid literal"),
    ],
)
def test_weights_that_are_not_beside_the_model(tmp_path: Path, key: str, value: str, message: str) -> None:
    (tmp_path / "secret").write_bytes(bytes(4000))
    file = _beside(tmp_path / "m")
    (file.parent / "link").symlink_to(tmp_path / "secret")
    stored = onnx.load(file, load_external_data=False)
    entries = {e.key: e for e in stored.graph.initializer[0].external_data}
    entries[key].value = value
    file.write_bytes(stored.SerializeToString())
    with pytest.raises(InputError, match=message):
        load(file, kind="opgraph")


@pytest.mark.parametrize(
    ("kind", "values", "claimed"),
    [
        ("Range", [np.float16(0), np.float16(60000), np.float16(2e-5)], onnx.TensorProto.FLOAT16),  # 3e9 of them
        ("Pad", [np.ones((4, 4), np.float32), np.array([0, 0, 1 << 16, 1 << 15], np.int32)], FLOAT),  # of 64 bits
        ("Range", [np.int64(-(2**63)), np.int64(2**63 - 1), np.int64(1 << 33)], onnx.TensorProto.INT64),  # goes round
    ],
)
def test_a_result_is_as_large_as_its_operator_makes_it_not_as_the_file_says(
    tmp_path: Path, kind: str, values: list, claimed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "100M")
    names = [f"v{k}" for k in range(len(values))]
    nodes = [
        helper.make_node(kind, names, ["r"]),
        helper.make_node("Cast", ["r"], ["f"], to=FLOAT),
        helper.make_node("ReduceMax", ["f"], ["m"], keepdims=0),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", FLOAT, [1, 4])], [info("y", FLOAT, [1, 4])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in zip(names, values, strict=True)],
        value_info=[info("r", claimed, [4, 4]), info("f", FLOAT, [4, 4])],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    tracemalloc.start()
    try:
        with contextlib.suppress(InputError):  # what is refused takes nothing either
            ew.schedule(tmp_path / "m.onnx")
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_an_operator_set_that_no_operator_is_in(tmp_path: Path) -> None:
    made = model()
    made.opset_import[0].version = 0
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with contextlib.suppress(InputError):
        load(str(tmp_path / "m.onnx"))
