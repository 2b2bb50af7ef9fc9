"""Operators whose results follow from constants alone: computed once, as every runtime does when it loads a model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.base.memory import claim
from traces.operators.execute import can_compute, execute
from traces.operators.opgraph import Operator, OpGraph, Quantization, Tensor

_ELEMENT_BYTES = 24  # of a result: as float64, as it is computed, and as it is stored
STORED_ALIKE = {"DEQUANTIZE", "DENSIFY", "IDENTITY", "RESHAPE", "EXPAND_DIMS", "SQUEEZE"}


def fold(node: Operator, constants: dict[str, npt.NDArray[Any]], quantization: dict[str, Quantization]) -> bool:
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


def stored(values: npt.NDArray[Any], tensor: Tensor, scale: Quantization | None) -> npt.NDArray[Any]:
    kind = np.dtype("int8" if tensor.dtype == "int4" else tensor.dtype)
    if not np.issubdtype(kind, np.integer):
        return values.astype(kind)
    real = values.astype(np.float64)
    if scale is not None:
        real = real / scale.scale[0] + scale.zero_point[0]
    limits = np.iinfo(kind)
    return np.clip(np.rint(real), float(limits.min), float(limits.max)).astype(kind)
