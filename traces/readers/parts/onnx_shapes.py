"""Types of what common ONNX operators make, by rules of our own: a model of these alone needs no other process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Shape = tuple[int, ...]
Values = Sequence[npt.NDArray[Any] | None]

_SAME = """
Abs BatchNormalization Cast Ceil Clip Cos DequantizeLinear Dropout Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity
InstanceNormalization LRN LayerNormalization LeakyRelu Log LogSoftmax Mish Neg QuantizeLinear Reciprocal Relu Round Selu
Sigmoid Sin Softmax Softplus Softsign Sqrt Swish Tanh
"""
SAME = frozenset(_SAME.split())
"""Results have the shape of the first operand."""
PAIRS = frozenset(("Add", "Div", "Mul", "Sub"))
OF_ONE_TYPE = PAIRS | {"Concat", "Conv", "Gemm", "MatMul"}
LARGEST = 2**31  # of a side


def result_type(onnx: Any, node: Any, types: Sequence[Any], values: Values) -> Any:
    """Return the type of a node's only result, or None where that is for ONNX's own inference to say.

    types: of its operands. values: of its operands, where they are known.
    """
    shapes = [tuple(side.dim_value for side in type_.shape.dim) for type_ in types]
    kinds = [type_.elem_type for type_ in types]
    given = {a.name: {1: a.f, 2: a.i, 3: a.s, 7: list(a.ints)}.get(a.type) for a in node.attribute}
    if (node.op_type in OF_ONE_TYPE and len(set(kinds)) > 1) or "output_dtype" in given:
        return None
    try:
        shape = _shape(node.op_type, given, shapes, values)
        kind = kinds[{"DequantizeLinear": 1, "QuantizeLinear": 2}.get(node.op_type, 0)]
        kind = given["to"] if node.op_type == "Cast" else kind
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError):
        return None  # whatever is wrong: the other says it
    if shape is None or kind not in onnx.TensorProto.DataType.values()[1:]:
        return None
    if not all(0 < side < LARGEST for each in (*shapes, shape) for side in each):
        return None
    return onnx.helper.make_tensor_type_proto(kind, shape).tensor_type


def _shape(op: str, given: Mapping[str, Any], shapes: Sequence[Shape], values: Values) -> Shape | None:
    x, rank = shapes[0], len(shapes[0])
    listed = values[1].tolist() if len(values) == 2 and values[1] is not None and values[1].dtype == np.int64 else []
    if op in SAME:
        fits = {"BatchNormalization": () if given.get("training_mode") else (x[1:2],), "Dropout": ((),)}.get(op, shapes)
        axis = given.get("axis", 1 if op in ("LogSoftmax", "Softmax") else 0)
        return x if -rank <= axis < rank and all(shape in fits for shape in shapes[1:]) else None
    if op in PAIRS and not given:  # attributes of old models say which axes match
        return np.broadcast_shapes(*shapes)
    if op == "Conv" and x[1] == shapes[1][1] * given.get("group", 1):
        return (x[0], shapes[1][0], *_positions(x[2:], shapes[1][2:], given))
    if op in ("AveragePool", "MaxPool"):
        return (*x[:2], *_positions(x[2:], given["kernel_shape"], given))
    if op in ("GlobalAveragePool", "GlobalMaxPool") and rank > 2:
        return (*x[:2], *(1 for _ in x[2:]))
    if op in ("Gemm", "MatMul"):
        a, b = shapes[0][:: -1 if given.get("transA") else 1], shapes[1][:: -1 if given.get("transB") else 1]
        if a[-1] == b[-2] and len(a) > 1 and (op == "MatMul" or len(a) == len(b) == 2):
            return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
    if op == "Flatten" and 0 <= (axis := given.get("axis", 1)) <= rank:
        return (math.prod(x[:axis]), math.prod(x[axis:]))
    if op == "Concat":
        axis = given["axis"]
        if 0 <= axis < rank and len({(shape[:axis], shape[axis + 1 :]) for shape in shapes}) == 1:
            return (*x[:axis], sum(shape[axis] for shape in shapes), *x[axis + 1 :])
    if op == "Transpose" and sorted(order := given.get("perm", range(rank)[::-1])) == [*range(rank)]:
        return tuple(x[axis] for axis in order)
    if op == "Reshape" and listed and not given.get("allowzero"):
        sides = [x[k] if side == 0 else side for k, side in enumerate(listed)]
        rest = math.prod(side for side in sides if side != -1)
        sides = [math.prod(x) // rest if side == -1 else side for side in sides]
        return tuple(sides) if math.prod(sides) == math.prod(x) else None
    if op in ("ReduceMax", "ReduceMean", "ReduceSum"):
        axes = {range(rank)[axis] for axis in (given["axes"] if len(values) == 1 else listed)}
        if axes:
            keep = given.get("keepdims", 1) == 1
            return tuple(1 if k in axes else side for k, side in enumerate(x) if keep or k not in axes)
    return None


def _positions(sides: Shape, window: Sequence[int], given: Mapping[str, Any]) -> list[int]:
    n, ones, result = len(sides), [1] * len(sides), []
    strides, dilations, pads = given.get("strides", ones), given.get("dilations", ones), given.get("pads", [0] * 2 * n)
    rounds = given.get("auto_pad", b"NOTSET") != b"NOTSET" or given.get("ceil_mode")
    if not n or rounds or [*given.get("kernel_shape", window)] != [*window] or min(*window, *strides, *dilations) < 1:
        raise ValueError
    for side, size, stride, dilation, *around in zip(
        sides, window, strides, dilations, pads[:n], pads[n:], strict=True
    ):
        room = side + sum(around) - dilation * (size - 1) - 1
        if min(room, *around) < 0:
            raise ValueError
        result.append(room // stride + 1)
    return result
