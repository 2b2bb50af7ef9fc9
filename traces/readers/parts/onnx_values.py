"""What is known of an ONNX model's tensors before it runs: shapes, and values that follow from constants and shapes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.files import claim

# operators that are computed here where all that they read is known; their work is that of writing their result
FOLDED = (
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Concat", "ConstantOfShape", "DequantizeLinear", "Div", "Equal",
    "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pad", "Pow", "QuantizeLinear", "Range", "ReduceMax",
    "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Tile", "Transpose",
    "Unsqueeze", "Where",
)  # fmt: skip
SHAPES = ("Shape", "Size")
SHORT = 4096  # values of constants up to this length tell shape inference of shapes

Constants = dict[str, npt.NDArray[Any]]


def follows(node: Any, constants: Container[str], present: Container[str]) -> bool:
    """Whether a node's results follow from constants, and from the shapes of `present` tensors, alone."""
    read = [name for name in node.input if name]
    if node.op_type == "Constant" or node.domain or not read:
        return bool(node.op_type == "Constant")
    if node.op_type in SHAPES:
        return read[0] in constants or read[0] in present
    return (node.op_type in FOLDED or node.op_type == "Identity") and all(name in constants for name in read)


def in_running_order(nodes: list[Any]) -> list[Any]:
    """Return nodes so that each comes behind what it reads, else as given; all as given where there is a cycle."""
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


def load_beside(onnx: Any, tensor: Any, model: Path, before: int) -> int:
    """Bring the values of a tensor that lie in another file into it: a part of a file in the model's folder.

    before: bytes that were brought before. Returns them with these. Raises ValueError where the file is outside of the
    folder, or has no such part.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name, folder = entries.get("location", ""), Path(os.path.realpath(model)).parent
    file = Path(os.path.realpath(folder / name))  # where a link leads in a circle, what follows says so
    if not name or Path(name).is_absolute() or not file.is_relative_to(folder):
        raise ValueError(f"lies in {name!r}, which is no file in the model's folder")
    if not file.is_file():
        raise ValueError(f"lies in {name!r}, which is not beside the model")
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    bits = 4 if "int4" in str(kind) else 8 * kind.itemsize
    size = (math.prod(tensor.dims) * bits + 7) // 8
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
    a more exact one replaces it. whole: returns what inference over the whole model gives; used where a node's own
    inference gives nothing.
    """

    def __init__(
        self,
        model: Any,
        constants: Constants,
        types: dict[str, Any],
        whole: Callable[[], Mapping[str, Any]],
        path: Path,
    ) -> None:
        import onnx.checker
        import onnx.shape_inference

        self.errors = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, onnx.defs.SchemaError)
        self.onnx, self.constants, self.types, self.whole, self.path = onnx, constants, types, whole, path
        self.opsets, self.version = list(model.opset_import), model.ir_version
        self.domains = {entry.domain: int(entry.version) for entry in self.opsets}
        self.folded = 0  # elements

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor, None where a side is unknown."""
        if name in self.constants:
            return self.constants[name].shape
        described = self.types.get(name)
        if described is None or not described.HasField("shape"):
            return None
        sides = described.shape.dim
        return tuple(int(side.dim_value) for side in sides) if all(s.HasField("dim_value") for s in sides) else None

    def take(self, node: Any) -> bool:
        """Note the types of a node's results; return whether they are constants (and then are among them)."""
        read, made = [name for name in node.input if name], [name for name in node.output if name]
        known = follows(node, self.constants, self.types)
        if known and node.op_type in SHAPES and (shape := self.shape(read[0])) is not None:
            given = {a.name: a.i for a in node.attribute}
            part = shape[given.get("start", 0) : given.get("end", len(shape))]
            self.constants[made[0]] = np.array(math.prod(shape) if node.op_type == "Size" else part, np.int64)
            return True
        if known and node.op_type == "Identity":
            self.constants[made[0]] = self.constants[read[0]]
            return True
        known = known and node.op_type not in SHAPES
        own: set[str] = set()
        if known or any(self.shape(name) is None for name in made):
            own = self._infer(node, made)
        return known and own.issuperset(made) and self._fold(node, read, made)

    def _infer(self, node: Any, made: Iterable[str]) -> set[str]:
        """Note the types of a node's results; return those whose shape follows from the node, not the file's word."""
        data = {n: self.constants[n] for n in node.input if n in self.constants and self.constants[n].size <= SHORT}
        type_of: Mapping[str, Any] = {}
        try:
            schema = self.onnx.defs.get_schema(node.op_type, self.domains[node.domain], node.domain)
            types = {name: self._type(name) for name in node.input if name}
            arrays = {name: self.onnx.numpy_helper.from_array(array, name) for name, array in data.items()}
            inferred = self.onnx.shape_inference.infer_node_outputs(
                schema, node, types, arrays, opset_imports=self.opsets, ir_version=self.version
            )
            type_of = {name: value.tensor_type for name, value in inferred.items()}
        except (KeyError, ValueError, TypeError, RuntimeError, *self.errors):
            pass  # the whole model's inference says why, or knows more
        self.types.update({name: type_of[name] for name in made if name in type_of})
        own = {name for name in made if name in type_of and self.shape(name) is not None}
        if any(self.shape(name) is None for name in made):
            self.types.update({name: self._inferred[name] for name in made if name in self._inferred})
        return own

    def _type(self, name: str) -> Any:
        if name in self.constants:
            array = self.constants[name]
            kind = self.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            return self.onnx.helper.make_tensor_type_proto(kind, array.shape)
        return self.onnx.TypeProto(tensor_type=self.types[name])

    @cached_property
    def _inferred(self) -> Mapping[str, Any]:
        return self.whole()

    def _fold(self, node: Any, read: list[str], made: list[str]) -> bool:
        """Compute a node of constants; False where the size of its result is not known or it cannot be computed."""
        sizes = [math.prod(self.shape(name) or ()) for name in made]
        if node.op_type == "Range":  # the differences of inference go round
            try:
                start, limit, step = (self.constants[name].item() for name in read)
                sizes = [max(0, math.ceil((limit - start) / step))]
            except (ValueError, ArithmeticError):
                return False
        if any(self.types[name].elem_type == self.onnx.TensorProto.STRING for name in made) and sum(sizes) > SHORT:
            return False  # each is an object
        self.folded += sum(sizes)
        claim(8 * self.folded, str(self.path), f"constant {made[0]!r} with those computed before")
        from onnx.reference import ReferenceEvaluator  # half a second, which most models need not

        try:
            evaluator = ReferenceEvaluator(node, opsets=self.domains)
            with np.errstate(all="ignore"):
                results = evaluator.run(None, {name: self.constants[name] for name in read})
        except Exception:  # whatever the package's NumPy code trips over: the operator then stays one
            return False
        for name, value in zip(node.output, results, strict=False):
            if name:
                array = np.asarray(value)
                array.setflags(write=False)
                self.constants[name] = array
        return True
