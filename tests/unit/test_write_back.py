"""Models written back in a schedule's order: what the files hold, and that interpreters compute the same bits."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import edgewatt as ew
from edgewatt.operators.write_back import write_back
from reorder.operators.arena.base import Buffers
from tests.branching_models import SIDE, onnx_cells, tflite_cells
from tests.model_files import BRANCHES, MLP, make_tflite
from tests.oracles.arena_oracle import height_of
from traces.base.errors import InputError
from traces.readers.parts.tflite_writing import NAME
from traces.readers.reader import written

MODELS = Path(os.environ.get("EDGEWATT_REFERENCE", "/nowhere")) / "models"
BIG = ("mlperf_tiny_resnet8_int8", "mlperf_tiny_ad01_fp32", "swiftnet_vww_uint8")

WAVES = make_tflite(
    [("RELU", [0], [1]), ("LOGISTIC", [0], [2]), ("TANH", [1], [3]), ("LOGISTIC", [2], [4]), ("ADD", [3, 4], [5])],
    [(name, (1, 8)) for name in ("x", "a", "b", "c", "d", "y")],
)


def _schema(data: bytes):
    import tflite as schema

    return schema.Model.GetRootAs(data, 0)


def offsets_of(model) -> list[int] | None:
    """The offsets that a file holds for its first subgraph, None where it holds none."""
    for i in range(model.MetadataLength()):
        if model.Metadata(i).Name() == NAME.encode():
            words = np.frombuffer(bytes(model.Buffers(model.Metadata(i).Buffer()).DataAsNumpy()), "<i4").tolist()
            if words[1] == 0:
                return words[3 : 3 + words[2]]
    return None


def _values(shape, dtype) -> np.ndarray:
    rng = np.random.default_rng(7)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 127, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def _litert(file: Path) -> list[np.ndarray]:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    run = interpreter.Interpreter(model_path=str(file))
    run.allocate_tensors()
    for given in run.get_input_details():
        run.set_tensor(given["index"], _values(given["shape"], given["dtype"]))
    run.invoke()
    return [run.get_tensor(made["index"]) for made in run.get_output_details()]


def _micro(data: bytes) -> np.ndarray:
    runtime = pytest.importorskip("tflite_micro", reason="needs tflite-micro").runtime
    run = runtime.Interpreter.from_bytes(data, arena_size=1 << 20)
    given = run.get_input_details(0)
    run.set_input(_values(given["shape"], given["dtype"]), 0)
    run.invoke()
    return run.get_output(0)


def _written(data: bytes, tmp_path: Path) -> tuple[Path, Path, ew.operators.OpGraph, object]:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    before.write_bytes(data)
    graph = ew.load(before, kind="opgraph")
    result = ew.schedule(graph)
    write_back(str(before), graph, result, after)
    return before, after, graph, result


@pytest.mark.parametrize("data", [BRANCHES, MLP], ids=["branches", "mlp"])
def test_the_offsets_are_a_placement_of_the_schedule(data: bytes, tmp_path: Path) -> None:
    _, after, graph, result = _written(data, tmp_path)
    again = ew.load(after, kind="opgraph")
    assert [n.name for n in again.nodes] == result.names
    assert set(again.constants) == set(graph.constants)
    assert all(np.array_equal(again.constants[k], graph.constants[k]) for k in graph.constants)
    model = _schema(after.read_bytes())
    found = offsets_of(model)
    assert found is not None and len(found) == model.Subgraphs(0).TensorsLength()
    names = [model.Subgraphs(0).Tensors(i).Name().decode() for i in range(len(found))]
    at = dict(zip(names, found, strict=True))
    assert all(at[name] == -1 for name in graph.constants)
    lower, upper = {}, {}
    for step, node in enumerate(again.nodes):
        for tensor in node.outputs:
            lower[tensor.name], upper[tensor.name] = step, step + 1
        for name in node.inputs:
            upper[name] = step + 1
    upper |= dict.fromkeys(again.outputs, len(again.nodes))
    keys = list(lower)
    sizes = [again.tensors[k].n_bytes for k in keys]
    placed = Buffers.of([lower[k] for k in keys], [upper[k] for k in keys], sizes)
    assert height_of(placed, np.array([at[k] for k in keys])) == result.arena_bytes


def test_written_twice_the_file_holds_one_plan(tmp_path: Path) -> None:
    _, after, _, _ = _written(BRANCHES, tmp_path)
    twice = tmp_path / "twice.tflite"
    graph = ew.load(after, kind="opgraph")
    write_back(str(after), graph, ew.schedule(graph), twice)
    model = _schema(twice.read_bytes())
    assert model.MetadataLength() == 1
    assert offsets_of(model) == offsets_of(_schema(after.read_bytes()))
    assert twice.read_bytes()[4:8] == b"TFL3"


@pytest.mark.parametrize("data", [WAVES, MLP], ids=["waves", "mlp"])
def test_tensorflow_lite_computes_the_same(data: bytes, tmp_path: Path) -> None:
    before, after, _, _ = _written(data, tmp_path)
    expected, found = _litert(before), _litert(after)
    assert len(expected) == len(found) and all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("name", BIG)
def test_tensorflow_lite_computes_the_same_on_real_models(name: str, tmp_path: Path) -> None:
    if not MODELS.is_dir():
        pytest.skip("no reference data: set EDGEWATT_REFERENCE")
    before, after, _, _ = _written((MODELS / f"{name}.tflite").read_bytes(), tmp_path)
    assert all(np.array_equal(a, b) for a, b in zip(_litert(before), _litert(after), strict=True))


@pytest.mark.parametrize("name", BIG[:2])  # the third one's hybrid kernels are not supported there
def test_the_runtime_for_microcontrollers_plans_by_the_offsets(name: str, tmp_path: Path) -> None:
    if not MODELS.is_dir():
        pytest.skip("no reference data: set EDGEWATT_REFERENCE")
    before, after, graph, result = _written((MODELS / f"{name}.tflite").read_bytes(), tmp_path)
    expected = _micro(before.read_bytes())
    assert np.array_equal(_micro(after.read_bytes()), expected)
    wrong = written(before, graph.in_order(result.order), dict.fromkeys(graph.tensors, 0))
    assert not np.array_equal(_micro(wrong), expected)  # every tensor at 0: the offsets are really used


def _onnx(tmp_path: Path) -> Path:
    onnx = pytest.importorskip("onnx", reason="needs onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    w = {"w1": (4, 6), "w2": (4, 6), "v": (12, 3)}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("MatMul", ["x", "w2"], ["b"]),
        helper.make_node("Constant", [], ["half"], value=numpy_helper.from_array(np.float32(0.5))),
        helper.make_node("Relu", ["a"], ["ar"]),
        helper.make_node("Mul", ["b", "half"], ["bh"]),
        helper.make_node("Concat", ["ar", "bh"], ["c"], axis=1),
        helper.make_node("MatMul", ["c", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("N", 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("N", 3))],
        [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), n) for n, s in w.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_an_onnx_model_in_another_order(tmp_path: Path) -> None:
    file = _onnx(tmp_path)
    graph = ew.load(file, kind="opgraph", batch=2)
    first = [i for i, n in enumerate(graph.nodes) if n.name in ("x", "b", "bh")]
    data = written(file, graph.in_order([*first, *(i for i in range(graph.n_nodes) if i not in first)]))
    moved = tmp_path / "moved.onnx"
    moved.write_bytes(data)
    again = ew.load(moved, kind="opgraph", batch=2)
    assert [n.name for n in again.nodes if n.op != "INPUT"][:2] == ["b", "bh"]
    x = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    from onnx.reference import ReferenceEvaluator

    expected = ReferenceEvaluator(str(file)).run(None, {"x": x})[0]
    assert np.array_equal(ReferenceEvaluator(str(moved)).run(None, {"x": x})[0], expected)
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    runs = [
        runtime.InferenceSession(str(f), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for f in (file, moved)
    ]
    assert np.array_equal(*runs)


def test_what_cannot_be_written_back_is_refused(tmp_path: Path) -> None:
    file = _onnx(tmp_path)
    loaded = ew.load(file, kind="opgraph", batch=1)
    fewer = loaded.with_(nodes=tuple(n for n in loaded.nodes if n.name in ("x", "a")), outputs=("a",))
    with pytest.raises(InputError, match="has no tensor 'y', which is a result of the model"):
        written(file, fewer)
    other = tuple(replace(n, op="SUB", attributes={"like": ""}) if n.name == "bh" else n for n in loaded.nodes)
    with pytest.raises(InputError, match=r"operator 'bh' \(SUB\) is not in the model: only ADD, CONCATENATION can"):
        written(file, loaded.with_(nodes=other))
    graph = tmp_path / "g.json"
    graph.write_text(
        '{"name": "g", "nodes": [{"name": "x", "op": "INPUT", "inputs": [], "shape": [1], "bytes": 1}], '
        '"outputs": ["x"]}'
    )
    with pytest.raises(InputError, match=r"\.json files cannot be written back"):
        written(graph, ew.load(graph, kind="opgraph"))


def test_the_batch_of_an_open_dimension(tmp_path: Path) -> None:
    file = _onnx(tmp_path)
    assert ew.load(file, kind="opgraph", batch=3).tensors["c"].shape == (3, 12)
    graph = ew.load(file, kind="opgraph")
    assert graph.tensors["c"].shape == (1, 12) and "taken as 1 (--batch sets it)" in graph.notes[0]
    with pytest.raises(InputError, match="batch is 0: a whole number of at least 1"):
        ew.load(file, kind="opgraph", batch=0)
    model = tmp_path / "m.tflite"
    model.write_bytes(MLP)
    with pytest.raises(InputError, match=r"batch and shapes are for \.onnx files"):
        ew.load(model, kind="opgraph", batch=1)


# -- rewritten graphs --------------------------------------------------------------------------------------------------


def _rewritten(file: Path, patterns: tuple[str, ...]) -> tuple[Path, ew.operators.OpGraph, object, object]:
    after = file.with_name(f"rewritten{file.suffix}")
    graph = ew.load(file, kind="opgraph")
    result = ew.schedule(graph, rewrite=patterns)
    return after, graph, result, write_back(str(file), graph, result, after, rewrite=patterns)


def _close(expected: list[np.ndarray], found: list[np.ndarray]) -> None:
    """Sums in another order: some units in the last place of the largest value."""
    for a, b in zip(expected, found, strict=True):
        assert np.abs(a - b).max() <= 2e-6 * np.abs(a).max() and np.abs(a).max() > 1


@pytest.mark.parametrize("patterns", [("all",), ("channel-wise", "kernel-wise"), ("all", "in-place")])
def test_a_rewritten_tflite_model_computes_the_same_in_less_memory(patterns: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "cells.tflite"
    file.write_bytes(tflite_cells())
    after, graph, result, back = _rewritten(file, patterns)
    assert result.peak_bytes <= back.peak_bytes < ew.schedule(graph).peak_bytes and not back.whole
    again = ew.load(after, kind="opgraph")
    assert len(again.nodes) - 1 == back.operators and again.outputs == graph.outputs
    assert ew.schedule(again, rewrite="in-place").peak_bytes == back.peak_bytes
    assert all("[" in name or name in graph.constants for name in again.constants)
    assert after.stat().st_size < 1.3 * file.stat().st_size  # new weights stand where the old ones were
    _close(_litert(file), _litert(after))


def test_a_rewritten_model_runs_by_its_offsets(tmp_path: Path) -> None:
    file = tmp_path / "cells.tflite"
    file.write_bytes(tflite_cells())
    after, _, _, back = _rewritten(file, ("all",))
    found = offsets_of(_schema(after.read_bytes()))
    assert found is not None and max(found) < back.arena_bytes
    _close([_micro(file.read_bytes())], [_micro(after.read_bytes())])


def test_integers_are_split_where_that_is_exact_and_else_stay_whole_by_name(tmp_path: Path) -> None:
    file = tmp_path / "cells.tflite"
    file.write_bytes(tflite_cells("int8"))
    with pytest.raises(InputError, match=r"nothing of the rewriting .*'c0/one' stays whole: its partial sums would be"):
        _rewritten(file, ("all",))
    file.write_bytes(tflite_cells("int8", depthwise_only=True))
    after, graph, _, back = _rewritten(file, ("all",))
    assert set(back.whole) == {"c0/one", "c1/one"} and all("rounded to int8" in why for why in back.whole.values())
    kinds = [node.op for node in ew.load(after, kind="opgraph").nodes]
    assert kinds.count("DEPTHWISE_CONV_2D") == 4 and kinds.count("CONV_2D") == sum(
        n.op == "CONV_2D" for n in graph.nodes
    )
    assert all(np.array_equal(a, b) for a, b in zip(_litert(file), _litert(after), strict=True))
    assert np.array_equal(_micro(file.read_bytes()), _micro(after.read_bytes()))
    file.write_bytes(tflite_cells("int8", depthwise_only=True, scales=(0.05, 0.06)))
    with pytest.raises(InputError, match=r"'c0/right' has another scale than the tensor that it is a part of"):
        _rewritten(file, ("kernel-wise",))


@pytest.mark.parametrize("batch", [1, "N"])
def test_a_rewritten_onnx_model_computes_the_same_in_less_memory(batch: int | str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="needs onnx")
    from onnx.reference import ReferenceEvaluator

    file, after = onnx_cells(tmp_path / "cells.onnx", batch=batch), tmp_path / "after.onnx"
    graph = ew.load(file, kind="opgraph", batch=2 if batch == "N" else None)
    result = ew.schedule(graph, rewrite="all")
    back = write_back(str(file), graph, result, after, rewrite="all")
    assert result.peak_bytes <= back.peak_bytes < ew.schedule(graph).peak_bytes
    onnx.checker.check_model(str(after), full_check=True)
    names = {t.name for t in onnx.load(after).graph.initializer}
    assert names == {
        name for node in onnx.load(after).graph.node for name in node.input if "/w" in name or "/b" in name
    }
    x = {"x": np.random.default_rng(1).normal(size=(1 if batch == 1 else 2, 4, SIDE, SIDE)).astype(np.float32)}
    _close(ReferenceEvaluator(str(file)).run(None, x), ReferenceEvaluator(str(after)).run(None, x))
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    sessions = [runtime.InferenceSession(str(f), providers=["CPUExecutionProvider"]) for f in (file, after)]
    _close(*(session.run(None, x) for session in sessions))


def test_what_is_computed_again_is_written_back(tmp_path: Path) -> None:
    file, after = onnx_cells(tmp_path / "cells.onnx"), tmp_path / "after.onnx"
    graph = ew.load(file, kind="opgraph")
    node = next(n for n in graph.nodes if n.name == "c0/left/relu")
    copy = replace(node, name="again", outputs=(replace(node.output, name="again", buffer="again"),))
    copy = replace(copy, attributes={**node.attributes, "like": node.name})
    concat = next(n for n in graph.nodes if n.op == "CONCATENATION")
    reading = replace(concat, inputs=("again", concat.inputs[1]),
                      attributes={**concat.attributes, "operands": ("again", concat.inputs[1])})  # fmt: skip
    at = graph.nodes.index(concat)
    changed = graph.with_(nodes=(*graph.nodes[:at], copy, reading, *graph.nodes[at + 1 :]), outputs=(*graph.outputs,))
    kept = changed.with_(nodes=tuple(n for n in changed.nodes if n.name != node.name))
    write_back(str(file), graph, ew.schedule(kept), after)
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    x = {"x": np.random.default_rng(1).normal(size=(1, 4, SIDE, SIDE)).astype(np.float32)}
    found = [
        runtime.InferenceSession(str(f), providers=["CPUExecutionProvider"]).run(None, x)[0] for f in (file, after)
    ]
    assert np.array_equal(*found)


def test_computed_weights_and_groups_are_no_parts_of_an_operand(tmp_path: Path) -> None:
    conv = ("Conv2DOptions", {"StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1})
    tensors = [
        ("x", (1, 4, 4, 4)),
        ("k", (2, 1, 1, 4), "float16"),
        ("w", (2, 1, 1, 4)),
        ("b", (2,)),
        ("y", (1, 4, 4, 2)),
    ]
    file = tmp_path / "half.tflite"
    file.write_bytes(make_tflite([("DEQUANTIZE", [1], [2]), ("CONV_2D", [0, 2, 3], [4], *conv)], tensors,
                                 {1: np.ones((2, 1, 1, 4)), 3: [1, 2]}))  # fmt: skip
    graph = ew.load(file, kind="opgraph")
    assert [n.name for n in ew.schedule(graph, rewrite="all").graph.nodes] == [n.name for n in graph.nodes]
    tensors = [
        ("x", (1, 4, 4, 2)),
        ("r", (1, 4, 4, 2)),
        ("c", (1, 4, 4, 4)),
        ("w", (6, 1, 1, 2)),
        ("b", (6,)),
        ("y", (1, 4, 4, 6)),
    ]
    file.write_bytes(make_tflite(
        [("RELU", [0], [1]), ("CONCATENATION", [0, 1], [2], "ConcatenationOptions", {"Axis": 3}),
         ("CONV_2D", [2, 3, 4], [5], *conv)], tensors, {3: np.ones((6, 1, 1, 2)), 4: np.ones(6)},
    ))  # fmt: skip
    graph = ew.load(file, kind="opgraph")
    assert graph.nodes[-1].attributes["groups"] == 2
    assert not any(n.op.startswith("PARTIAL") for n in ew.schedule(graph, rewrite="all").graph.nodes)


def test_a_convolution_of_constants_is_written_back(tmp_path: Path) -> None:
    """It has no operand in memory to take its groups from."""
    onnx = pytest.importorskip("onnx", reason="needs onnx")
    helper, file = onnx.helper, tmp_path / "constant.onnx"
    shapes = {"c": (1, 2, 4, 4), "w": (2, 1, 3, 3)}
    made = helper.make_graph(
        [
            helper.make_node("Conv", ["c", "w"], ["y"], group=2),
            helper.make_node("Add", ["y", "x"], ["z"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", 1, (1, 2, 2, 2))],
        [helper.make_tensor_value_info("z", 1, (1, 2, 2, 2))],
        [helper.make_tensor(name, 1, shape, np.ones(shape).ravel()) for name, shape in shapes.items()],
    )
    file.write_bytes(helper.make_model(made).SerializeToString())
    data = written(file, ew.load(file, kind="opgraph"))
    (group,) = onnx.load_from_string(data).graph.node[0].attribute
    assert (group.name, group.i) == ("group", 2)


def test_a_damaged_model_is_an_input_error(tmp_path: Path) -> None:
    """References beyond the file in parts that reading does not follow: they were struct.error and TypeError."""
    data, refused, file = bytes(MLP), 0, tmp_path / "m.tflite"
    for place in range(8, len(data) - 4, 4):
        for word in (b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\0\x40\0\0"):
            file.write_bytes(data[:place] + word + data[place + 4 :])
            try:
                graph = ew.load(file, kind="opgraph")
                write_back(str(file), graph, ew.schedule(graph), tmp_path / "o.tflite")
            except InputError as error:
                refused += 1
                assert len(str(error)) < 500
    assert refused > len(data) // 4
