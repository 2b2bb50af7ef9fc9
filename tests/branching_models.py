"""Small convolutional models with concatenations, as TensorFlow Lite and ONNX files, for tests of rewriting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.model_files import make_tflite

SIDE, WIDE = 12, 8


def tflite_cells(
    dtype: str = "float32", cells: int = 2, *, depthwise_only: bool = False, scales: tuple[float, ...] = (0.05,)
) -> bytes:
    """Cells of two branches, their concatenation, and behind it a 3x3, a depthwise and a 1x1 convolution.

    depthwise_only: the 3x3 convolution reads a branch. scales: of the results of integers, in turn.
    """
    rng = np.random.default_rng(3)
    operators: list[tuple[Any, ...]] = []
    tensors: list[tuple[Any, ...]] = []
    constants: dict[int, Any] = {}
    integer = dtype != "float32"

    def tensor(name: str, shape: tuple[int, ...]) -> int:
        tensors.append((name, shape, dtype, scales[len(operators) % len(scales)], 3) if integer else (name, shape))
        return len(tensors) - 1

    def constant(name: str, shape: tuple[int, ...], kind: str, scale: Any) -> int:
        size = rng.normal(size=shape)
        tensors.append((name, shape, kind, scale, 0) if integer else (name, shape))
        constants[len(tensors) - 1] = np.clip(np.round(40 * size), -127, 127) if integer else size
        return len(tensors) - 1

    def conv(
        name: str, given: int, outputs: int, k: int, stride: int = 1, act: int = 1, depthwise: bool = False
    ) -> int:
        shape = tensors[given][1]
        inputs = shape[3]
        scales = 0.01 + 0.01 * rng.random(outputs)
        sides = (1, k, k, outputs) if depthwise else (outputs, k, k, inputs)
        w = constant(f"{name}/w", sides, "int8", scales)
        b = constant(f"{name}/b", (outputs,), "int32", scales * 0.05)
        y = tensor(name, (1, -(-shape[1] // stride), -(-shape[2] // stride), outputs))
        options: dict[str, int] = {"Padding": 0, "StrideW": stride, "StrideH": stride, "FusedActivationFunction": act,
                                   "DilationWFactor": 1, "DilationHFactor": 1}  # fmt: skip
        if depthwise:
            options["DepthMultiplier"] = outputs // inputs
        kind = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        operators.append(("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [given, w, b], [y], kind, options))
        return y

    at = tensor("x", (1, SIDE, SIDE, 4))
    for c in range(cells):
        wide = WIDE * (c + 1)
        left = conv(f"c{c}/left", at, wide, 3)
        right = conv(f"c{c}/right", at, 2 * wide, 1, act=0)
        shape = tensors[left][1]
        joined = tensor(f"c{c}/joined", (*shape[:3], 3 * wide))
        operators.append(("CONCATENATION", [left, right], [joined], "ConcatenationOptions", {"Axis": 3}))
        middle = conv(f"c{c}/depthwise", joined, 6 * wide, 3, stride=2, depthwise=True)
        one = conv(f"c{c}/one", middle, wide, 1)
        three = conv(f"c{c}/three", left if depthwise_only else joined, wide, 3, stride=2, act=3)
        at = tensor(f"c{c}/sum", tensors[one][1])
        operators.append(("ADD", [one, three], [at], "AddOptions", {"FusedActivationFunction": 1}))
    return make_tflite(operators, tensors, constants)


def onnx_cells(file: Path, cells: int = 2, batch: int | str = 1) -> Path:
    """The same as an ONNX file (float32, activations apart)."""
    from onnx import TensorProto, helper, numpy_helper, save

    rng = np.random.default_rng(4)
    nodes: list[Any] = []
    weights: list[Any] = []
    channels = {"x": 4}

    def conv(name: str, given: str, outputs: int, k: int, stride: int = 1, depthwise: bool = False) -> str:
        groups = channels[given] if depthwise else 1
        for part, shape in (("w", (outputs, channels[given] // groups, k, k)), ("b", (outputs,))):
            weights.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), f"{name}/{part}"))
        nodes.append(helper.make_node("Conv", [given, f"{name}/w", f"{name}/b"], [name], name=name, group=groups,
                                      kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4))  # fmt: skip
        channels[name] = outputs
        return name

    def add(kind: str, given: list[str], name: str, width: int, **more: Any) -> str:
        nodes.append(helper.make_node(kind, given, [name], name=name, **more))
        channels[name] = width
        return name

    at = "x"
    for c in range(cells):
        wide = WIDE * (c + 1)
        left = add("Relu", [conv(f"c{c}/left", at, wide, 3)], f"c{c}/left/relu", wide)
        right = conv(f"c{c}/right", at, 2 * wide, 1)
        joined = add("Concat", [left, right], f"c{c}/joined", 3 * wide, axis=1)
        middle = conv(f"c{c}/depthwise", joined, 6 * wide, 3, stride=2, depthwise=True)
        one = conv(f"c{c}/one", middle, wide, 1)
        three = conv(f"c{c}/three", joined, wide, 3, stride=2)
        at = add("Add", [one, three], f"c{c}/sum", wide)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "cells", [value("x", TensorProto.FLOAT, (batch, 4, SIDE, SIDE))],
        [value(at, TensorProto.FLOAT, (batch, channels[at], SIDE >> cells, SIDE >> cells))], weights,
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file
