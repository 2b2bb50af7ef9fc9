"""An ONNX model with other operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traces.base.errors import InputError
from traces.readers.parts.onnx_values import follows, in_running_order
from traces.work.opgraph import INPUT, Operator, OpGraph

_NEW = {"ADD": "Add", "CONCATENATION": "Concat"}  # operators that can be added


def write_graph(model: Any, graph: OpGraph, where: str) -> bytes:
    """Return the bytes of a model (a ModelProto, which is changed) with the operators of `graph`; see onnx.write.

    Nodes of the file that are no operators, since their results follow from constants and shapes, are written as early
    as they can run. Constants and nodes that nobody reads any more are left out.
    """
    from onnx import helper, numpy_helper

    inside = model.graph
    file: dict[str, Any] = {}
    for index, node in enumerate(node for node in inside.node if node.op_type != "Constant"):
        file[next((out for out in node.output if out), node.name or f"node{index}")] = node
    nodes = [_node(node, graph, file, helper, where) for node in graph.nodes if node.op != INPUT]
    wanted = {name for node in nodes for name in node.input} | {value.name for value in inside.output}
    made = {name for node in nodes for name in node.output}
    known, others = {t.name for t in inside.initializer}, []
    for node in in_running_order(list(inside.node)):
        if not made & set(node.output) and follows(node, known, made | {value.name for value in inside.input}):
            known.update(node.output)
            others.append(node)
    for node in tuple(reversed(others)):
        if wanted & set(node.output):
            wanted.update(node.input)
        else:
            others.remove(node)
    kept = {t.name for t in inside.initializer} | {name for node in others for name in node.output}
    for name, array in graph.constants.items():
        if name in wanted - kept:
            inside.initializer.append(numpy_helper.from_array(array, name))
            kept.add(name)
    if missing := sorted({v.name for v in inside.output} - made - kept):
        raise InputError(f"{where}: the graph to write has no tensor {missing[0]!r}, which is a result of the model")
    unread = {t.name for t in inside.initializer} - wanted
    for values in (inside.initializer, inside.input):
        stay = [value for value in values if value.name not in unread]
        del values[:]
        values.extend(stay)
    nodes = in_running_order([*(type(node).FromString(node.SerializeToString()) for node in others), *nodes])
    del inside.node[:]
    inside.node.extend(nodes)
    described = [value for value in inside.value_info if value.name in made | kept]
    del inside.value_info[:]
    inside.value_info.extend(described)
    return bytes(model.SerializeToString())


def _node(node: Operator, graph: OpGraph, file: Mapping[str, Any], helper: Any, where: str) -> Any:
    """The file's node of that name, one like it, or a new one."""
    old = file.get(node.attributes.get("like", node.name))
    outputs = [t.name for t in node.outputs]
    if old is None:
        if node.op not in _NEW:
            raise InputError(
                f"{where}: operator {node.name!r} ({node.op}) is not in the model: only {', '.join(_NEW)} can"
            )
        more = {"axis": int(node.attributes["axis"])} if node.op == "CONCATENATION" else {}
        return helper.make_node(_NEW[node.op], node.operands, outputs, name=node.name, **more)
    made = type(old).FromString(old.SerializeToString())
    given = [name for name in old.input if name]
    if list(node.operands) != given:
        operands = list(node.operands)
        if len(operands) == len(given):  # those that are left out keep their places
            names = iter(operands)
            operands = [next(names) if name else "" for name in old.input]
        del made.input[:]
        made.input.extend(operands)
    named = iter(outputs)
    results = [next(named, name) if name else "" for name in old.output]
    if results != list(old.output):
        made.name = node.name
        del made.output[:]
        made.output.extend(results)
    if node.op == "DEPTHWISE_CONV_2D":
        for attribute in made.attribute:
            if attribute.name == "group":
                attribute.i = graph.tensors[node.inputs[0]].shape[1]
    return made
