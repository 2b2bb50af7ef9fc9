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
from traces.readers import tflite
from traces.readers.parts.tflite_sparse import SPARSE, dense


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
    back = ew.load(write(tmp_path, tflite.write(path, graph)), kind="opgraph")
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
    assert tflite.write(path, graph)


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


# -- sparse ------------------------------------------------------------------------------------------------------------


class _Lists:
    """Stands for the tables of a file, and for what reads them."""

    path, schema = "model.tflite", None

    def numbers(self, table: object, field: str, size: int = 4) -> list[int]:
        return getattr(table, field)  # type: ignore[no-any-return]

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
    with pytest.raises(InputError, match="damaged"):
        dense(_Lists(), sparsity, values, matrix.shape, "w")
