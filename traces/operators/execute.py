"""A small reference executor: runs an operator graph on arrays, to show that two graphs compute the same.

On real values in float32, or on the stored integers in int64, exactly. Partial operators accumulate in their shared
buffer; the activation waits for the last writer. What follows from constants alone is computed once, as runtimes do
when they load a model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, brief
from traces.base.memory import claim
from traces.operators.operations import OPERATIONS, activate, channel_axis
from traces.operators.opgraph import INPUT, Operator, OpGraph, Quantization, Tensor, real_values

Array = npt.NDArray[Any]
PARTIAL = {"PARTIAL_CONV_2D": "CONV_2D", "PARTIAL_DEPTHWISE_CONV_2D": "DEPTHWISE_CONV_2D"}
_ELEMENT_BYTES = 24  # of a result: as float64, as it is computed, and as it is stored
STORED_ALIKE = {"DEQUANTIZE", "DENSIFY", "IDENTITY", "RESHAPE", "EXPAND_DIMS", "SQUEEZE"}


class NotComputedError(InputError):
    """An operator whose results this executor cannot compute: its kind, or its attributes, are beyond it."""


def execute(
    graph: OpGraph, inputs: Mapping[str, npt.ArrayLike], *, order: Iterable[int] | None = None, integers: bool = False
) -> dict[str, Array]:
    """Run all operators in `order` (default: the file's) and return every tensor by name.

    inputs: name of each INPUT operator's tensor -> values of its shape. Tensors that share a buffer have the buffer's
    final content. Raises InputError for an operator that this executor does not know, naming it.
    """
    executor = _Executor(graph, inputs, not integers)
    for _ in executor.steps(range(graph.n_nodes) if order is None else order):
        pass
    return executor.values


def can_compute(node: Operator) -> bool:
    return node.op in (INPUT, *PARTIAL) or node.op in OPERATIONS or "compute" in node.attributes


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

    def steps(self, order: Iterable[int]) -> Iterator[dict[str, Array]]:
        for v in order:
            node = self.graph.nodes[v]
            result = self._compute(node)
            for tensor, value in zip(node.outputs, result, strict=True):
                self._store(node, tensor.name, tensor.buffer, value)
            yield {t.buffer: self.sums.get(t.buffer, self.values.get(t.name, result[0])) for t in node.outputs}

    def _store(self, node: Operator, name: str, buffer: str, value: Array) -> None:
        if node.op not in PARTIAL:
            self.values[name] = activate(value, node)
            return
        tensor = self.graph.tensors[name]
        if buffer not in self.sums:
            self.sums[buffer] = np.zeros(tensor.shape, self.dtype)
        if "slice" in node.attributes:
            where: list[Any] = [slice(None)] * value.ndim
            where[channel_axis(node)] = slice(*node.attributes["slice"])
            self.sums[buffer][tuple(where)] += value
        else:
            self.sums[buffer] += value
        self.waiting[buffer] -= 1
        if not self.waiting[buffer]:
            done = activate(self.sums.pop(buffer), node)
            for other in self.graph.tensors.values():
                if other.buffer == buffer:
                    self.values[other.name] = done

    def _constant(self, name: str) -> Array:
        if self.real:
            return real_values(self.graph, name)
        return np.asarray(self.graph.constants[name]).astype(np.int64)

    def _value(self, name: str) -> Array:
        return self.values[name] if name in self.values else self._constant(name)

    def _typed(self, name: str) -> Array:
        if name in self.values:
            return self.values[name].astype(self.graph.tensors[name].dtype)
        if name in self.graph.quantization:
            return real_values(self.graph, name)
        return np.asarray(self.graph.constants[name])

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
        if not can_compute(node):
            raise NotComputedError(f"{self.graph.name}: the executor does not know {node.name!r} ({node.op})")
        try:
            return self._results(node, kind)
        except (InputError, ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
            text = brief(error)
            raise NotComputedError(
                f"{self.graph.name}: {node.name!r} ({node.op}) cannot be computed: {text}"
            ) from error

    def _results(self, node: Operator, kind: str) -> list[Array]:
        if "compute" in node.attributes:
            results = node.attributes["compute"]([self._typed(name) for name in node.operands])
        elif "gather" in node.attributes:
            parts = [self._value(name) for name in node.attributes["gather"]]
            weights = [self._constant(name) for name in node.constants]
            results = OPERATIONS[kind](node, np.concatenate(parts, axis=channel_axis(node)), *weights)
        else:
            results = OPERATIONS[kind](node, *(self._value(name) for name in node.operands))
        return [
            np.asarray(r).reshape(t.shape) if "slice" not in node.attributes else np.asarray(r)
            for r, t in zip(results, node.outputs, strict=True)
        ]


def fold(node: Operator, constants: dict[str, Array], quantization: dict[str, Quantization]) -> bool:
    """Add the results of an operator that reads constants alone to the constants; return whether that was done."""
    if node.inputs or not node.constants or not can_compute(node):
        return False
    first, result = node.operands[0], node.output
    alike = node.op in STORED_ALIKE and math.prod(result.shape) == constants[first].size
    if alike and (result.shape == constants[first].shape or first not in quantization):
        constants[result.name] = constants[first].reshape(result.shape)
        if first in quantization:
            quantization[result.name] = quantization[first]
        return True
    claim(_ELEMENT_BYTES * sum(math.prod(t.shape) for t in node.outputs), node.name, "the constant that it computes")
    graph = OpGraph(
        node.name,
        (node,),
        tuple(tensor.name for tensor in node.outputs),
        {name: constants[name] for name in node.constants},
        quantization={name: quantization[name] for name in node.constants if name in quantization},
    )
    try:
        values = execute(graph, {})
    except (InputError, ArithmeticError, IndexError, TypeError, ValueError):  # attributes that contradict each other
        return False
    for tensor in node.outputs:
        constants[tensor.name] = stored(values[tensor.name], tensor, quantization.get(tensor.name))
        constants[tensor.name].setflags(write=False)
    return True


def stored(values: Array, tensor: Tensor, scale: Quantization | None) -> Array:
    kind = np.dtype("int8" if tensor.dtype == "int4" else tensor.dtype)
    if not np.issubdtype(kind, np.integer):
        return values.astype(kind)
    real = values.astype(np.float64)
    if scale is not None:
        real = real / scale.scale[0] + scale.zero_point[0]
    limits = np.iinfo(kind)
    return np.clip(np.rint(real), float(limits.min), float(limits.max)).astype(kind)
