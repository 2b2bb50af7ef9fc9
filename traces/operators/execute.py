"""A small reference executor: runs an operator graph on arrays, to show that two graphs compute the same.

Plain and slow on purpose. 'float' works on real values in float32 (quantised constants are taken at their real value,
results are not rounded to their 8-bit format); 'integer' works on the stored integers in int64, exactly. Partial
operators accumulate in their shared buffer; what follows the sum (the activation) waits for its last writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, unknown_name
from traces.operators.opgraph import INPUT, Operator, OpGraph, pads_of, real_values

Array = npt.NDArray[Any]
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
PARTIAL = {"PARTIAL_CONV_2D": "CONV_2D", "PARTIAL_DEPTHWISE_CONV_2D": "DEPTHWISE_CONV_2D"}


def execute(
    graph: OpGraph,
    inputs: Mapping[str, npt.ArrayLike],
    *,
    order: Iterable[int] | None = None,
    arithmetic: str = "float",
) -> dict[str, Array]:
    """Run all operators in `order` (default: the file's) and return every tensor by name.

    inputs: name of each INPUT operator's tensor -> values of its shape. Tensors that share a buffer have the buffer's
    final content. Raises InputError for an operator that this executor does not know, naming it.
    """
    if arithmetic not in ("float", "integer"):
        raise unknown_name("arithmetic", arithmetic, ("float", "integer"))
    return _Executor(graph, inputs, arithmetic == "float").run(range(graph.n_nodes) if order is None else order)


def execute_stepwise(
    graph: OpGraph, inputs: Mapping[str, npt.ArrayLike], order: Iterable[int]
) -> Iterator[dict[str, Array]]:
    """Run in float and yield, after each operator, buffer -> content of the buffers it wrote (sums so far where partial
    results accumulate; the arrays may change later: copy them)."""
    return _Executor(graph, inputs, True).steps(order)


class _Executor:
    def __init__(self, graph: OpGraph, inputs: Mapping[str, npt.ArrayLike], real: bool) -> None:
        self.graph, self.inputs, self.real = graph, inputs, real
        self.values: dict[str, Array] = {}
        self.dtype: Any = np.float32 if real else np.int64
        self.waiting = {buffer: len(ids) for buffer, ids in graph.writers.items()}
        self.sums: dict[str, Array] = {}

    def run(self, order: Iterable[int]) -> dict[str, Array]:
        for _ in self.steps(order):
            pass
        return self.values

    def steps(self, order: Iterable[int]) -> Iterator[dict[str, Array]]:
        for v in order:
            node = self.graph.nodes[v]
            result = self._compute(node)
            for tensor, value in zip(node.outputs, result, strict=True):
                self._store(node, tensor.name, tensor.buffer, value)
            yield {t.buffer: self.sums.get(t.buffer, self.values.get(t.name, result[0])) for t in node.outputs}

    def _store(self, node: Operator, name: str, buffer: str, value: Array) -> None:
        if node.op not in PARTIAL:
            self.values[name] = _activate(value, node)
            return
        tensor = self.graph.tensors[name]
        if buffer not in self.sums:
            self.sums[buffer] = np.zeros(tensor.shape, self.dtype)
        if "slice" in node.attributes:
            where: list[Any] = [slice(None)] * value.ndim
            where[_axis(node)] = slice(*node.attributes["slice"])
            self.sums[buffer][tuple(where)] += value
        else:
            self.sums[buffer] += value
        self.waiting[buffer] -= 1
        if not self.waiting[buffer]:
            done = _activate(self.sums.pop(buffer), node)
            for other in self.graph.tensors.values():
                if other.buffer == buffer:
                    self.values[other.name] = done

    def _constant(self, name: str) -> Array:
        if self.real:
            return real_values(self.graph, name)
        return np.asarray(self.graph.constants[name]).astype(np.int64)

    def _value(self, name: str) -> Array:
        return self.values[name] if name in self.values else self._constant(name)

    def _compute(self, node: Operator) -> list[Array]:
        if node.op == INPUT:
            name = node.output.name
            if name not in self.inputs:
                raise InputError(f"{self.graph.name}: no values given for the input {name!r}")
            value = np.asarray(self.inputs[name]).astype(self.dtype)
            if value.shape != node.output.shape:
                raise InputError(f"{self.graph.name}: input {name!r} has shape {value.shape}, not {node.output.shape}")
            return [value]
        kind = PARTIAL.get(node.op, node.op)
        if kind not in OPERATIONS:
            raise InputError(f"{self.graph.name}: the reference executor does not know {node.name!r} ({node.op})")
        if "gather" in node.attributes:
            gathered = [self._value(name) for name in node.attributes["gather"]]
            operands = [np.concatenate(gathered, axis=_axis(node))]
        elif "operands" in node.attributes:
            operands = [self._value(name) for name in node.operands]
            if kind in WEIGHTED:  # some weights are computed
                results = OPERATIONS[kind](node, operands[:1], operands[1:])
                return [np.asarray(r).reshape(t.shape) for r, t in zip(results, node.outputs, strict=True)]
        else:
            operands = [self._value(name) for name in node.inputs]
        weights = [] if "operands" in node.attributes and "gather" not in node.attributes else [*node.constants]
        results = OPERATIONS[kind](node, operands, [self._constant(name) for name in weights])
        return [
            np.asarray(r).reshape(t.shape) if "slice" not in node.attributes else np.asarray(r)
            for r, t in zip(results, node.outputs, strict=True)
        ]


def _axis(node: Operator) -> int:
    return int(node.attributes.get("channel_axis", -1))


def _activate(value: Array, node: Operator) -> Array:
    activation = node.attributes.get("activation", "NONE")
    if activation == "NONE":
        return value
    if activation in ("RELU", "RELU6", "RELU_N1_TO_1"):
        low = -1 if activation == "RELU_N1_TO_1" else 0
        high = {"RELU": None, "RELU6": 6, "RELU_N1_TO_1": 1}[activation]
        return np.clip(value, low, high)
    raise InputError(f"the reference executor does not know the activation {activation} of {node.name!r}")


# -- windows -----------------------------------------------------------------------------------------------------------


def _windows(node: Operator, x: Array, window: tuple[int, int], fill: Any) -> tuple[Array, Array]:
    """Return (windows[B, H, W, C, kh, kw] of the padded NHWC input, how many taps of each window lie inside)."""
    strides, dilations = node.attributes.get("strides", (1, 1)), node.attributes.get("dilations", (1, 1))
    pads = pads_of(node, x.shape[1:3], window, node.name)

    def view(values: Array, blank: Any) -> Array:
        padded = np.pad(values, ((0, 0), *pads, (0, 0)), constant_values=blank)
        reach = tuple((window[k] - 1) * dilations[k] + 1 for k in range(2))
        windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(1, 2))
        return windows[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]

    return view(x, fill), view(np.ones_like(x[:1, :, :, :1]), 0).sum(axis=(4, 5))


def _last(node: Operator, x: Array) -> Array:
    return x if _axis(node) in (-1, 3) else np.moveaxis(x, 1, -1)


def _back(node: Operator, y: Array) -> Array:
    return y if _axis(node) in (-1, 3) else np.moveaxis(y, -1, 1)


def _convolution(node: Operator, operands: list[Array], constants: list[Array]) -> list[Array]:
    x, weights = _last(node, operands[0]), constants[0]
    if node.attributes.get("weight_layout") == "OIHW":
        weights = np.moveaxis(weights, 1, -1)
    groups = node.attributes.get("groups", 1)
    if "channels" in node.attributes:
        weights = weights[..., slice(*node.attributes["channels"])]
    taps, _ = _windows(node, x, (weights.shape[1], weights.shape[2]), 0)
    parts = []
    for taken, kernel in zip(np.split(taps, groups, axis=3), np.split(weights, groups), strict=True):
        parts.append(np.einsum("bhwckl,oklc->bhwo", taken, kernel, optimize=True))
    y = np.concatenate(parts, axis=-1)
    return [_back(node, y + constants[1] if len(constants) > 1 else y)]


def _depthwise(node: Operator, operands: list[Array], constants: list[Array]) -> list[Array]:
    x, weights = _last(node, operands[0]), constants[0]
    if node.attributes.get("weight_layout") == "OIHW":
        weights = np.moveaxis(weights, 0, -1)  # [1, h, w, outputs]
    first, last = node.attributes.get("channels", (0, x.shape[3]))
    bias = constants[1] if len(constants) > 1 else np.zeros(weights.shape[-1], x.dtype)
    total = node.attributes.get("all_channels", x.shape[3])
    multiplier = weights.shape[-1] // total
    kept = slice(first * multiplier, last * multiplier)
    weights, bias = weights[..., kept], bias[kept]
    taps, _ = _windows(node, x, (weights.shape[1], weights.shape[2]), 0)
    kernel = weights[0].reshape(*weights.shape[1:3], x.shape[3], multiplier)
    y = np.einsum("bhwckl,klcm->bhwcm", taps, kernel, optimize=True)
    return [_back(node, y.reshape(*y.shape[:3], -1) + bias)]


def _pool(node: Operator, operands: list[Array], constants: list[Array]) -> list[Array]:
    x = _last(node, operands[0])
    window = node.attributes.get("window", x.shape[1:3])
    if node.op == "MAX_POOL_2D":
        low = -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(np.int64).min
        return [_back(node, _windows(node, x, window, low)[0].max(axis=(4, 5)))]
    taps, inside = _windows(node, x, window, 0)
    count: Any = window[0] * window[1] if node.attributes.get("count_include_pad") else inside
    total = taps.sum(axis=(4, 5), dtype=x.dtype)
    return [_back(node, total / count if np.issubdtype(x.dtype, np.floating) else total // count)]


def _fully_connected(node: Operator, operands: list[Array], constants: list[Array]) -> list[Array]:
    weights = constants[0].T if node.attributes.get("transposed") else constants[0]
    y = operands[0].reshape(-1, weights.shape[1]) @ weights.T
    return [y + constants[1] if len(constants) > 1 else y]


def _softmax(node: Operator, operands: list[Array], constants: list[Array]) -> list[Array]:
    x = operands[0].astype(np.float32) * node.attributes.get("beta", 1.0)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return [e / e.sum(axis=-1, keepdims=True)]


def _split(node: Operator, operands: list[Array], constants: list[Array]) -> list[Array]:
    axis, x = int(operands[0].reshape(-1)[0]), operands[1]  # TensorFlow Lite gives the axis first
    return list(np.split(x, len(node.outputs), axis=axis))


OPERATIONS: Mapping[str, Callable[[Operator, list[Array], list[Array]], list[Array]]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "MAX_POOL_2D": _pool,
    "AVERAGE_POOL_2D": _pool,
    "ADD": lambda node, operands, constants: [operands[0] + operands[1]],
    "SUB": lambda node, operands, constants: [operands[0] - operands[1]],
    "MUL": lambda node, operands, constants: [operands[0] * operands[1]],
    "RELU": lambda node, operands, constants: [np.maximum(operands[0], 0)],
    "RELU6": lambda node, operands, constants: [np.clip(operands[0], 0, 6)],
    "LOGISTIC": lambda node, operands, constants: [1 / (1 + np.exp(-operands[0]))],
    "TANH": lambda node, operands, constants: [np.tanh(operands[0])],
    "SOFTMAX": _softmax,
    "SPLIT": _split,
    "CONCATENATION": lambda node, operands, constants: [
        np.concatenate(operands, axis=node.attributes.get("axis", _axis(node))) if len(operands) > 1 else operands[0]
    ],
    **{
        name: lambda node, operands, constants: [operands[0]]
        for name in ("RESHAPE", "FLATTEN", "SQUEEZE", "IDENTITY", "QUANTIZE", "DEQUANTIZE")
    },
}
