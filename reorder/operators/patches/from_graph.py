"""Chains out of operator graphs: convolutions one after another, with additions of an earlier tensor."""

from __future__ import annotations

from typing import Any

from reorder.operators.patches.chain import ConvolutionLayer, LayerChain
from traces.base.errors import InputError
from traces.operators.opgraph import INPUT, Operator, OpGraph


def chain_of(graph: OpGraph) -> tuple[LayerChain, tuple[str, ...]]:
    """Return (the chain that the graph begins with, names of the operators behind it).

    Convolutions, depthwise convolutions and additions of an earlier tensor make a chain; every value counts as one
    byte. Activations are part of the operator before. Raises InputError where the graph does not begin with one.
    """
    where = graph.source or graph.name
    inputs = [node for node in graph.nodes if node.op == INPUT]
    if len(inputs) != 1:
        raise InputError(f"{where}: a chain has one input, this graph has {len(inputs)}")
    readers: dict[str, int] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers[name] = readers.get(name, 0) + 1
    last = inputs[0].output.name
    layers: list[ConvolutionLayer] = []
    starts = {last: 0}  # tensor -> the layer whose input it is
    rest = [node for node in graph.nodes if node.op != INPUT]
    taken = 0
    for node in rest:
        if last not in node.inputs:
            break
        if node.op in ("RELU", "RELU6", "CLIP") and len(node.inputs) == 1:
            starts[node.output.name] = starts.pop(last)
        elif node.op in ("CONV_2D", "DEPTHWISE_CONV_2D") and (layer := _layer(graph, node, last)) is not None:
            layers.append(layer)
            starts[node.output.name] = len(layers)
        elif node.op == "ADD" and (adds := _added(node, last, starts)) is not None and readers[last] == 1:
            if not layers or layers[-1].adds is not None or adds >= len(layers):
                break
            layers[-1] = ConvolutionLayer(**{**vars(layers[-1]), "adds": adds})
            starts[node.output.name] = starts.pop(last)
        else:
            break
        last, taken = node.output.name, taken + 1
    if len(layers) < 2:
        name = rest[taken].name if taken < len(rest) else "its end"
        raise InputError(f"{where}: no chain of convolutions to run by patches: it ends at {name!r}")
    left = tuple(node.name for node in rest[taken:])
    return LayerChain(tuple(layers), graph.name), left


def _added(node: Operator, last: str, starts: dict[str, int]) -> int | None:
    others = [name for name in node.inputs if name != last]
    return starts.get(others[0]) if len(others) == 1 else None


def _layer(graph: OpGraph, node: Operator, source: str) -> ConvolutionLayer | None:
    """Return the operator as a layer, None where it is none that the model knows."""
    given, made = graph.tensors[source].shape, node.output.shape
    if len(given) != 4 or len(made) != 4 or given[0] != 1 or not node.constants:
        return None
    onnx = node.attributes.get("weight_layout") == "OIHW"
    weights = graph.constants[node.constants[0]].shape
    if len(weights) != 4:
        return None
    sides = weights[2:] if onnx else weights[1:3]
    (h, w, c), (oh, ow, oc) = ((s[2], s[3], s[1]) if onnx else (s[1], s[2], s[3]) for s in (given, made))
    strides: Any = node.attributes.get("strides", (1, 1))
    if sides[0] != sides[1] or len(set(strides)) != 1 or set(node.attributes.get("dilations", (1,))) != {1}:
        return None
    if node.attributes.get("groups", 1) != 1 or (node.op == "DEPTHWISE_CONV_2D" and oc != c):
        return None
    kernel, stride = int(sides[0]), int(strides[0])
    needed = max(0, (oh - 1) * stride + kernel - h), max(0, (ow - 1) * stride + kernel - w)
    padding: Any = node.attributes.get("padding", "VALID")
    if isinstance(padding, str):
        if padding == "VALID":
            pad = 0
        elif needed[0] % 2 or needed[1] % 2 or needed[0] != needed[1]:
            return None  # more zeros on one side than on the other
        else:
            pad = needed[0] // 2
    elif len(set(padding)) == 1:
        pad = int(padding[0])
    else:
        return None
    kind = "conv" if node.op == "CONV_2D" else "depthwise"
    return ConvolutionLayer(kind, kernel, stride, pad, h, w, c, oh, ow, oc)
