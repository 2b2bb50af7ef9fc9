"""Chains of convolutions, one byte a value, with additions of an earlier tensor: from a file or an operator graph."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from traces.base.errors import InputError, brief, did_you_mean, unknown_name
from traces.base.memory import claim
from traces.operators.opgraph import INPUT, Operator, OpGraph

KINDS = ("conv", "depthwise")
MAX_VALUES = 2**40


@dataclass(frozen=True)
class ConvolutionLayer:
    """A convolution with a square kernel and zero padding. Sizes are values (height, width, channels).

    adds: the layer whose input is added to this layer's output (a residual connection), or None.
    """

    kind: str
    kernel: int
    stride: int
    padding: int
    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    adds: int | None = None

    @property
    def in_values(self) -> int:
        """Values of the input."""
        return self.in_h * self.in_w * self.in_c

    @property
    def out_values(self) -> int:
        """Values of the output."""
        return self.out_h * self.out_w * self.out_c

    @property
    def per_value(self) -> int:
        """Multiplications of one output value."""
        return self.kernel**2 * (self.in_c if self.kind == "conv" else 1)

    @property
    def weights(self) -> int:
        """Values of the kernel."""
        return self.per_value * self.out_c


@dataclass(frozen=True)
class LayerChain:
    """Layers that each read what the one before wrote."""

    layers: tuple[ConvolutionLayer, ...]
    name: str = "chain"

    def __post_init__(self) -> None:
        if not self.layers:
            raise InputError(f"{self.name}: a chain has at least one layer")
        for k, layer in enumerate(self.layers):
            where = f"{self.name}: layer {k}"
            if layer.kind not in KINDS:
                raise unknown_name(f"kind of layer {k} of {self.name}", layer.kind, KINDS)
            for f in fields(ConvolutionLayer):
                value = getattr(layer, f.name)
                if f.name not in ("kind", "adds", "padding") and value < 1:
                    raise InputError(f"{where}: {f.name} is {value}: at least 1")
            if layer.padding < 0 or layer.padding >= layer.kernel:
                raise InputError(f"{where}: padding is {layer.padding}: from 0 to kernel - 1")
            if max(layer.in_values, layer.out_values) * layer.per_value > MAX_VALUES:
                raise InputError(f"{where}: more than 2^40 multiplications")
            for axis in ("h", "w"):
                size, out = getattr(layer, f"in_{axis}"), getattr(layer, f"out_{axis}")
                made = (size + 2 * layer.padding - layer.kernel) // layer.stride + 1
                if out != made:
                    raise InputError(f"{where}: out_{axis} is {out}, but kernel, stride and padding make it {made}")
            if layer.kind == "depthwise" and layer.in_c != layer.out_c:
                raise InputError(f"{where}: a depthwise layer has as many channels out as in")
            if k:
                last = self.layers[k - 1]
                if (last.out_h, last.out_w, last.out_c) != (layer.in_h, layer.in_w, layer.in_c):
                    raise InputError(f"{where}: its input is not what layer {k - 1} writes")
            if layer.adds is not None:
                if not 0 <= layer.adds <= k:
                    raise InputError(f"{where}: adds the input of layer {layer.adds}, which is not before it")
                first = self.layers[layer.adds]
                if (first.in_h, first.in_w, first.in_c) != (layer.out_h, layer.out_w, layer.out_c):
                    raise InputError(f"{where}: adds the input of layer {layer.adds}, which has another shape")

    @property
    def multiplications(self) -> int:
        """Of the chain run layer by layer."""
        return sum(layer.out_values * layer.per_value for layer in self.layers)


def _read_layer(row: dict[str, str | None], names: Sequence[str], where: str) -> ConvolutionLayer:
    values: dict[str, int | None] = {}
    for name in names:
        word = (row.get(name) or "").strip()
        if name == "adds" and not word:
            continue
        if not (word.isascii() and word.isdecimal()) or len(word) > 12:
            raise InputError(f"{where}: {name} is {word[:40]!r}: a whole number of at most 12 digits is wanted")
        values[name] = int(word)
    return ConvolutionLayer(kind=(row["kind"] or "").strip(), **values)  # type: ignore[arg-type]


def read_chain(path: str | Path) -> LayerChain:
    """Read a CSV file with a column for each field of ConvolutionLayer (`adds` may be absent or empty).

    Raises InputError naming the line.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    names = [f.name for f in fields(ConvolutionLayer)]
    try:
        claim(path.stat().st_size, str(path))
        with path.open(newline="", encoding="utf-8", errors="replace") as stream:
            rows = csv.DictReader(stream, restkey="")
            for name in names[:-1]:
                if name not in (rows.fieldnames or ()):
                    raise InputError(f"{path}: line 1: no column {name!r}{did_you_mean(name, rows.fieldnames or ())}")
            layers = [_read_layer(row, names[1:], f"{path}: line {rows.line_num}") for row in rows]
    except csv.Error as error:
        raise InputError(f"{path}: {brief(error)}") from None
    return LayerChain(tuple(layers), path.name)


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
        elif node.op in ("CONV_2D", "DEPTHWISE_CONV_2D") and (layer := _layer_of(graph, node, last)) is not None:
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


def _layer_of(graph: OpGraph, node: Operator, source: str) -> ConvolutionLayer | None:
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
