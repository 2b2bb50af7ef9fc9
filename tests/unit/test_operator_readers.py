"""Model files: contents, networks from them, reordered files, and files that are damaged or hostile."""

import hashlib
import json
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from model_files import BRANCHES, MLP, make_tflite

from reorder.operators.schedule.operator_problem import footprint
from reorder.operators.schedule.schedule import schedule
from traces.base.errors import InputError
from traces.operators.opgraph import INPUT
from traces.readers import load
from traces.readers.reader import written

pytest.importorskip("flatbuffers")
schema = pytest.importorskip("tflite")

NAMES = {"float32": "f32", "int32": "i32", "uint8": "u8", "int8": "i8"}


def write(folder: Path, data: bytes, name: str = "model.tflite") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


@pytest.mark.parametrize("name", ["swiftnet_vww_uint8", "mlperf_tiny_resnet8_int8", "mlperf_tiny_ad01_fp32"])
def test_constants_and_operators_of_the_reference_models(reference: Path, name: str) -> None:
    path = reference / "models" / f"{name}.tflite"
    expected = json.loads((reference / "models" / "tensors.json").read_text())[path.name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == expected["sha256"]
    graph = load(path)
    assert [node.op for node in graph.nodes if node.op != INPUT] == expected["ops"]
    assert len(graph.constants) == len(expected["constant_tensors"])
    for wanted in expected["constant_tensors"]:
        found = graph.constants[wanted["name"]]
        assert (list(found.shape), NAMES[str(found.dtype)]) == (wanted["shape"], wanted["type"])
        assert found.size == wanted["n"]
        assert np.count_nonzero(found == 0) == wanted["zeros"]
        assert len(np.unique(found)) == wanted["unique"]
        assert found.astype(np.float64).sum() == pytest.approx(wanted["sum"], rel=1e-12)


def test_published_swiftnet_file_reordered_and_written_back(reference: Path, tmp_path: Path) -> None:
    path = reference / "models" / "swiftnet_vww_uint8.tflite"
    graph = load(path)
    found = schedule(graph)
    assert (footprint(graph).peak_bytes, found.peak_bytes, found.proved) == (351_232, 301_056, True)
    again = load(write(tmp_path, written(path, graph.in_order(found.order))))
    assert footprint(again).peak_bytes == 301_056
    assert {n.name: (n.op, n.inputs, n.constants) for n in again.nodes} == {
        n.name: (n.op, n.inputs, n.constants) for n in graph.nodes
    }
    for name, values in graph.constants.items():
        assert np.array_equal(values, again.constants[name])


def test_reference_autoencoder_is_a_network(reference: Path) -> None:
    network = load(reference / "models" / "mlperf_tiny_ad01_fp32.tflite", kind="network")
    assert (len(network.inputs), len(network.outputs), network.n_connections) == (640, 640, 264_192)
    graph = load(reference / "models" / "mlperf_tiny_resnet8_int8.tflite")
    weights = [graph.constants[n.constants[0]] for n in graph.nodes if n.op in ("CONV_2D", "FULLY_CONNECTED")]
    assert sum(array.size for array in weights) == 77_360 and weights[0].shape == (16, 3, 3, 3)


def test_small_model_and_network(tmp_path: Path) -> None:
    graph = load(write(tmp_path, BRANCHES))
    assert [node.name for node in graph.nodes] == ["x", "a", "b", "a1", "b1", "y"]
    assert footprint(graph).peak_bytes == 4 * (8 + 200)
    assert schedule(graph).peak_bytes == 4 * (8 + 101)
    network = load(write(tmp_path, MLP), kind="network")
    assert (network.n_connections, network.activation) == (6 + 6, "relu")  # zeros are no connections
    assert network.biases is not None
    assert network.biases[3:5].tolist() == [7, 8]


def test_onnx_model_and_network(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    weights = {"w": np.arange(6).reshape(2, 3), "b": np.array([7, 8]), "v": np.array([[1, 0, 2, 3], [0, 1, 2, 3]])}
    constants = [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    nodes = [
        h.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
        h.make_node("Relu", ["h"], ["r"]),
        h.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    info = [h.make_tensor_value_info(name, 1, [1, size]) for name, size in (("x", 3), ("y", 4))]
    path = tmp_path / "mlp.onnx"

    def save(**changes: object) -> None:
        made = {"nodes": nodes, "inputs": info[:1], "outputs": info[1:]} | changes
        graph = h.make_graph(made["nodes"], "mlp", made["inputs"], made["outputs"], constants)
        path.write_bytes(h.make_model(graph).SerializeToString())

    save()
    graph = load(path)
    assert [(n.op, n.output.shape, n.output.n_bytes) for n in graph.nodes] == [
        (INPUT, (1, 3), 12), ("FULLY_CONNECTED", (1, 2), 8), ("RELU", (1, 2), 8), ("FULLY_CONNECTED", (1, 4), 16),
    ]  # fmt: skip
    network = load(path, kind="network")
    assert (network.n_connections, network.activation) == (5 + 6, "relu")
    save(inputs=[h.make_tensor_value_info("x", 1, ["batch", 3])])
    graph = load(path)
    assert graph.tensors["x"].shape == (1, 3) and "taken as 1" in graph.notes[0]
    save(inputs=[h.make_tensor_value_info("x", 1, [1, "width"])])
    with pytest.raises(
        InputError, match=r"mlp\.onnx: input 'x': tensor 'x' has the dynamic dimension 'width'.*--shape"
    ):
        load(path)
    assert load(path, shapes={"x": (1, 3)}).tensors["x"].shape == (1, 3)
    for shapes, message in (({"x": (1, 3, 1)}, "an input of 2 dimensions"), ({"X": (1, 3)}, "no input .known: x")):
        with pytest.raises(InputError, match=message):
            load(path, shapes=shapes)
    save(nodes=[h.make_node("Magic", ["x"], ["y"])])
    with pytest.raises(InputError, match=r"node 'y' \(Magic\): an unknown operator"):
        load(path)
    then = h.make_graph([h.make_node("Relu", ["x"], ["z"])], "then", [], [info[1]])
    save(nodes=[h.make_node("If", ["x"], ["y"], then_branch=then, else_branch=then)])
    with pytest.raises(InputError, match="its condition is not known"):
        load(path)
    save(outputs=[])
    with pytest.raises(InputError, match="no output"):
        load(path)
    save(nodes=[h.make_node("Add", ["y", "x"], ["r"]), h.make_node("Relu", ["r"], ["y"])], outputs=[
        h.make_tensor_value_info("y", 1, [1, 3])])  # fmt: skip
    with pytest.raises(InputError, match=r"cycle|inference"):
        load(path)
    save()
    whole = path.read_bytes()
    _fuzz(path, whole, 150)
    for size in range(0, len(whole), 23):
        _survive(path, whole[:size])


def _survive(path: Path, data: bytes) -> None:
    """A damaged file is read, or refused by an error that names it, and quickly."""
    path.write_bytes(data)
    started = time.process_time()
    try:
        schedule(load(path), method="greedy")  # type: ignore[arg-type]
    except InputError as error:
        assert str(path.parent) in str(error) or path.stem in str(error) or "kind='opgraph'" in str(error)
    assert time.process_time() - started < 5


def _fuzz(path: Path, whole: bytes, rounds: int) -> None:
    random = np.random.default_rng(1)
    for _ in range(rounds):
        data = bytearray(whole)
        for _ in range(int(random.integers(1, 6))):
            at = int(random.integers(0, len(data)))
            if random.random() < 0.5:
                data[at] = int(random.integers(0, 256))
            elif at + 4 <= len(data):
                struct.pack_into("<I", data, at, int(random.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, len(data)])))
        _survive(path, bytes(data))


@pytest.mark.parametrize("whole", [BRANCHES, MLP], ids=["branches", "mlp"])
def test_damaged_tflite_is_refused(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "model.tflite"
    for size in range(0, len(whole), 9):
        _survive(path, whole[:size])
    _fuzz(path, whole, 600)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08\0\0\0TFL2" + b"\0" * 64, "the mark TFL3 is missing"),
        (make_tflite([("RELU", [0], [7])], [("x", (1, 8)), ("y", (1, 8))]), ".RELU.: tensor 7 does not exist"),
        (make_tflite([("WHILE", [0], [1])], [("x", (1, 8)), ("y", (1, 8))]), "operator 'y' .WHILE.: control flow"),
        (make_tflite([("RELU", [0], [1])], [("x", (1, -1)), ("y", (1, 8))]), "tensor 'x' has the unknown shape"),
        (make_tflite([("RELU", [0], [1])], [("x", (1, 0)), ("y", (1, 8))]), "tensor 'x' has 0 bytes"),
        (make_tflite([("RELU", [0], [1])], [("x", (1, 8)), ("y", (2**31 - 1,) * 3)]), "more than 2\\^63 - 1"),
        (make_tflite([("ADD", [0, 2], [1]), ("RELU", [1], [2])], [("x", (1,)), ("y", (1,)), ("z", (1,))]), "a cycle"),
        (make_tflite([("RELU", [0], [1]), ("RELU", [2], [3])], [("x", (1,)), ("y", (1,)), ("z", (1,)), ("w", (1,))],
                     inputs=(0, 2)), "disconnected: 'z'"),
        (make_tflite([("RELU", [0], [1])], [("x", (1,)), ("y", (1,))], outputs=()), "no output"),
        (make_tflite([("RELU", [2], [1])], [("x", (1,)), ("y", (1,)), ("z", (1,))]),
         "reads 'z', which no operator writes"),
        (make_tflite([("ADD", [0, 1], [2])], [("x", (3,)), ("w", (4,)), ("y", (3,))], {1: [1, 2, 3]}),
         "tensor 'w': shape .4. of float32 needs 16 bytes, the file has 12"),
    ],
)  # fmt: skip
def test_bad_models_are_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(InputError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_models_that_are_no_network(tmp_path: Path) -> None:
    product = make_tflite([("MUL", [0, 0], [1])], [("x", (1, 3)), ("y", (1, 3))], {})
    with pytest.raises(InputError, match="kind='opgraph'"):
        load(write(tmp_path, product), kind="network")
    graph = load(write(tmp_path, BRANCHES))
    with pytest.raises(InputError, match="has no tensor 'y', which is a result of the model"):
        written(tmp_path / "model.tflite", graph.with_(nodes=graph.nodes[:2], outputs=("a",)))
    order = ["b", "b1", "a", "a1", "y"]
    names = [node.name for node in graph.nodes]
    graph = graph.in_order([0, *(names.index(name) for name in order)])
    moved = load(write(tmp_path, written(write(tmp_path, BRANCHES), graph)))
    assert [node.name for node in moved.nodes] == ["x", *order]
