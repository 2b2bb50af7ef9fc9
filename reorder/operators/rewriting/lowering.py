"""Rewritten graphs in operators that model files have.

Neither TensorFlow Lite nor ONNX has a convolution that adds to what is there. So partial convolutions
become convolutions of their own and additions in place; depthwise ones are concatenated. The first part has the bias,
the last addition the activation. `inexact` names operators whose integer sums would be rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from reorder.operators.rewriting.rewrite import (
    ADD,
    CONCAT,
    CONV,
    DEPTHWISE,
    PARTIAL_CONV,
    PARTIAL_DEPTHWISE,
    SCALAR_BYTES,
    channel_axis,
    gathered,
)
from traces.base.errors import InputError
from traces.operators.opgraph import Operator, OpGraph, Tensor

_WHOLE = {PARTIAL_CONV: CONV, PARTIAL_DEPTHWISE: DEPTHWISE}


def inexact(graph: OpGraph, original: OpGraph) -> dict[str, str]:
    """Return operator of `original` -> why the parts that a rewritten graph makes of it would not give its numbers.

    Numbers: bits of integers; of floating point, sums in another order are let pass.
    """
    reasons: dict[str, str] = {}
    nodes = {node.name: node for node in original.nodes}
    for node in graph.nodes:
        if node.op not in _WHOLE:
            continue
        name = _first(node, nodes)
        reason = _reason(node, nodes[name], original)
        if reason:
            reasons[name] = reason
            if node.output.buffer in nodes:  # of an addition that was absorbed too
                reasons.setdefault(node.output.buffer, reason)
    return reasons


def _first(node: Operator, nodes: Mapping[str, Operator]) -> str:
    name: str = node.attributes["like"]
    if name not in nodes:
        raise InputError(f"operator {node.name!r} stands for {name!r}, which the model does not have")
    return name


def _reason(part: Operator, node: Operator, original: OpGraph) -> str:
    if not part.constants:
        return "its weights are no constants"
    if "int" in node.output.dtype:
        if part.op == PARTIAL_CONV:
            return f"its partial sums would be rounded to {node.output.dtype} before they are added"
        a, b = (original.quantization.get(each.inputs[0]) for each in (node, part))
        same = a and b and np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point)
        if not same:
            return f"{part.inputs[0]!r} has another scale than the tensor that it is a part of"
    elif "int" in str(original.constants[part.constants[0]].dtype):
        return "its operand is quantised as it runs, with one scale over all its channels"
    return ""


def lowered(graph: OpGraph, original: OpGraph, order: Iterable[int]) -> OpGraph:
    """Return a rewritten graph in operators that files have, its operators listed in `order`.

    original: the graph before rewriting. Tensors that both have keep their names. Operators that it does not have say
    in their attribute `like` whose kind and options they have, none for additions and concatenations.
    """
    return _Lowering(graph, original).run(order)


class _Lowering:
    def __init__(self, graph: OpGraph, original: OpGraph) -> None:
        self.graph, self.original = graph, original
        self.before = {node.name: node for node in original.nodes}
        self.nodes: list[Operator] = []
        self.made: set[str] = set()
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self.quantization = dict(graph.quantization)
        # a storage that parts fill: the tensor that it holds when all have run
        parts = {t.buffer for node in graph.nodes if node.op in _WHOLE for t in node.outputs}
        self.names = {t.name: t.buffer if t.buffer in parts else t.name for t in graph.tensors.values()}
        self.left = {buffer: len(graph.writers[buffer]) for buffer in parts}
        self.running: dict[str, Tensor] = {}  # sums so far
        self.pieces: dict[str, list[tuple[int, str]]] = {}  # (first channel, tensor)

    def run(self, order: Iterable[int]) -> OpGraph:
        for v in order:
            node = self.graph.nodes[v]
            if node.op == PARTIAL_CONV:
                self._convolution(node)
            elif node.op == PARTIAL_DEPTHWISE:
                self._depthwise(node)
            else:
                self._other(node)
        used = {name for node in self.nodes for name in node.constants}
        constants = {**self.graph.constants, **self.constants}
        return replace(
            self.graph,
            nodes=tuple(self.nodes),
            outputs=tuple(dict.fromkeys(self.names[name] for name in self.graph.outputs)),
            constants={name: value for name, value in constants.items() if name in used},
            quantization=self.quantization,
        )

    def _add(self, node: Operator) -> None:
        self.nodes.append(node)
        self.made.update(t.name for t in node.outputs)

    def _other(self, node: Operator) -> None:
        """An operator as it was, its operand put together again where it gathered it."""
        attributes = {key: value for key, value in node.attributes.items() if key not in ("gather", "operands")}
        if "gather" in node.attributes:
            parts = tuple(self.names.get(name, name) for name in gathered(node))
            operands = parts if node.op == CONCAT else (self._together(node, parts), *node.constants)
            attributes["operands"] = operands
        else:
            operands = tuple(self.names.get(name, name) for name in node.operands)
            if "operands" in node.attributes:
                attributes["operands"] = operands
        inputs = tuple(dict.fromkeys(name for name in operands if name not in node.constants))
        self._add(replace(node, inputs=inputs, attributes=attributes))

    def _together(self, node: Operator, parts: tuple[str, ...]) -> str:
        """A concatenation of tensors: the file's own where it has one."""
        for concat in self.original.nodes:
            if concat.op == CONCAT and concat.operands == parts:
                if concat.output.name not in self.made:
                    self._add(concat)
                self.names[concat.output.name] = concat.output.name
                return concat.output.name
        made = {t.name: t for each in self.nodes for t in each.outputs}
        tensors = [made[name] for name in parts]
        axis = channel_axis(node)
        shape = list(tensors[0].shape)
        shape[axis] = sum(t.shape[axis] for t in tensors)
        name = f"{node.name}#operand"
        self._concatenate(
            name, parts, Tensor(name, tuple(shape), sum(t.n_bytes for t in tensors), name, tensors[0].dtype), node
        )
        return name

    def _concatenate(self, name: str, parts: tuple[str, ...], tensor: Tensor, node: Operator) -> None:
        axis = channel_axis(node) % len(tensor.shape)
        attributes = {"like": "", "operands": parts, "axis": axis, "activation": "NONE"}
        if "channel_axis" in node.attributes:
            attributes["channel_axis"] = axis
        if parts[0] in self.quantization:
            self.quantization.setdefault(tensor.name, self.quantization[parts[0]])
        self._add(Operator(name, CONCAT, tuple(dict.fromkeys(parts)), (tensor,), (), attributes))

    # -- partial operators --

    def _sliced(self, name: str, axis: int, first: int, last: int) -> str:
        whole = self.graph.constants[name]
        axis %= whole.ndim
        if (first, last) == (0, whole.shape[axis]):
            return name
        made = f"{name}[{first}:{last}]"
        if made not in self.constants:
            where = (*(slice(None),) * axis, slice(first, last))
            self.constants[made] = np.ascontiguousarray(whole[where])
            given = self.graph.quantization.get(name)
            if given is not None:
                apart = len(given.scale) > 1 and given.axis == axis
                if apart:
                    given = replace(given, scale=given.scale[first:last], zero_point=given.zero_point[first:last])
                self.quantization[made] = given
        return made

    def _piece(self, node: Operator, tensor: Tensor, constants: tuple[str, ...], **more: Any) -> None:
        skipped = ("gather", "channels", "all_channels", "slice", "operands")
        attributes = {key: value for key, value in node.attributes.items() if key not in skipped}
        given = self.names.get(node.inputs[0], node.inputs[0])
        name = node.name if tensor.name == node.output.name else tensor.name
        self._add(replace(node, name=name, op=_WHOLE[node.op], inputs=(given,), outputs=(tensor,), constants=constants,
                          attributes={**attributes, **more}))  # fmt: skip

    def _convolution(self, node: Operator) -> None:
        """A convolution of some of the channels, and the addition to what there is."""
        whole = node.output.buffer
        self.left[whole] -= 1
        last = not self.left[whole]
        constants = node.constants
        if "channels" in node.attributes:
            axis = 1 if node.attributes.get("weight_layout") == "OIHW" else -1
            constants = (self._sliced(constants[0], axis, *node.attributes["channels"]), *constants[1:])
        shape = self.before[_first(node, self.before)].output.shape
        name = whole if last and whole not in self.running else node.output.name
        tensor = replace(node.output, name=name, buffer=name, shape=shape)
        activation = node.attributes.get("activation", "NONE")
        more = {"activation": activation if name == whole else "NONE"} if "activation" in node.attributes else {}
        self._piece(node, tensor, constants, **more)
        before = self.running.get(whole)
        if before is not None:
            made = whole if last else f"{name}#sum"
            kept = last and any(self.names[name] == whole for name in self.graph.outputs)
            shared = node.output.n_bytes > SCALAR_BYTES and not kept
            tensor = replace(node.output, name=made, buffer=before.buffer if shared else made)
            attributes = {"like": "", "operands": (before.name, name), "activation": activation if last else "NONE"}
            self._add(Operator(made, ADD, (before.name, name), (tensor,), (), attributes))
        self.running[whole] = tensor

    def _depthwise(self, node: Operator) -> None:
        """A depthwise convolution of some of the channels; behind the last one of a storage, the concatenation."""
        first, last = node.attributes["channels"]
        total = self.graph.constants[node.constants[0]]
        axis = 0 if node.attributes.get("weight_layout") == "OIHW" else -1
        factor = total.shape[axis] // node.attributes["all_channels"]
        ends = first * factor, last * factor
        constants = tuple(self._sliced(c, axis if k == 0 else 0, *ends) for k, c in enumerate(node.constants))
        out = tensor = node.output
        if "slice" in node.attributes:
            along = channel_axis(node)
            shape = list(out.shape)
            shape[along] = ends[1] - ends[0]
            size = out.n_bytes * (ends[1] - ends[0]) // out.shape[along]
            tensor = Tensor(out.name, tuple(shape), max(1, size), out.name, out.dtype)
        self._piece(node, tensor, constants)
        given = self.graph.quantization.get(self.before[_first(node, self.before)].output.name)
        if given is not None:
            self.quantization[out.name] = given
        if "slice" not in node.attributes:
            return
        whole = out.buffer
        self.left[whole] -= 1
        self.pieces.setdefault(whole, []).append((first, out.name))
        if not self.left[whole]:
            parts = tuple(name for _, name in sorted(self.pieces[whole]))
            self._concatenate(whole, parts, replace(out, name=whole, buffer=whole), node)
