"""Shared storage, recomputation: whatever order runs, nobody reads what was overwritten, and results are equal."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from reorder.operators.rewriting.rewrite import IN_PLACE, VIEWS, rewrite_graph
from reorder.operators.schedule.operator_problem import OperatorProblem
from tests.model_files import make_tflite
from tests.oracles.random_graphs import random_order
from tests.property.test_schedule_rewrite import networks
from traces.base.errors import InputError
from traces.operators.execute import execute
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor


@st.composite
def graphs(draw: st.DrawFn) -> OpGraph:
    nodes = [Operator("x", INPUT, (), (Tensor("x", (8,), 8, "x"),))]
    for k in range(draw(st.integers(1, 7))):
        op = draw(st.sampled_from([*IN_PLACE, *VIEWS, "RELU", "CONV_2D"]))
        count = 2 if op in ("ADD", "SUB", "MUL", "DIV") else 1
        operands = tuple(draw(st.sampled_from([n.name for n in nodes])) for _ in range(count))
        size = nodes[0].output.n_bytes if op in VIEWS or draw(st.booleans()) else draw(st.sampled_from([4, 8, 16]))
        nodes.append(
            Operator(f"t{k}", op, tuple(dict.fromkeys(operands)), (Tensor(f"t{k}", (size,), size, f"t{k}"),), (),
                     {"operands": operands})
        )  # fmt: skip
    read = {name for node in nodes for name in node.inputs}
    outputs = tuple(n.name for n in nodes if n.name not in read) or (nodes[-1].name,)
    return OpGraph("g", tuple(nodes), outputs, allow_disconnected=True)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.sampled_from(["views", "in-place"]), st.integers(0, 99))
def test_nobody_reads_what_was_overwritten(graph: OpGraph, pattern: str, seed: int) -> None:
    shared = rewrite_graph(graph, pattern)
    assert [n.name for n in shared.nodes] == [n.name for n in graph.nodes]
    rng = np.random.default_rng(seed)
    for _ in range(4):
        order = random_order(shared, rng)
        OperatorProblem(shared).check_order(np.array(order))
        holds: dict[str, str] = {}  # buffer -> the value that is in it; a view leaves its operand's there
        value: dict[str, str] = {}
        for v in order:
            node = shared.nodes[v]
            for name in node.inputs:
                assert holds[shared.tensors[name].buffer] == value[name], (name, node.name)
            out = node.output
            kept = node.op in VIEWS and out.buffer == shared.tensors[node.inputs[0]].buffer
            value[out.name] = value[node.inputs[0]] if kept else out.name
            holds[out.buffer] = value[out.name]
        for name in shared.outputs:
            assert holds[shared.tensors[name].buffer] == value[name]
    assert ew.schedule(shared).peak_bytes <= ew.schedule(graph).peak_bytes


def test_the_rules_of_tensorflow_lite() -> None:
    def graph(op: str, **changes: object) -> OpGraph:
        t = [Tensor(n, (100,), 100, n) for n in ("x", "a", "b", "y", "z")]
        return OpGraph("g", (
            Operator("x", INPUT, (), (t[0],)), Operator("a", "CONV_2D", ("x",), (t[1],)),
            Operator("b", "CONV_2D", ("a",), (t[2],)), Operator("y", op, ("b", "a"), (t[3],)),
            Operator("z", "CONV_2D", ("y",), (t[4],)),
        ), ("z",))  # fmt: skip

    shared = rewrite_graph(graph("ADD"), "in-place")
    assert shared.tensors["y"].buffer == "b"  # a has another reader
    assert ew.schedule(graph("ADD")).peak_bytes == 300
    assert ew.schedule(shared).peak_bytes == 200
    assert rewrite_graph(graph("RELU"), "in-place").tensors["y"].buffer == "y"  # its kernels do not declare it
    assert rewrite_graph(graph("ADD"), "views").tensors["y"].buffer == "y"
    with pytest.raises(InputError, match="did you mean 'in-place'"):
        rewrite_graph(graph("ADD"), "inplace")


@settings(max_examples=40, deadline=None)
@given(networks())
def test_sharing_after_rewriting_computes_the_same(graph: OpGraph) -> None:
    rng = np.random.default_rng(0)
    x = {n.output.name: rng.integers(-5, 6, n.output.shape) for n in graph.nodes if n.op == INPUT}
    expected = execute(graph, x, integers=True)
    for patterns in (("in-place",), ("all", "in-place")):
        shared = rewrite_graph(graph, patterns)
        found = execute(shared, x, integers=True, order=random_order(shared, rng))
        if patterns == ("in-place",):
            assert all(np.array_equal(found[name], expected[name]) for name in graph.outputs)
        assert ew.schedule(shared).peak_bytes <= ew.schedule(rewrite_graph(graph, patterns[:-1])).peak_bytes


@pytest.mark.parametrize(
    "op",
    ["ADD", "SUB", "MUL", "DIV", "SOFTMAX", "SQUEEZE", "BITCAST", "RELU", "LOGISTIC", "MAXIMUM", "ABS", "LEAKY_RELU"],
)
def test_tensorflow_lite_shares_what_we_share(op: str, tmp_path: Path) -> None:
    """The addresses that its interpreter gives, without delegates."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="needs ai-edge-litert")
    two = op in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM")
    operators = [("RELU", [0], [1]), ("TANH", [0], [2]), (op, [1, 2] if two else [1], [3]), ("RELU", [3], [4])]
    operators += [] if two else [("RELU", [2], [5])]
    names = ("x", "a", "b", "y", "z") if two else ("x", "a", "b", "y", "z", "w")
    data = make_tflite(operators, [(n, (1, 64)) for n in names], outputs=(4,) if two else (4, 5))
    plain = interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    run = interpreter.Interpreter(model_content=data, experimental_op_resolver_type=plain)
    run.allocate_tensors()
    at = [run.tensor(k)().ctypes.data for k in range(4)]
    (tmp_path / "m.tflite").write_bytes(data)
    shared = rewrite_graph(ew.load(tmp_path / "m.tflite", kind="opgraph"), "in-place")
    assert (at[3] == at[1]) == (shared.tensors["y"].buffer == "a")
    assert (at[3] == at[2]) == (shared.tensors["y"].buffer == "b")
