"""Constants, variables and operators of real models: folded, sparse, kept between inferences, not computed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import edgewatt as ew
from edgewatt.operators.energy import operator_energy
from reorder.operators.schedule.base import SCHEDULERS
from tests.model_files import MLP, make_tflite
from traces.base.errors import InputError
from traces.operators.execute import execute
from traces.readers.parts.tflite_sparse import SPARSE, dense
from traces.readers.reader import written


def write(folder: Path, data: bytes) -> Path:
    (folder / "model.tflite").write_bytes(data)
    return folder / "model.tflite"


HALF = make_tflite(
    [("DEQUANTIZE", [1], [2]), ("ADD", [5, 6], [7]), ("FULLY_CONNECTED", [0, 2, 7], [3]), ("TANH", [3], [4])],
    [("x", (1, 3)), ("w16", (2, 3), "float16"), ("w", (2, 3)), ("h", (1, 2)), ("y", (1, 2)), ("b1", (2,)),
     ("b2", (2,)), ("b", (2,))],
    {1: [[1, 2, 3], [4, 5, 6]], 5: [1, 2], 6: [10, 20]},
    outputs=(4,),
)  # fmt: skip


def test_operators_of_constants_are_folded_and_written_back(tmp_path: Path) -> None:
    path = write(tmp_path, HALF)
    graph = ew.load(path, kind="opgraph")
    assert [node.op for node in graph.nodes] == ["INPUT", "FULLY_CONNECTED", "TANH"]
    assert graph.constants["w"].dtype == np.float16  # as it is stored
    np.testing.assert_array_equal(graph.constants["b"], [11, 22])
    x = np.float32([[1, 0, 2]])
    expected = np.tanh(x @ np.float32([[1, 2, 3], [4, 5, 6]]).T + [11, 22])
    np.testing.assert_allclose(execute(graph, {"x": x})["y"], expected, rtol=1e-6)
    back = ew.load(write(tmp_path, written(path, graph)), kind="opgraph")
    np.testing.assert_allclose(execute(back, {"x": x})["y"], expected, rtol=1e-6)


VARIABLE = make_tflite(
    [("VAR_HANDLE", [], [1]), ("READ_VARIABLE", [1], [2]), ("ADD", [0, 2], [3]), ("ASSIGN_VARIABLE", [1, 3], []),
     ("RELU", [3], [4])],
    [("x", (1, 8)), ("handle", (), "resource"), ("old", (1, 8)), ("new", (1, 8)), ("y", (1, 8))],
)  # fmt: skip


def test_variables_live_from_one_inference_to_the_next(tmp_path: Path) -> None:
    path = write(tmp_path, VARIABLE)
    graph = ew.load(path, kind="opgraph")
    assert [node.op for node in graph.nodes] == ["INPUT", "INPUT", "READ_VARIABLE", "ADD", "ASSIGN_VARIABLE", "RELU"]
    assert "handle" in graph.outputs
    reading, assignment = 2, 4
    assert graph.predecessors[reading] == (1,)
    assert set(graph.predecessors[assignment]) == {1, reading, 3}
    values = execute(graph, {"x": np.ones((1, 8)), "handle": np.full((1, 8), 2.0)})
    np.testing.assert_array_equal(values["handle:3"], np.full((1, 8), 3))
    for method in list(SCHEDULERS):
        found = ew.schedule(graph, method=method)
        at = {int(v): k for k, v in enumerate(found.order)}
        assert at[reading] < at[assignment]
        assert found.peak_bytes == 4 * 32  # the variable all the time, and what ADD reads and writes
    assert written(path, graph)


@pytest.mark.parametrize("method", list(SCHEDULERS))
def test_every_scheduler_takes_models_with_weights(tmp_path: Path, method: str) -> None:
    for data in (MLP, HALF):
        found = ew.schedule(ew.load(write(tmp_path, data), kind="opgraph"), method=method)
        assert sorted(found.order) == list(range(found.graph.n_nodes))


def test_an_operator_that_is_not_computed_has_traffic_and_energy(tmp_path: Path) -> None:
    data = make_tflite(
        [("CUSTOM", [0], [1]), ("FULLY_CONNECTED", [1, 2, -1], [3])],
        [("x", (1, 512)), ("h", (1, 512)), ("w", (4, 512)), ("y", (1, 4))],
        {2: np.ones((4, 512))},
    )
    graph = ew.load(write(tmp_path, data), kind="opgraph")
    spent = operator_energy(graph, range(3), onchip_bytes=1024)
    assert spent["data"] == "not computed: CUSTOM:"
    assert spent["ones"] is None and spent["io_pj"] is None
    assert spent["weight_bytes"] == 4 * 512 * 4 and spent["core_pj"] > 0


# -- ONNX ------------------------------------------------------------------------------------------------------------


def test_branches_that_are_always_taken_and_operators_of_the_reference_evaluator(tmp_path: Path) -> None:
    import onnx
    from onnx import helper as h

    def branch(name: str, *nodes: object) -> object:
        return h.make_graph(list(nodes), name, [], [h.make_tensor_value_info("out", 1, None)])

    inner = h.make_node("If", ["yes"], ["out"], then_branch=branch("a", h.make_node("Elu", ["t"], ["out"])),
                        else_branch=branch("b", h.make_node("Relu", ["t"], ["out"])))  # fmt: skip
    taken = branch("then", h.make_node("Neg", ["x"], ["t"]), h.make_node("Equal", ["one", "one"], ["yes"]), inner)
    other = branch("else", h.make_node("Relu", ["x"], ["out"]))
    nodes = [
        h.make_node("Shape", ["x"], ["shape"]),
        h.make_node("Gather", ["shape", "one"], ["width"]),
        h.make_node("Greater", ["width", "one"], ["wide"]),
        h.make_node("If", ["wide"], ["made"], then_branch=taken, else_branch=other),
        h.make_node("MatMul", ["made", "w"], ["y"]),
    ]
    weights = np.float32([[1, 2], [3, 4], [5, 6]])
    constants = [onnx.numpy_helper.from_array(np.array(1, np.int64), "one"), onnx.numpy_helper.from_array(weights, "w")]
    values = [h.make_tensor_value_info("x", 1, ["n", "width"]), h.make_tensor_value_info("y", 1, None)]
    graph = h.make_graph(nodes, "g", values[:1], values[1:], constants)
    path = tmp_path / "model.onnx"
    path.write_bytes(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)]).SerializeToString())
    with pytest.raises(InputError, match=r"node 'made' \(If\): its condition is not known"):
        ew.load(path, kind="opgraph")
    read = ew.load(path, kind="opgraph", shapes={"x": (2, 3)})
    assert [node.op for node in read.nodes] == ["INPUT", "NEG", "ELU", "FULLY_CONNECTED"]
    x = np.float32([[1, -2, 3], [0, 1, 0.5]])
    elu = np.where(-x < 0, np.expm1(-x), -x)
    np.testing.assert_allclose(execute(read, {"x": x})["y"], elu @ weights, rtol=1e-5)
    back = onnx.load_from_string(written(path, read))  # the branches that these shapes take, and no other
    assert [node.op_type for node in back.graph.node if node.op_type in ("If", "Neg", "Elu", "MatMul", "Relu")] == [
        "Neg", "Elu", "MatMul"
    ]  # fmt: skip
    (made,) = onnx.reference.ReferenceEvaluator(back).run(None, {"x": x})
    np.testing.assert_allclose(made, elu @ weights, rtol=1e-5)


def test_the_largest_of_each_channel(tmp_path: Path) -> None:
    import onnx
    from onnx import helper as h

    values = [h.make_tensor_value_info("x", 1, [1, 3, 5]), h.make_tensor_value_info("y", 1, [1, 3, 1])]
    graph = h.make_graph([h.make_node("GlobalMaxPool", ["x"], ["y"])], "g", values[:1], values[1:])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)]), tmp_path / "model.onnx")
    x = np.random.default_rng(0).normal(size=(1, 3, 5)).astype(np.float32)
    made = execute(ew.load(tmp_path / "model.onnx", kind="opgraph"), {"x": x})["y"]
    assert np.array_equal(made, x.max(axis=2, keepdims=True))


# -- sparse ------------------------------------------------------------------------------------------------------------


class _Lists:
    """Stands for the tables of a file, and for what reads them."""

    path, schema = "model.tflite", None

    def numbers(self, table: object, field: str, size: int = 4) -> list[int]:
        return getattr(table, field)  # type: ignore[no-any-return]

    def claim(self, n_bytes: int) -> None:
        self.claimed = n_bytes

    def children(self, table: object, field: str) -> list[object]:
        return getattr(table, field)  # type: ignore[no-any-return]

    def fail(self, text: str) -> InputError:
        return InputError(text)


def _sparsity(monkeypatch: pytest.MonkeyPatch, matrix: np.ndarray, block: int) -> tuple[SimpleNamespace, np.ndarray]:
    """Rows dense, columns (in blocks of `block`) by lists: what the converter makes of a pruned matrix."""
    rows, columns = matrix.shape
    blocks = matrix.reshape(rows, columns // block, block)
    held = (blocks != 0).any(axis=2)
    segments, indices = np.concatenate(([0], np.cumsum(held.sum(axis=1)))), np.nonzero(held)[1]
    levels = [
        SimpleNamespace(Format=lambda: 0, DenseSize=lambda: rows),
        SimpleNamespace(Format=lambda: SPARSE, ArraySegments=segments, ArrayIndices=indices),
        SimpleNamespace(Format=lambda: 0, DenseSize=lambda: block),
    ]
    monkeypatch.setattr(
        "traces.readers.parts.tflite_sparse._list", lambda reader, level, name, at: getattr(level, name)
    )
    return SimpleNamespace(TraversalOrder=[0, 1, 2], BlockMap=[1], DimMetadata=levels), blocks[held].reshape(-1)


@pytest.mark.parametrize("block", [1, 4])
def test_sparse_constants_have_their_zeros(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    rng = np.random.default_rng(block)
    matrix = np.repeat(rng.random((6, 12 // block)) < 0.4, block, axis=1) * rng.standard_normal((6, 12))
    sparsity, values = _sparsity(monkeypatch, matrix, block)
    np.testing.assert_array_equal(dense(_Lists(), sparsity, values, matrix.shape, "w"), matrix)


def test_sparse_dimensions_beyond_the_shape_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 dimensions that share a list of 100,000 places are 180 kB of file and coordinates of 8 GB."""
    sparsity, values = _sparsity(monkeypatch, np.eye(4), 1)
    sparsity.DimMetadata[1].ArraySegments = np.array([0, 0, 0, 0, 17])
    sparsity.DimMetadata[1].ArrayIndices = np.zeros(17, np.int64)
    with pytest.raises(InputError, match="17 positions in its dimension 1, its shape has 16"):
        dense(_Lists(), sparsity, values, (4, 4), "w")
    many = SimpleNamespace(TraversalOrder=[*range(65)], BlockMap=[], DimMetadata=sparsity.DimMetadata[:1] * 65)
    with pytest.raises(InputError, match="do not fit its shape"):
        dense(_Lists(), many, values, (1,) * 65, "w")
    reader = _Lists()
    dense(reader, *_sparsity(monkeypatch, np.eye(4), 1), (4, 4), "w")
    assert reader.claimed == 16 * 8  # with all constants before


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ArraySegments", lambda a: a[::-1]),
        ("ArraySegments", lambda a: np.concatenate((a[:1], a[1:-1] - 2**62, a[-1:]))),
        ("ArraySegments", lambda a: a[:-1]),
        ("ArrayIndices", lambda a: a + 9),
        ("ArrayIndices", lambda a: a - 9),
    ],
)
def test_contradicting_sparse_lists_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, change: object) -> None:
    matrix = np.eye(6, 12)
    sparsity, values = _sparsity(monkeypatch, matrix, 4)
    level = sparsity.DimMetadata[1]
    setattr(level, name, change(getattr(level, name)))  # type: ignore[operator]
    with pytest.raises(InputError, match=r"damaged|segments of its dimension"):
        dense(_Lists(), sparsity, values, matrix.shape, "w")
