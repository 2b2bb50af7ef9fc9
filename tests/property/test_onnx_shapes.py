"""Rules for shapes of ONNX operators say what ONNX's own inference says, or nothing."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx")

from traces.readers.parts.onnx_inference import Inference, Signature  # noqa: E402
from traces.readers.parts.onnx_shapes import OF_ONE_TYPE, PAIRS, SAME, result_type  # noqa: E402

helper, numpy_helper = onnx.helper, onnx.numpy_helper
OPERATORS = sorted(
    {*SAME, *PAIRS, *OF_ONE_TYPE, "AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool", "Flatten",
     "Transpose", "Reshape", "ReduceMax", "ReduceMean", "ReduceSum"}
)  # fmt: skip
INTS = ("strides", "dilations", "kernel_shape", "pads", "axes", "perm")


@pytest.fixture(scope="module")
def inference() -> Iterator[Inference]:
    with Inference(onnx, Path("m.onnx")) as made:
        yield made


def node_of(op: str, opset: int, rng: random.Random) -> tuple[Any, list[tuple[int, ...]], list[int], list[Any]] | None:
    """Return a node with shapes, kinds and values of its operands: most make sense, some do not."""
    schema = onnx.defs.get_schema(op, opset, "")
    rank = rng.choice(
        (2, 2, 2, 1, 3)
        if op == "Gemm"
        else (3, 4, 4, 4, 5, 2)
        if "kernel_shape" in schema.attributes
        else (1, 2, 2, 3, 4, 5)
    )
    x = tuple(rng.choice((1, 2, 3, 4, 5, 8, 9)) for _ in range(rank))
    sides = max(0, rank - 2)
    shapes, count = [x], rng.randrange(max(1, schema.min_input), min(schema.max_input, 5) + 1)
    while len(shapes) < count:
        shapes.append(
            rng.choice((x, x[1:2], (x[0],), x[::-1], tuple(rng.choice((1, side)) for side in x[rng.randrange(rank) :])))
        )
    attributes: dict[str, Any] = {}
    for name, known in schema.attributes.items():
        if not known.required and rng.random() < 0.5:
            continue
        kind = int(known.type)
        if name in ("axes", "perm"):
            attributes[name] = rng.sample(range(rank), rank if name == "perm" else rng.randrange(rank + 1))
            attributes[name] = (
                [axis - rng.choice((0, 0, rank)) for axis in attributes[name]] if name == "axes" else attributes[name]
            )
        elif kind == 7:
            attributes[name] = [rng.choice((1, 1, 2, 3, 3, 0)) for _ in range(2 * sides if name == "pads" else sides)]
        elif kind == 2:
            attributes[name] = rng.choice((0, 1, 1, 2, -1, 3)) if name != "to" else rng.choice((1, 7, 9, 10))
        elif kind == 1:
            attributes[name] = rng.choice((0.0, 0.5, 1.0))
        elif kind == 3:
            attributes[name] = rng.choice((b"NOTSET", b"VALID", b"SAME_UPPER", b"SAME_LOWER", b"none"))
    if op == "Conv" and rank > 2:
        window = tuple(attributes.get("kernel_shape", ())) or tuple(rng.choice((1, 2, 3)) for _ in range(sides))
        shapes[1] = (rng.choice((1, 2, 4)), x[1] // max(1, attributes.get("group", 1)), *window)
    if op in ("Gemm", "MatMul") and rank > 1:
        a = x[::-1] if attributes.get("transA") else x
        b = (*a[:-2], a[-1], rng.choice((1, 3, 7)))
        shapes[1] = b[::-1] if attributes.get("transB") else b
    if op == "BatchNormalization" and rank > 1:
        shapes[1:] = [(x[1],)] * 4
    if op == "Concat":
        k = rng.randrange(rank)
        attributes["axis"] = k - rng.choice((0, rank))
        shapes = [x, *((*x[:k], rng.choice((1, 2, 7)), *x[k + 1 :]) for _ in shapes[1:])]
    kinds = [rng.choice((1, 1, 1, 1, 10, 7))] * len(shapes)
    if rng.random() < 0.1:
        kinds[rng.randrange(len(kinds))] = rng.choice((1, 3, 7))
    values: list[Any] = [None] * len(shapes)
    if op == "Reshape" and opset > 4:
        whole = rng.choice(([-1], [0, -1], [*x[::-1]], [1, *x], [0] * rank, [x[0], -1], [2, 3], [-1, 0, 2]))
        values[1], kinds[1] = np.array(whole, np.int64), 7
    if op.startswith("Reduce") and len(shapes) > 1:
        values[1], kinds[1] = np.array(rng.sample(range(-rank, rank), rng.randrange(rank + 1)), np.int64), 7
    if op == "QuantizeLinear" and len(kinds) > 2:
        kinds[2] = rng.choice((2, 3))
    if op == "DequantizeLinear":
        kinds = [rng.choice((2, 3)), 1, 3][: len(kinds)]
    shapes = [shape if value is None else value.shape for shape, value in zip(shapes, values, strict=True)]
    made = helper.make_node(
        op, [f"i{k}" for k in range(len(shapes))], ["y"], **{k: v for k, v in attributes.items() if v != []}
    )
    return (made, shapes, kinds, values) if not Signature.of(schema).odd(made) else None


def both(inference: Inference, op: str, opset: int, rng: random.Random) -> tuple[Any, Any]:
    """Return what the rules and what ONNX's inference have to say of a random node, as (type, sides) or None."""
    found = node_of(op, opset, rng)
    if found is None:
        return None, None
    node, shapes, kinds, values = found
    types = [helper.make_tensor_type_proto(kind, shape).tensor_type for kind, shape in zip(kinds, shapes, strict=True)]
    stored = [numpy_helper.from_array(v, name) for v, name in zip(values, node.input, strict=True) if v is not None]
    known = inference.types([node], dict(zip(node.input, types, strict=True)), stored, [helper.make_opsetid("", opset)])
    return tuple(
        (t.elem_type, [side.dim_value for side in t.shape.dim]) if t is not None and t.HasField("shape") else None
        for t in (result_type(onnx, node, types, values), known.get("y"))
    )


@given(st.integers(0, 2**60), st.sampled_from(OPERATORS), st.sampled_from((7, 9, 11, 13, 14, 17, 18, 21, 23)))
def test_the_same_or_nothing(inference: Inference, seed: int, op: str, opset: int) -> None:
    try:
        onnx.defs.get_schema(op, opset, "")
    except onnx.defs.SchemaError:
        return
    ours, theirs = both(inference, op, opset, random.Random(seed))
    assert ours is None or ours == theirs, inference.why


def test_each_operator_has_a_rule(inference: Inference) -> None:
    for op in OPERATORS:
        pairs = [both(inference, op, 24 if op == "Swish" else 23, random.Random(seed)) for seed in range(60)]
        assert sum(ours is not None and ours == theirs for ours, theirs in pairs) >= 5, op
