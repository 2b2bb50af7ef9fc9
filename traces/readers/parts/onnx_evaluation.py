"""What an ONNX operator computes: by ONNX's reference evaluator, and by rules of our own where that is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError

Array = npt.NDArray[Any]
_OF_LAST_AXIS = 13  # operator set; before it, Softmax and its kin took all axes from `axis` on as one


def evaluate(node: Any, opset: int, given: Mapping[str, Array]) -> list[Array]:
    """Return what a node makes of its operands. Raises what the evaluator raises, and InputError for what neither
    computes as the standard says."""
    with np.errstate(all="ignore"):
        if node.op_type not in _OWN:
            return _by_reference(node, opset, given)
        operands = [given.get(name) for name in node.input]
        return [np.asarray(result) for result in _OWN[node.op_type](node, opset, operands)]


def _by_reference(node: Any, opset: int, given: Mapping[str, Array]) -> list[Array]:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator  # half a second, which most models need not

    read, made = (
        [helper.make_tensor_value_info(name, 0, None) for name in names if name] for names in (node.input, node.output)
    )
    graph = helper.make_graph([node], "node", read, made)
    try:
        evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]))
    except RuntimeError:
        evaluator = ReferenceEvaluator(node)
    return [np.asarray(value) for value in evaluator.run(None, dict(given))]


def _attributes(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _plain(kind: str, opset: int, operands: list[Array], **attributes: Any) -> Array:
    from onnx import helper

    names = [f"x{k}" for k in range(len(operands))]
    node = helper.make_node(kind, names, ["y"], **attributes)
    return _by_reference(node, opset, dict(zip(names, operands, strict=True)))[0]


def _batch_normalization(node: Any, opset: int, operands: list[Any]) -> list[Array]:
    """y = scale (x - mean) / sqrt(variance + epsilon) + bias, as after training."""
    given = _attributes(node)
    if given.get("training_mode") or sum(map(bool, node.output)) > 1:
        raise InputError("it trains, which is not computed")
    x = operands[0]
    scale, bias, mean, variance = (
        value.reshape(value.shape + (1,) * (x.ndim - 1 - value.ndim)) for value in operands[1:]
    )
    y = scale * (x - mean) / np.sqrt(variance + np.float32(given.get("epsilon", 1e-5))) + bias
    return [y.astype(x.dtype)]


def _pool(node: Any, opset: int, operands: list[Any]) -> list[Array]:
    given = _attributes(node)
    if given.get("ceil_mode") and max(given.get("strides", [1])) > 1:
        raise InputError("ceil_mode=1 is computed for images of two dimensions alone")
    return _by_reference(node, opset, dict(zip(node.input, operands, strict=True)))


def _softmax(node: Any, opset: int, operands: list[Any]) -> list[Array]:
    x, axis = operands[0], _attributes(node).get("axis", -1 if opset >= _OF_LAST_AXIS else 1)
    if opset >= _OF_LAST_AXIS:
        return [_plain(node.op_type, opset, [x], axis=axis)]
    rows = math.prod(x.shape[: axis % x.ndim])
    return [_plain(node.op_type, _OF_LAST_AXIS, [x.reshape(rows, -1)], axis=-1).reshape(x.shape)]


def _recurrent(node: Any, opset: int, operands: list[Any]) -> list[Array]:
    given = _attributes(node)
    usual = {"LSTM": [b"Sigmoid", b"Tanh", b"Tanh"], "GRU": [b"Sigmoid", b"Tanh"], "RNN": [b"Tanh"]}[node.op_type]
    directions = 2 if given.get("direction") == b"bidirectional" else 1
    steps = operands[0].shape[1 if given.get("layout") else 0]
    lengths = operands[4] if len(operands) > 4 else None
    if given.get("activations", usual * directions) != usual * directions:
        raise InputError("activations other than the usual ones are not computed")
    for name in ("clip", "input_forget"):
        if given.get(name):
            raise InputError(f"its attribute {name} is not computed")
    if lengths is not None and (lengths != steps).any():
        raise InputError("sequences of several lengths are not computed")
    return _by_reference(node, opset, {n: v for n, v in zip(node.input, operands, strict=True) if n})


def _along(value: Any, rank: int, axis: int) -> Any:
    """Return a scale or a zero point, of a tensor or of each index of an axis, as what goes with a tensor."""
    if value is None:
        return np.float64(0)
    value = value.astype(np.float64)
    return value.reshape([-1 if k == axis % rank else 1 for k in range(rank)]) if value.ndim == 1 else value


def _quantized_product(node: Any, opset: int, operands: list[Any]) -> list[Array]:
    """A convolution or product of matrices of stored integers: exact sums, scaled and rounded to stored ones.

    Scales are multiplied in float32, and halves go to even numbers, as ONNX Runtime does both.
    """
    a, scale, zero, b, scale_b, zero_b, scale_y, zero_y, *bias = operands
    convolves = node.op_type == "QLinearConv"
    ranks_axes = (a.ndim, 1 if convolves else -2), (b.ndim, 0 if convolves else -1), (a.ndim, 1)
    values = [a - _along(zero, *ranks_axes[0]), b - _along(zero_b, *ranks_axes[1])]
    if convolves:
        values += [value.astype(np.float64) for value in bias if value is not None]
        sums = _plain("Conv", opset, values, **_attributes(node))
        by_output = _along(scale_b, *ranks_axes[2])
    else:
        sums, by_output = np.matmul(*values), _along(scale_b, *ranks_axes[1])
    factor = np.float32(_along(scale, *ranks_axes[0])) * np.float32(by_output) / np.float32(scale_y)
    rounded = np.rint(sums.astype(np.float32) * factor) + zero_y
    limits = np.iinfo(zero_y.dtype)
    return [np.clip(rounded, limits.min, limits.max).astype(zero_y.dtype)]


def _integer_product(node: Any, opset: int, operands: list[Any]) -> list[Array]:
    a, b, zero, zero_b = [*operands, None, None][:4]
    convolves = node.op_type == "ConvInteger"
    values = [a - _along(zero, a.ndim, -2), b - _along(zero_b, b.ndim, 0 if convolves else -1)]
    sums = _plain("Conv", opset, values, **_attributes(node)) if convolves else np.matmul(*values)
    return [sums.astype(np.int32)]


_OWN: Mapping[str, Callable[[Any, int, list[Any]], list[Array]]] = {
    "BatchNormalization": _batch_normalization,
    **dict.fromkeys(("AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("QLinearConv", "QLinearMatMul"), _quantized_product),
    **dict.fromkeys(("ConvInteger", "MatMulInteger"), _integer_product),
}
