"""Rewritten graphs compute what the original ones compute: integers exactly, float32 to rounding."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reorder.operators.rewriting.lowering import lowered
from reorder.operators.rewriting.rewrite import PATTERNS, rewrite_graph
from reorder.operators.schedule.operator_problem import footprint
from reorder.operators.schedule.schedule import schedule
from tests.oracles.random_graphs import random_order
from traces.base.errors import InputError
from traces.generators.operators import GENOTYPES, cell, randwire
from traces.operators.execute import execute
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor
from traces.readers import load

SUBSETS = [subset for k in range(1, 5) for subset in combinations(PATTERNS, k)]


@st.composite
def networks(draw: st.DrawFn) -> OpGraph:
    """Small convolutional networks with concatenations, depthwise convolutions and additions, integer weights."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    side = draw(st.integers(2, 4))
    nodes: list[Operator] = []
    constants: dict[str, np.ndarray] = {}
    channels: dict[str, int] = {}

    def add(op: str, inputs: tuple[str, ...], width: int, weights: tuple[int, ...] = (), **attributes: object) -> str:
        name = f"{op.lower()}{len(nodes)}"
        given = ()
        if weights:
            constants[f"{name}/w"] = random.integers(-4, 5, weights)
            constants[f"{name}/b"] = random.integers(-9, 10, width)
            given = (f"{name}/w", f"{name}/b")
        tensor = Tensor(name, (1, side, side, width), side * side * width, name)
        nodes.append(Operator(name, op, tuple(dict.fromkeys(inputs)), (tensor,), given, attributes))
        channels[name] = width
        return name

    tensors = [add(INPUT, (), draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(["conv", "conv", "concat", "depthwise", "add"]))
        activation = draw(st.sampled_from(["NONE", "NONE", "RELU"]))
        source = draw(st.sampled_from(tensors))
        if kind == "concat":
            parts = draw(st.lists(st.sampled_from(tensors), min_size=2, max_size=3))
            joined = add("CONCATENATION", tuple(parts), sum(channels[p] for p in parts), axis=3, operands=tuple(parts))
            for _ in range(draw(st.integers(1, 2))):
                k = draw(st.sampled_from([1, 3]))
                if draw(st.booleans()):
                    tensors.append(add("CONV_2D", (joined,), 2, (2, k, k, channels[joined]), padding="SAME",
                                       activation=activation))  # fmt: skip
                else:
                    width = channels[joined] * draw(st.integers(1, 2))
                    tensors.append(add("DEPTHWISE_CONV_2D", (joined,), width, (1, k, k, width), padding="SAME",
                                       activation=activation))  # fmt: skip
        elif kind == "depthwise":
            width = channels[source]
            tensors.append(add("DEPTHWISE_CONV_2D", (source,), width, (1, 3, 3, width), padding="SAME"))
        elif kind == "conv":
            width = draw(st.integers(1, 3))
            tensors.append(add("CONV_2D", (source,), width, (width, 1, 1, channels[source]), activation=activation))
        else:
            ends = [add("CONV_2D", (draw(st.sampled_from(tensors)),), 2) for _ in range(2)]
            for end in ends:
                node = next(n for n in nodes if n.name == end)
                constants[f"{end}/w"] = random.integers(-4, 5, (2, 1, 1, channels[node.inputs[0]]))
                nodes[nodes.index(node)] = Operator(end, "CONV_2D", node.inputs, node.outputs, (f"{end}/w",))
            tensors.append(add("ADD", tuple(ends), 2, activation=activation, operands=tuple(ends)))
    used = {name for node in nodes for name in node.inputs}
    outputs = tuple(node.name for node in nodes if node.name not in used)
    return OpGraph("net", tuple(nodes), outputs, constants, allow_disconnected=True)


@settings(max_examples=80, deadline=None)
@given(networks(), st.sampled_from(SUBSETS), st.integers(0, 2**32))
def test_rewriting_keeps_every_output(graph: OpGraph, patterns: tuple[str, ...], seed: int) -> None:
    random = np.random.default_rng(seed)
    first = graph.nodes[0].output
    x = random.integers(-9, 10, first.shape)
    rewritten = rewrite_graph(graph, patterns)
    # parts may run in any order: take one at random
    order = random_order(rewritten, random)
    before = execute(graph, {first.name: x}, integers=True)
    after = execute(rewritten, {first.name: x}, integers=True, order=order)
    assert len(graph.outputs) <= len(rewritten.outputs)
    for name, other in zip(graph.outputs, _outputs_of(graph, rewritten), strict=True):
        assert np.array_equal(before[name], after[other])
    smooth = {first.name: x / 7}
    before, after = execute(graph, smooth), execute(rewritten, smooth, order=order)
    for name, other in zip(graph.outputs, _outputs_of(graph, rewritten), strict=True):
        # sums of at most a few hundred terms in another order: relative to the largest value
        scale = max(1.0, float(np.abs(before[name]).max()))
        assert np.abs(before[name] - after[other]).max() <= 1e-5 * scale


@settings(max_examples=80, deadline=None)
@given(networks(), st.sampled_from(SUBSETS), st.integers(0, 2**32))
def test_operators_that_files_have_compute_the_same(graph: OpGraph, patterns: tuple[str, ...], seed: int) -> None:
    rewritten = schedule(rewrite_graph(graph, patterns))
    made = lowered(rewritten.graph, graph, rewritten.order)
    assert set(made.outputs) == set(graph.outputs)
    assert not any(node.op.startswith("PARTIAL") or "gather" in node.attributes for node in made.nodes)
    rng = np.random.default_rng(seed)
    x = {node.name: rng.integers(-5, 6, node.output.shape) for node in graph.nodes if node.op == INPUT}
    expected = execute(graph, x, integers=True)
    for order in (None, schedule(made).order):
        found = execute(made, x, integers=True, order=order)
        assert all(np.array_equal(expected[name], found[name]) for name in graph.outputs)


def _outputs_of(graph: OpGraph, rewritten: OpGraph) -> list[str]:
    """The rewritten graph's tensor for each output: the same name, or the buffer's last part."""
    return [
        name if name in rewritten.tensors else next(o for o in rewritten.outputs if rewritten.tensors[o].buffer == name)
        for name in graph.outputs
    ]


@settings(max_examples=60, deadline=None)
@given(networks(), st.sampled_from(["fold-concat", "channel-wise", "all"]))
def test_rewriting_never_needs_more_memory(graph: OpGraph, patterns: str) -> None:
    assert schedule(graph, rewrite=patterns).peak_bytes <= schedule(graph).peak_bytes


def test_published_swiftnet_computes_the_same_rewritten(reference: Path) -> None:
    graph = load(reference / "models" / "swiftnet_vww_uint8.tflite")
    name = graph.nodes[0].output
    x = np.random.default_rng(0).normal(size=name.shape).astype(np.float32)
    before = execute(graph, {name.name: x})[graph.outputs[0]]
    assert before.sum() == pytest.approx(1, abs=1e-5)
    for patterns in ("fold-concat", "channel-wise", "all"):
        found = schedule(graph, rewrite=patterns)
        after = execute(found.graph, {name.name: x}, order=found.order.tolist())[found.graph.outputs[0]]
        assert np.abs(before - after).max() < 1e-5


@pytest.mark.parametrize(("name", "kind"), [(f"{g}_cell1", g) for g in ("darts_v2", "amoebanet")])
def test_cells_equal_the_reference(reference: Path, name: str, kind: str) -> None:
    import json

    expected = json.loads((reference / "schedule" / f"{name}_concat.json").read_text())
    graph = cell(kind)
    assert [(n.name, n.op, n.inputs, list(n.output.shape), n.output.n_bytes) for n in graph.nodes] == [
        (n["name"], n["op"], tuple(n["inputs"]), n["shape"], n["bytes"]) for n in expected["nodes"]
    ]
    assert list(graph.outputs) == expected["outputs"]


def test_generated_graphs_equal_the_reference(reference: Path) -> None:
    import json

    folded = json.loads((reference / "schedule" / "nasnet_cell1_folded.json").read_text())
    assert [n.name for n in rewrite_graph(cell("nasnet"), "fold-concat").nodes] == [n["name"] for n in folded["nodes"]]
    for name, options in {
        "er32_seed0": {"kind": "er"}, "ba32_seed0": {"kind": "ba"}, "ws32_seed0": {}, "ws32_seed2": {"seed": 2},
        "ws32_seed0_expanded": {"expanded": True}, "ws32x3_set0": {"stages": 3}, "ws48_seed0": {"n": 48},
        "ws64_seed0": {"n": 64},
    }.items():  # fmt: skip
        expected = json.loads((reference / "schedule" / f"randwire_{name}.json").read_text())
        assert [
            (n.name, n.op, n.inputs, list(n.output.shape), n.output.n_bytes) for n in randwire(**options).nodes
        ] == [(n["name"], n["op"], tuple(n["inputs"]), n["shape"], n["bytes"]) for n in expected["nodes"]], name


def test_every_genotype_schedules_and_bad_ones_are_named() -> None:
    for name in GENOTYPES:
        found = schedule(cell(name, channels=8, size=8))
        assert found.proved
        assert found.peak_bytes <= footprint(found.graph).peak_bytes
    with pytest.raises(InputError, match=r"genotype 'dart_v2' \(did you mean 'darts_v2'\?\)"):
        cell("dart_v2")
    with pytest.raises(InputError, match=r"cell operation 'sep_conv_9x9'"):
        cell(((("sep_conv_9x9", 0), ("skip_connect", 1)), (2,)))
    with pytest.raises(InputError, match="node n2 reads node 5"):
        cell(((("skip_connect", 5), ("skip_connect", 1)), (2,)))
    with pytest.raises(InputError, match="random graph 'wz'"):
        randwire("wz")
    with pytest.raises(InputError, match="cannot be halved 6 times"):
        randwire(stages=6)
