"""ONNX models (.onnx), through the package `onnx`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, MissingExtraError, brief, did_you_mean
from traces.base.memory import claim, read_within
from traces.operators.opgraph import INPUT, Operator, OpGraph, Tensor, element_bits, real_values
from traces.readers.parts.layers import damage
from traces.readers.parts.model_network import WEIGHTED
from traces.readers.parts.onnx_evaluation import evaluate
from traces.readers.parts.onnx_inference import NUMERIC, Inference, Signature
from traces.readers.parts.onnx_values import Values, follows, in_running_order, load_external, parsed_bytes
from traces.readers.reader import NETWORK_READERS, ModelReader, Shapes

CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap", "SequenceAt", "SequenceConstruct", "SequenceInsert", "Optional"}
# ONNX name -> the name used for the same operator throughout the suite (TensorFlow Lite's)
OPERATORS = {
    "Conv": "CONV_2D",
    "Gemm": "FULLY_CONNECTED",
    "Add": "ADD",
    "Sub": "SUB",
    "Mul": "MUL",
    "Mean": "ELEMENTWISE_MEAN",  # MEAN reduces
    "Concat": "CONCATENATION",
    "MaxPool": "MAX_POOL_2D",
    "AveragePool": "AVERAGE_POOL_2D",
    "GlobalAveragePool": "AVERAGE_POOL_2D",
    "QuantizeLinear": "QUANTIZE",
    "DequantizeLinear": "DEQUANTIZE",
    "Sigmoid": "LOGISTIC",
}
OURS = {*OPERATORS, "GlobalMaxPool", "Relu", "Tanh"} - {"QuantizeLinear", "DequantizeLinear"}
"""Operators that traces.operators.operations computes: their tensors hold real numbers, those of ONNX stored ones."""
WINDOWS = {"CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "AVERAGE_POOL_2D"}


class _Reader:
    def __init__(self, path: Path, batch: int | None, shapes: Shapes) -> None:
        self.path, self.batch, self.shapes, self.external_bytes = path, batch, shapes, 0
        self.notes: list[str] = []
        try:
            import onnx
            import onnx.numpy_helper
        except ImportError as error:
            raise MissingExtraError("onnx", "models") from error
        from google.protobuf.message import DecodeError

        self.onnx = onnx
        data = read_within(path, 2)
        claim(parsed_bytes(data), str(path), "the model")
        try:
            self.model = onnx.ModelProto.FromString(data)
        except (DecodeError, RuntimeError, ValueError) as error:
            raise self.fail(f"truncated, damaged or not an ONNX model ({brief(error)})") from error

    def fail(self, text: str) -> InputError:
        return InputError(f"{self.path}: {text}")

    def opgraph(self) -> OpGraph:
        graph = self.model.graph
        if not graph.node:
            raise self.fail("the model has no operators")
        self.constants: dict[str, npt.NDArray[Any]] = {t.name: self._array(t) for t in graph.initializer}
        if graph.sparse_initializer:
            raise self.fail("weights are stored sparsely, which this reader does not take apart: store them densely")
        nodes: list[Any] = []
        versions = [entry.version for entry in self.model.opset_import if entry.domain in ("", "ai.onnx")]
        self.opset = int(versions[0]) if versions else 1
        self.signatures: dict[str, Signature] = {}
        self._add_nodes(graph.node, nodes)
        self._set_shapes()
        self.tensors = self._described()
        nodes = in_running_order(nodes)
        kept = []
        with Inference(self.onnx, self.path) as inference:
            values = Values(self.model, self.constants, self.tensors, inference)
            for k, node in enumerate(nodes):  # which grows
                if node.op_type == "If":
                    nodes[k + 1 : k + 1] = self._branch(node)
                elif not values.take(nodes, k):
                    kept.append((k, node))
        read = {name for _, node in kept for name in node.input}
        made = {name for _, node in kept for name in node.output}
        outputs = tuple(dict.fromkeys(o.name for o in graph.output if o.name not in self.constants))
        begin = [
            Operator(i.name, INPUT, (), (self._tensor(i.name, f"input {i.name!r}"),))
            for i in graph.input
            if i.name not in self.constants and i.name not in made and (i.name in read or i.name in outputs)
        ]
        operators = [self._operator(node, k) for k, node in kept]
        used = {name for node in operators for name in node.constants}
        constants = {name: array for name, array in self.constants.items() if name in used}
        quantization = {name: given for name, (_, given) in values.stored.items() if name in used}
        constants.update({name: values.stored[name][0] for name in quantization})
        return OpGraph(
            graph.name or self.path.stem,
            (*begin, *operators),
            outputs,
            constants,
            source=str(self.path),
            quantization=quantization,
            notes=tuple(self.notes),
        )

    def _add_nodes(self, given: Iterable[Any], nodes: list[Any]) -> None:
        for node in given:
            self._check_kind(node)
            if node.op_type == "Constant":
                self._constant(node)
            else:
                nodes.append(node)

    def _branch(self, node: Any) -> list[Any]:
        """Return the nodes of the branch that an If takes, in its place; the model holds them from then on."""
        condition = self.constants.get(node.input[0]) if node.input else None
        if condition is None:
            at = f"node {node.name or node.output[0]!r} (If)"
            raise self.fail(
                f"{at}: its condition is not known before the inputs are: give their shapes (--shape NAME=1x3x224x224) "
                "or export the model without branches"
            )
        name = "then_branch" if bool(np.asarray(condition).reshape(-1)[0]) else "else_branch"
        branch = next(attribute.g for attribute in node.attribute if attribute.name == name)
        results = dict(zip((value.name for value in branch.output), node.output, strict=True))
        own = _made_in(branch)
        renamed = {inner: results.get(inner, f"{node.output[0]}/{inner}") for inner in own}
        for tensor in branch.initializer:
            self.constants[renamed[tensor.name]] = self._array(tensor)
            self.model.graph.initializer.add().CopyFrom(tensor)
            self.model.graph.initializer[-1].name = renamed[tensor.name]
        inside = [type(node).FromString(inner.SerializeToString()) for inner in branch.node]
        _rename(inside, renamed)
        for outer, result in results.items():
            if outer not in own:  # a value of the graph around it
                inside.append(self.onnx.helper.make_node("Identity", [outer], [result]))
        stay = [other for other in self.model.graph.node if other is not node and other.output != node.output]
        del self.model.graph.node[:]
        self.model.graph.node.extend([*stay, *inside])
        self.notes.append(f"{node.output[0]!r} (If) always takes its {name}")
        nodes: list[Any] = []
        self._add_nodes(inside, nodes)
        return in_running_order(nodes)

    def load(self) -> None:
        attributes = (a.t for node in self.model.graph.node for a in node.attribute if a.HasField("t"))
        for tensor in (*self.model.graph.initializer, *attributes):
            if tensor.external_data:
                self._array(tensor)

    def _check_kind(self, node: Any) -> None:
        at = f"node {node.name or (node.output[0] if node.output else '?')!r} ({node.op_type})"
        graphs = {self.onnx.AttributeProto.GRAPH, self.onnx.AttributeProto.GRAPHS}
        if node.op_type == "If" and node.domain in ("", "ai.onnx"):
            return  # a branch may be taken
        if node.op_type in CONTROL_FLOW or any(attribute.type in graphs for attribute in node.attribute):
            raise self.fail(f"{at}: control flow cannot be scheduled: export the model without loops and branches")
        if node.domain not in ("", "ai.onnx") or node.op_type not in NUMERIC:
            domain = f" of domain {node.domain!r}" if node.domain else ""
            raise self.fail(f"{at}: an unknown operator{domain}: those of the ONNX standard on numbers are known")
        if node.op_type not in self.signatures:
            try:
                schema = self.onnx.defs.get_schema(node.op_type, self.opset, "")
            except self.onnx.defs.SchemaError as error:
                raise self.fail(f"{at}: no operator of operator set {self.opset}") from error
            self.signatures[node.op_type] = Signature.of(schema)
        if wrong := self.signatures[node.op_type].odd(node):
            raise self.fail(f"{at}: {wrong}")

    def _array(self, tensor: Any) -> npt.NDArray[Any]:
        at = f"constant {tensor.name!r}"
        if any(side < 0 for side in tensor.dims):
            raise self.fail(f"{at} has the shape {list(tensor.dims)}")
        if tensor.data_type in (self.onnx.TensorProto.STRING, self.onnx.TensorProto.UNDEFINED):
            raise self.fail(f"{at} holds no numbers")
        if tensor.data_location == self.onnx.TensorProto.EXTERNAL or tensor.external_data:
            try:
                self.external_bytes = load_external(self.onnx, tensor, self.path, self.external_bytes)
            except (ValueError, OSError) as error:
                raise self.fail(f"{at} {error}") from error
        stored = len(tensor.raw_data) or sum(
            len(getattr(tensor, field))
            for field in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
        )
        if math.prod(tensor.dims) > 2 * stored:  # at most two elements in a byte or number
            raise self.fail(f"{at} of shape {list(tensor.dims)} has only {stored} bytes or numbers in the file")
        array = self.onnx.numpy_helper.to_array(tensor)
        array.setflags(write=False)
        return array

    def _constant(self, node: Any) -> None:
        for attribute in node.attribute:
            if attribute.name == "value":
                value = self._array(attribute.t)
            elif attribute.name in ("value_float", "value_floats", "value_int", "value_ints"):
                kind = np.float32 if "float" in attribute.name else np.int64
                value = np.array(self.onnx.helper.get_attribute_value(attribute), kind)
            else:
                raise self.fail(f"node {node.name or node.output[0]!r} (Constant): {attribute.name} holds no numbers")
            self.constants[node.output[0]] = value

    def _set_shapes(self) -> None:
        graph, values = self.model.graph, dict[str, int]()
        inputs = {value.name: value for value in graph.input if value.name not in self.constants}
        for name, shape in self.shapes.items():
            sides = inputs[name].type.tensor_type.shape.dim if name in inputs else []
            if len(sides) != len(shape):
                known = f"an input of {len(sides)} dimensions" if name in inputs else "no input"
                hint = "" if name in inputs else did_you_mean(name, inputs)
                raise self.fail(f"a shape of {len(shape)} dimensions is given for {name!r}, {known}{hint}")
            for side, size in zip(sides, shape, strict=True):
                self._set_side(name, side, size, values)
        for name, value in inputs.items():
            first = value.type.tensor_type.shape.dim[:1]
            is_open = bool(first) and (first[0].dim_value < 0 or not first[0].HasField("dim_value"))
            if first and (self.batch is not None or is_open):
                known_size = self.batch or values.get(first[0].dim_param or "?")
                if known_size is None:
                    self.notes.append(f"the open first dimension of {name!r} is taken as 1 (--batch sets it)")
                self._set_side(name, first[0], known_size or 1, values)
        for value in (*graph.input, *graph.value_info, *graph.output):
            for side in value.type.tensor_type.shape.dim:
                if side.dim_param and side.dim_param in values:
                    side.dim_value = values[side.dim_param]
        self.is_set = bool(values)

    def _set_side(self, name: str, side: Any, size: int, values: dict[str, int]) -> None:
        if side.dim_value >= 0 and side.HasField("dim_value"):  # some exporters write -1 for an open dimension
            if side.dim_value != size:
                raise self.fail(f"input {name!r} has a dimension of {side.dim_value}, not {size}")
            return
        symbol = side.dim_param
        if symbol and values.get(symbol, size) != size:
            raise self.fail(f"the dimension {symbol!r} is {values[symbol]}, and {size} in the input {name!r}")
        values[symbol] = size
        side.dim_value = size

    def _described(self) -> dict[str, Any]:
        graph = self.model.graph
        known = {v.name: v.type.tensor_type for v in (*graph.input, *graph.value_info, *graph.output)}
        if self.is_set:  # what is still open may follow from it
            given = {value.name for value in graph.input}
            known = {k: v for k, v in known.items() if k in given or all(s.HasField("dim_value") for s in v.shape.dim)}
        return known

    def _tensor(self, name: str, where: str) -> Tensor:
        described = self.tensors.get(name)
        if described is None or not described.HasField("shape"):
            raise self.fail(f"{where}: the shape of tensor {name!r} is unknown: run ONNX shape inference on the model")
        shape: list[int] = []
        for side in described.shape.dim:
            if not side.HasField("dim_value") or side.dim_value < 0:
                text = side.dim_param or "?"
                raise self.fail(
                    f"{where}: tensor {name!r} has the dynamic dimension {text!r}: give the shape of the model's input "
                    "(--shape NAME=1x3x224x224), or fix it when exporting the model"
                )
            shape.append(int(side.dim_value))
        try:
            dtype, bits = _element(described.elem_type)
        except (KeyError, TypeError) as error:
            raise self.fail(f"{where}: tensor {name!r} has the unknown type {described.elem_type}") from error
        if not bits:
            raise self.fail(f"{where}: tensor {name!r} holds strings: only numbers can be placed in memory")
        return Tensor(name, tuple(shape), (math.prod(shape) * bits + 7) // 8, name, dtype)

    def _operator(self, node: Any, index: int) -> Operator:
        results = [name for name in node.output if name]
        name = results[0] if results else node.name or f"node{index}"
        where = f"node {name!r} ({node.op_type})"
        operands = [given for given in node.input if given]
        inputs = tuple(dict.fromkeys(given for given in operands if given not in self.constants))
        constants = tuple(dict.fromkeys(given for given in operands if given in self.constants))
        op = OPERATORS.get(node.op_type, node.op_type.upper())
        attributes = {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute}
        tensors = tuple(self._tensor(result, where) for result in dict.fromkeys(results))
        sides = len(tensors[0].shape) - 2 if tensors else 0
        known = self._attributes(node.op_type, attributes, sides)
        weights = self.constants.get(operands[1]) if len(operands) > 1 else None
        if node.op_type == "MatMul" and weights is not None and weights.ndim == 2:
            op, known["transposed"] = "FULLY_CONNECTED", True
        if node.op_type == "Gemm":
            if attributes.get("transA"):
                op = "GEMM"
            known["transposed"] = not attributes.get("transB", 0)
        if node.op_type == "Clip":
            known["limits"] = tuple(
                float(np.asarray(self.constants.get(name, attributes.get(key, without))).flat[0])
                for name, key, without in zip(
                    [*node.input, "", ""][1:3], ("min", "max"), (-math.inf, math.inf), strict=True
                )
            )
        if node.op_type == "Conv":
            groups = int(attributes.get("group", 1))
            if weights is not None and groups > 1 and weights.shape[1] == 1:
                op = "DEPTHWISE_CONV_2D"
            known["groups"] = 1 if op == "DEPTHWISE_CONV_2D" else groups
            known["weight_layout"] = "OIHW"
        if op in WINDOWS or op == "CONCATENATION":
            known["channel_axis"] = 1
        ours = op == "FULLY_CONNECTED" or (node.op_type in OURS and op != "GEMM")
        if not ours or (op in WINDOWS and sides != 2):
            known["compute"] = partial(_computed, node.SerializeToString(), self.opset)
        if op not in WEIGHTED or tuple(operands) != (*inputs[:1], *constants):
            known["operands"] = tuple(operands)
        return Operator(name, op, inputs, tensors, constants, known)

    def _attributes(self, kind: str, given: dict[str, Any], sides: int) -> dict[str, Any]:
        known: dict[str, Any] = {}
        if kind in ("Conv", "MaxPool", "AveragePool"):
            known["strides"] = tuple(int(v) for v in given.get("strides", (1,) * sides))
            known["dilations"] = tuple(int(v) for v in given.get("dilations", (1,) * sides))
            auto = given.get("auto_pad", b"NOTSET").decode()
            known["padding"] = {"NOTSET": tuple(int(v) for v in given.get("pads", (0,) * 2 * sides))}.get(auto, auto)
            if "kernel_shape" in given:
                known["window"] = tuple(int(v) for v in given["kernel_shape"])
            if kind == "AveragePool":
                known["count_include_pad"] = bool(given.get("count_include_pad", 0))
        for key in ("axis", "axes", "perm", "alpha", "epsilon", "approximate", "beta", "ceil_mode", "storage_order"):
            if key in given:
                known[key] = tuple(given[key]) if isinstance(given[key], list) else given[key]
        return known


@cache
def _element(kind: int) -> tuple[str, int]:
    """Return name and bits of an element, 0 of strings."""
    from onnx import helper

    dtype = helper.tensor_dtype_to_np_dtype(kind)
    return str(dtype), 0 if dtype.hasobject else element_bits(str(dtype))


def _made_in(graph: Any) -> set[str]:
    return {name for node in graph.node for name in node.output} | {tensor.name for tensor in graph.initializer}


def _rename(nodes: Iterable[Any], names: Mapping[str, str]) -> None:
    for node in nodes:
        for listed in (node.input, node.output):
            listed[:] = [names.get(name, name) for name in listed]
        for attribute in node.attribute:
            inside = {name: new for name, new in names.items() if name not in _made_in(attribute.g)}
            _rename(attribute.g.node, inside)
            for value in attribute.g.output:
                value.name = inside.get(value.name, value.name)


def _computed(node: bytes, opset: int, operands: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    from onnx import NodeProto

    proto = NodeProto.FromString(node)
    given = dict(zip((name for name in proto.input if name), operands, strict=True))
    try:
        return evaluate(proto, opset, given)
    except Exception as error:  # whatever the package's NumPy code trips over
        raise InputError(brief(error)) from error


class Onnx(ModelReader):
    suffixes = (".onnx",)
    sets_shapes = True

    def opgraph(self, file: Path, batch: int | None = None, shapes: Shapes | None = None) -> OpGraph:
        with damage(str(file)):
            return _Reader(file, batch, shapes or {}).opgraph()

    def written(self, file: Path, graph: OpGraph, offsets: Mapping[str, int] | None) -> bytes:
        """The format has no place for offsets; operators stand behind the constants."""
        reader = _Reader(file, None, {n.output.name: n.output.shape for n in graph.nodes if n.op == INPUT})
        with damage(str(file)):
            if any(node.op_type == "If" for node in reader.model.graph.node):
                reader.opgraph()  # takes the branches
        reader.load()
        return _written(reader.model, graph, str(file))


NETWORK_READERS.register("onnx", summary="ONNX models: operator graphs, or networks of fully connected layers")(Onnx())


_NEW = {"ADD": "Add", "CONCATENATION": "Concat"}  # operators that can be added


def _written(model: Any, graph: OpGraph, where: str) -> bytes:
    from onnx import helper, numpy_helper

    inside = model.graph
    file: dict[str, Any] = {}
    for index, node in enumerate(node for node in inside.node if node.op_type != "Constant"):
        file[next((out for out in node.output if out), node.name or f"node{index}")] = node
    nodes = [_node(node, graph, file, helper, where) for node in graph.nodes if node.op != INPUT]
    needed = {name for node in nodes for name in node.input} | {value.name for value in inside.output}
    made = {name for node in nodes for name in node.output}
    known, others = {t.name for t in inside.initializer}, []
    for node in in_running_order(list(inside.node)):
        if not made & set(node.output) and follows(node, known, made | {value.name for value in inside.input}):
            known.update(node.output)
            others.append(node)
    for node in tuple(reversed(others)):
        if needed & set(node.output):
            needed.update(node.input)
        else:
            others.remove(node)
    kept = {t.name for t in inside.initializer} | {name for node in others for name in node.output}
    for name, array in graph.constants.items():
        if name in needed - kept:
            if name in graph.quantization:
                kind = next(node.output.dtype for node in graph.nodes if name in node.constants)
                array = real_values(graph, name).astype(kind)
            inside.initializer.append(numpy_helper.from_array(array, name))
            kept.add(name)
    if missing := sorted({v.name for v in inside.output} - made - kept):
        raise InputError(f"{where}: the graph to write has no tensor {missing[0]!r}, which is a result of the model")
    unread = {t.name for t in inside.initializer} - needed
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
    if node.op == "DEPTHWISE_CONV_2D" and node.inputs:  # else of constants, which nothing splits
        for attribute in made.attribute:
            if attribute.name == "group":
                attribute.i = graph.tensors[node.inputs[0]].shape[1]
    return made
