"""What is known of an ONNX model's tensors before it runs: shapes, and values that follow from constants and shapes."""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.memory import claim, max_bytes
from traces.operators.opgraph import Quantization, element_bits
from traces.readers.parts.onnx_evaluation import evaluate
from traces.readers.parts.onnx_inference import NUMERIC, Inference
from traces.readers.parts.onnx_shapes import result_type

# operators that are computed here where all that they read is known; their work is that of writing their result
FOLDED = (
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Concat", "ConstantOfShape", "Cos", "CumSum", "DequantizeLinear",
    "Div", "Equal", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pad", "Pow",
    "QuantizeLinear", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "Reshape", "Round", "Sign", "Sin", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "Tile",
    "Transpose", "Trilu", "Unsqueeze", "Where",
)  # fmt: skip
SHAPES = ("Shape", "Size")
REARRANGING = {"Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
GROWING = {"ConstantOfShape", "Expand", "Pad", "Range", "Tile"}
"""Results of others have at most as many elements as the product of those that they read."""
SHORT = 4096  # values of constants up to this length tell shape inference of shapes
AHEAD = 16  # nodes in one question: what one makes the next one reads

_A_BYTE, _LARGE, _MOST_FIELDS = 64, 4096, 4_000_000
_TENSOR: dict[int, Any] = {9: "bytes", 4: "floats", 10: "floats"}
_WEIGHTS = {7: {5: _TENSOR, 1: {5: {5: _TENSOR}}}}  # model.graph.initializer, model.graph.node.attribute.t

Constants = dict[str, npt.NDArray[Any]]


def parsed_bytes(data: bytes) -> int:
    """Return how much memory a model takes at most once it is parsed and its constants are arrays.

    Tiny messages and numbers take up to 64 bytes for one of the file; weights, stored as bytes or as packed floats,
    take few, and are found by a walk over the fields of a file whose size alone asks for it. O(fields)
    """
    found = {"bytes": 0, "floats": 0, "fields": 0}
    if _A_BYTE * len(data) > max_bytes():
        _find_weights(data, 0, len(data), _WEIGHTS, found)
    other = len(data) - found["bytes"] - found["floats"]
    return 4 * found["bytes"] + 12 * found["floats"] + _A_BYTE * other


def _find_weights(data: bytes, at: int, end: int, known: Mapping[int, Any], found: dict[str, int]) -> None:
    """Add up weights of a message, data[at:end], as far as it can be read; known: field -> what it holds."""
    while at < end and found["fields"] < _MOST_FIELDS:
        found["fields"] += 1
        key, at = _varint(data, at, end)
        kind = key & 7
        if kind == 2:
            size, at = _varint(data, at, end)
            what = known.get(key >> 3)
            if isinstance(what, str):
                found[what] += min(size, end - at)
            elif what is not None and size > _LARGE:
                _find_weights(data, at, min(at + size, end), what, found)
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 0:
            _, at = _varint(data, at, end)
        else:
            return


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
    return value, at


def follows(node: Any, constants: Container[str], present: Container[str]) -> bool:
    read = [name for name in node.input if name]
    if node.op_type == "Constant" or node.domain or not read:
        return bool(node.op_type == "Constant")
    if node.op_type in SHAPES:
        return read[0] in constants or read[0] in present
    return (node.op_type in FOLDED or node.op_type == "Identity") and all(name in constants for name in read)


def in_running_order(nodes: list[Any]) -> list[Any]:
    maker = {name: k for k, node in enumerate(nodes) for name in node.output if name}
    before = [{maker[name] for name in node.input if name in maker} for node in nodes]
    after: list[list[int]] = [[] for _ in nodes]
    for k, ids in enumerate(before):
        for j in ids:
            after[j].append(k)
    pending = [len(ids) for ids in before]
    ready, order = [k for k, count in enumerate(pending) if not count], []
    while ready:
        order.append(heappop(ready))
        for k in after[order[-1]]:
            pending[k] -= 1
            if not pending[k]:
                heappush(ready, k)
    return [nodes[k] for k in order] if len(order) == len(nodes) else nodes


def load_external(onnx: Any, tensor: Any, model: Path, before: int) -> int:
    """Bring a tensor's values that lie in another file of the folder into it; return `before`, the bytes brought
    so far, with these. Raises ValueError where the file is outside of the folder, or has no such part."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name, folder = entries.get("location", ""), Path(os.path.realpath(model)).parent
    file = Path(os.path.realpath(folder / name))  # where a link leads in a circle, what follows says so
    if not name or Path(name).is_absolute() or not file.is_relative_to(folder):
        raise ValueError(f"lies in {name!r}, which is not a file in the model's folder")
    if not file.is_file():
        raise ValueError(f"lies in {name!r}, which is not beside the model")
    kind = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    size = (math.prod(tensor.dims) * element_bits(kind) + 7) // 8
    start, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    if start < 0 or length != size or start + size > file.stat().st_size:
        raise ValueError(f"is not at {start} to {start + length} of {name!r}: {size} bytes are wanted")
    claim(3 * (before + size), str(model), f"constant {tensor.name!r} with those before")
    with file.open("rb") as stream:
        stream.seek(start)
        tensor.raw_data = stream.read(size)
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]
    return int(before + size)


class Values:
    """Types and values of tensors, inferred node by node in an order in which the model can run.

    constants: name -> array; what follows from them is added. types: name -> ONNX type of a tensor as the file has it;
    a more exact one replaces it. stored: constant that DequantizeLinear makes, perhaps rearranged -> the numbers that
    the file has for it, and what they stand for.
    """

    def __init__(self, model: Any, constants: Constants, types: dict[str, Any], inference: Inference) -> None:
        self.onnx, self.constants, self.types, self.inference = inference.onnx, constants, types, inference
        self.opsets = list(model.opset_import)
        self.opset = max((int(e.version) for e in self.opsets if e.domain in ("", "ai.onnx")), default=1)
        self.folded = 0  # elements
        self.stored: dict[str, tuple[npt.NDArray[Any], Quantization]] = {}

    def shape(self, name: str) -> tuple[int, ...] | None:
        if name in self.constants:
            return self.constants[name].shape
        described = self.types.get(name)
        if described is None or not described.HasField("shape"):
            return None
        sides = described.shape.dim
        return tuple(int(side.dim_value) for side in sides) if all(s.HasField("dim_value") for s in sides) else None

    def take(self, nodes: Sequence[Any], at: int) -> bool:
        """Note the types of what nodes[at] makes; return whether these are constants (and then are among them)."""
        node = nodes[at]
        read, made = [name for name in node.input if name], [name for name in node.output if name]
        known = follows(node, self.constants, self.types)
        if known and node.op_type in SHAPES:
            if (shape := self.shape(read[0])) is not None:
                given = {a.name: a.i for a in node.attribute}
                part = shape[given.get("start", 0) : given.get("end", len(shape))]
                self.constants[made[0]] = np.array(math.prod(shape) if node.op_type == "Size" else part, np.int64)
                return True
        elif known and node.op_type == "Identity":
            self.constants[made[0]] = self.constants[read[0]]
            self._keep_stored(node, read, made[0])
            return True
        elif known and (size := self._size(node, read, made)) is not None and self._fold(node, read, made, size):
            return True
        if any(self.shape(name) is None for name in made) and not self._rule(node):
            self._infer(nodes, at)
        return False

    def _rule(self, node: Any) -> bool:
        if len(node.output) != 1 or not node.input or any(self.shape(name) is None for name in node.input):
            return False
        types, values = [self._type(name) for name in node.input], [self.constants.get(name) for name in node.input]
        type_ = result_type(self.onnx, node, types, values)
        if type_ is not None:
            self.types[node.output[0]] = type_
        return type_ is not None

    def _size(self, node: Any, read: list[str], made: list[str]) -> int | None:
        sizes = [max(1, self.constants[name].size) for name in read]
        if node.op_type not in GROWING and (size := max(sum(sizes), math.prod(sizes))) <= SHORT:
            return size
        if node.op_type == "Range":  # the differences of inference go round
            try:
                start, limit, step = (self.constants[name].item() for name in read)
                return int(max(0, math.ceil((limit - start) / step)))
            except (ValueError, ArithmeticError):
                return None
        self.types.update(self._asked([node], read))  # the file's word counts for nothing here
        shapes = [self.shape(name) for name in made if name in self.types]
        if len(shapes) < len(made) or None in shapes:
            return None
        size = sum(math.prod(shape or ()) for shape in shapes)
        strings = any(self.types[name].elem_type == self.onnx.TensorProto.STRING for name in made)
        return None if strings and size > SHORT else size  # each is an object

    def _infer(self, nodes: Sequence[Any], at: int) -> None:
        following = [
            node
            for node in nodes[at : at + AHEAD]
            if node.op_type in NUMERIC and any(self.shape(name) is None for name in node.output if name)
        ]
        made = {name for node in following for name in node.output}
        found = self._asked(following, {name for node in following for name in node.input if name} - made)
        if any(name not in found for name in nodes[at].output if name):  # alone: it may say why
            found.update(self._asked(nodes[at : at + 1], {name for name in nodes[at].input if name}))
        self.types.update({name: type_ for name, type_ in found.items() if self.shape(name) is None})

    def _asked(self, nodes: Sequence[Any], read: Iterable[str]) -> dict[str, Any]:
        given = {name: type_ for name in sorted(set(read)) if (type_ := self._type(name)) is not None}
        return self.inference.types(nodes, given, self._values(given), self.opsets)

    def _values(self, names: Iterable[str]) -> list[Any]:
        short = ((n, self.constants[n]) for n in names if n in self.constants and self.constants[n].size <= SHORT)
        return [self.onnx.numpy_helper.from_array(array, name) for name, array in short]

    def _type(self, name: str) -> Any:
        if name in self.constants:
            array = self.constants[name]
            kind = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            return self.onnx.helper.make_tensor_type_proto(kind, array.shape).tensor_type
        return self.types.get(name)

    def _fold(self, node: Any, read: list[str], made: list[str], size: int) -> bool:
        self.folded += size
        claim(8 * self.folded, str(self.inference.path), f"constant {made[0]!r} with those computed before")
        try:
            results = evaluate(node, self.opset, {name: self.constants[name] for name in read})
        except Exception:  # whatever the package's NumPy code trips over: the operator then stays one
            return False
        for name, array in zip(made, results, strict=True):
            array.setflags(write=False)
            self.constants[name] = array
        self._keep_stored(node, read, made[0])
        return True

    def _keep_stored(self, node: Any, read: list[str], result: str) -> None:
        given = {a.name: [a.i, *a.ints] for a in node.attribute}
        if node.op_type == "DequantizeLinear":
            array, scale = self.constants[read[0]], self.constants[read[1]].astype(np.float64)
            zero = self.constants[read[2]].astype(np.int64) if len(read) > 2 else np.zeros(scale.shape, np.int64)
            axis = given.get("axis", [1])[0] % max(1, array.ndim)
            if scale.ndim < 2:  # else of blocks
                self.stored[result] = array, Quantization(scale.reshape(-1), zero.reshape(-1), axis)
        elif node.op_type in REARRANGING and read[0] in self.stored:
            array, quantization = self.stored[read[0]]
            if len(quantization.scale) > 1:
                if node.op_type not in ("Identity", "Transpose"):
                    return
                order = given.get("perm", [0, *range(array.ndim)[::-1]])[1:]
                if node.op_type == "Transpose":
                    quantization = replace(quantization, axis=order.index(quantization.axis))
            others = {name: self.constants[name] for name in read[1:]}
            moved = evaluate(node, self.opset, {read[0]: array, **others})[0]
            self.stored[result] = moved, quantization
