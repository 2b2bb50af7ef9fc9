"""A small reference executor: runs an operator graph on arrays, to show that two graphs compute the same.

'float' works on real values in float32, 'integer' on the stored integers in int64, exactly. Partial operators
accumulate in their shared buffer; the activation waits for the last writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, brief, unknown_name
from traces.operators.operations import OPERATIONS, activate, channel_axis
from traces.operators.opgraph import INPUT, Operator, OpGraph, real_values

Array = npt.NDArray[Any]
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
PARTIAL = {"PARTIAL_CONV_2D": "CONV_2D", "PARTIAL_DEPTHWISE_CONV_2D": "DEPTHWISE_CONV_2D"}


class NotComputedError(InputError):
    """An operator whose results this executor cannot compute: its kind, or its attributes, are beyond it."""


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


def can_compute(node: Operator) -> bool:
    """Whether this executor knows the operator: by its kind, or by a function in its attribute `compute`."""
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
            return [np.asarray(r).reshape(t.shape) for r, t in zip(results, node.outputs, strict=True)]
        if "gather" in node.attributes:
            gathered = [self._value(name) for name in node.attributes["gather"]]
            operands = [np.concatenate(gathered, axis=channel_axis(node))]
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
