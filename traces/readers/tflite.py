"""TensorFlow Lite models (.tflite), through the packages `tflite` (the schema) and `flatbuffers`.

Neither checks what it reads, so this module does: vectors, indices, sizes and types, and how many numbers there are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, MissingExtraError
from traces.base.memory import claim, read_within
from traces.operators.execute import fold
from traces.operators.opgraph import INPUT, Operator, OpGraph, Quantization, Tensor, element_bits
from traces.readers.parts.layers import damage
from traces.readers.parts.model_network import WEIGHTED
from traces.readers.parts.tflite_sparse import dense
from traces.readers.parts.tflite_writing import TfliteWriting
from traces.readers.reader import NETWORK_READERS, ModelReader

TYPES = {  # code in the schema -> type of an element
    0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 8: "complex64", 9: "int8",
    10: "float64", 11: "complex128", 12: "uint64", 15: "uint32", 16: "uint16", 17: "int4",
}  # fmt: skip
RESOURCE = 13  # the type of a handle of a variable: it takes no memory, what it stands for does
CONTROL_FLOW = {"IF", "WHILE", "CALL", "STABLEHLO_WHILE", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE"}
ONCE = {"VAR_HANDLE", "CALL_ONCE"}  # run before the first inference
READ, ASSIGN = "READ_VARIABLE", "ASSIGN_VARIABLE"
ACTIVATIONS = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6", 4: "TANH", 5: "SIGN_BIT"}
PADDINGS = {0: "SAME", 1: "VALID"}
_LIKE_THEIR_NAMES = (
    "FULLY_CONNECTED ADD MUL SUB DIV CONCATENATION SOFTMAX TRANSPOSE_CONV LEAKY_RELU GELU GATHER PACK UNPACK "
    "STRIDED_SLICE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR DEPTH_TO_SPACE SPACE_TO_DEPTH MIRROR_PAD"
)
OPTIONS = {op: f"{op.title().replace('_', '')}Options" for op in _LIKE_THEIR_NAMES.split()} | {
    "CONV_2D": "Conv2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions", "BATCH_MATMUL": "BatchMatMulOptions",
    "MAX_POOL_2D": "Pool2DOptions", "AVERAGE_POOL_2D": "Pool2DOptions",
}  # fmt: skip
NUMBERS = {  # field of an options table -> attribute, a number
    "Axis": "axis", "Alpha": "alpha", "Beta": "beta", "AdjX": "adj_x", "AdjY": "adj_y", "AlignCorners": "align_corners",
    "HalfPixelCenters": "half_pixel_centers", "BlockSize": "block", "Mode": "mode", "BeginMask": "begin_mask",
    "EndMask": "end_mask", "EllipsisMask": "ellipsis_mask", "NewAxisMask": "new_axis_mask",
    "ShrinkAxisMask": "shrink_axis_mask", "Approximate": "approximate",
}  # fmt: skip
NONE = -1  # an optional operand that is left out


_NUMBER_BYTES, _TABLE_BYTES = 40, 1500
"""Memory for a number of a list, and for a tensor, an operator or another table, as Python has them."""


class _Variable:
    """What lives from one inference to the next. version: the tensor that has its value now. state: its storage."""

    def __init__(self, name: str, named: tuple[str, str] | None) -> None:
        self.name, self.named, self.version = name, named, name
        self.state: Tensor | None = None
        self.readings: list[str] = []


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            import tflite
        except ImportError as error:
            raise MissingExtraError("tflite", "models") from error
        self.data = read_within(path, 2)
        if len(self.data) < 8 or self.data[4:8] != b"TFL3":
            raise InputError(f"{path}: not a TensorFlow Lite model (the mark TFL3 is missing)")
        self.schema, self.taken = tflite, len(self.data)
        self.budget = 16 * len(self.data) + 65536  # numbers that vectors may hold in all: shared ones count again

    def fail(self, text: str) -> InputError:
        return InputError(f"{self.path}: {text}")

    # -- guarded access --

    def length(self, table: Any, field: str, size: int = 4) -> int:
        count = int(getattr(table, f"{field}Length")())
        self.budget -= count
        if count * size > len(self.data) or self.budget < 0:
            raise self.fail(f"damaged: a list `{field}` of {count} entries does not fit the file")
        self.claim(count * (_NUMBER_BYTES if size > 1 else 2))
        return count

    def claim(self, n_bytes: int) -> None:
        self.taken += n_bytes
        claim(self.taken, str(self.path), "the model")

    def children(self, table: Any, field: str) -> list[Any]:
        self.claim(_TABLE_BYTES * int(getattr(table, f"{field}Length")()))
        return [getattr(table, field)(i) for i in range(self.length(table, field))]

    def numbers(self, table: Any, field: str, size: int = 4) -> list[Any]:
        if self.length(table, field, size) == 0:
            return []
        return list(getattr(table, f"{field}AsNumpy")().tolist())

    def text(self, value: bytes | None, what: str) -> str:
        if value is None:
            return ""
        if len(value) > 65536:
            raise self.fail(f"damaged: the name of {what} has {len(value)} characters")
        self.budget -= len(value)  # many may share one
        if self.budget < 0:
            raise self.fail("damaged: names of more characters than the file holds")
        return value.decode("utf-8", "replace")

    def options(self, operator: Any, kind: str) -> Any:
        expected = getattr(self.schema.BuiltinOptions, kind)
        table = operator.BuiltinOptions()
        if table is None or operator.BuiltinOptionsType() != expected:
            return None
        options = getattr(self.schema, kind)()
        options.Init(table.Bytes, table.Pos)
        return options

    # -- the model --

    def subgraph(self) -> Any:
        self.model = self.schema.Model.GetRootAs(self.data, 0)
        subgraphs = self.children(self.model, "Subgraphs")
        if not subgraphs:
            raise self.fail("the model has no graph")
        return subgraphs[0]

    def opgraph(self) -> OpGraph:
        """What follows from constants alone is a constant too. Variables (VAR_HANDLE) are inputs and outputs: their
        storage lives from one inference to the next."""
        subgraph = self.subgraph()
        self.codes = [self._code(code) for code in self.children(self.model, "OperatorCodes")]
        self.buffers = self.children(self.model, "Buffers")
        tables = self.children(subgraph, "Tensors")
        self.names = unique_names(self.text(t.Name(), f"tensor {i}") or f"tensor{i}" for i, t in enumerate(tables))
        self.tables = tables
        self.constants: dict[str, npt.NDArray[Any]] = {}
        self.quantization: dict[str, Quantization] = {}
        self.notes: list[str] = []
        self.variables: dict[int, _Variable] = {}  # tensor of a handle -> what it stands for
        self.tensors = [self._tensor(i, table) for i, table in enumerate(tables)]
        inputs = self._indices(self.numbers(subgraph, "Inputs"), "the model's inputs", optional=False)
        outputs = self._indices(self.numbers(subgraph, "Outputs"), "the model's outputs", optional=False)
        nodes = self._operators(self.children(subgraph, "Operators"))
        made = {t.name for node in nodes for t in node.outputs}
        read = {name for node in nodes for name in node.inputs}
        kept = [self.names[i] for i in outputs if self.names[i] not in self.constants]
        states = [self.names[i] for i, t in enumerate(tables) if t.IsVariable() and self.names[i] in read - made]
        first = [self.names[i] for i in inputs if self.names[i] in read or self.names[i] in kept]
        tensors = dict(zip(self.names, self.tensors, strict=True))
        variables = {v.name: v.state for v in self.variables.values() if v.state is not None}
        tensors |= variables
        begin = [
            Operator(name, INPUT, (), (tensors[name],))
            for name in dict.fromkeys([*first, *states, *(name for name in variables if name in read)])
            if name not in made and name not in self.constants
        ]
        states += [name for name in variables if name in read]
        used = {name for node in nodes for name in node.constants}
        name = self.text(subgraph.Name(), "the graph") or self.path.stem
        return OpGraph(
            self.path.stem if name in ("main", "") else name,
            (*begin, *nodes),
            tuple(dict.fromkeys([*kept, *states])),  # state must survive to the next inference
            {name: array for name, array in self.constants.items() if name in used},
            source=str(self.path),
            quantization=self.quantization,
            notes=tuple(self.notes),
        )

    def _operators(self, tables: Sequence[Any]) -> list[Operator]:
        nodes: list[Operator] = []
        self.index: dict[str, int] = {}  # name of an operator -> its number in the file
        self.before: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []  # of the others: number, operands, results
        elements = 0
        for i, table in enumerate(tables):
            node = self._operator(i, table)
            if node is None:
                self.before.append((i, (), ()))
                continue
            if not node.inputs:
                elements += sum(math.prod(tensor.shape) for tensor in node.outputs)
                claim(8 * elements, str(self.path), f"constant {node.name!r} with those computed before")
            if fold(node, self.constants, self.quantization):
                self.before.append((i, node.operands, tuple(tensor.name for tensor in node.outputs)))
            else:
                self.index[node.name] = i
                nodes.append(node)
        return nodes

    def _variable(self, index: int, operator: Any, given: Sequence[int], made: Sequence[int]) -> Operator:
        """Return a reading or an assignment of a variable: the latter writes its storage, behind all readings."""
        variable = self.variables.get(given[0]) if given else None
        op, moved = (READ, made) if made else (ASSIGN, given[1:])
        if variable is None or len(moved) != 1:
            raise self.fail(f"operator {index} ({op}): a variable, and the tensor that is read or assigned, are needed")
        tensor = self.tensors[moved[0]]
        if variable.state is None:
            variable.state = Tensor(variable.name, tensor.shape, tensor.n_bytes, variable.name, tensor.dtype)
            if tensor.name in self.quantization:
                self.quantization[variable.name] = self.quantization[tensor.name]
        if variable.state.n_bytes != tensor.n_bytes:
            sizes = f"{variable.state.n_bytes} bytes, not {tensor.n_bytes}"
            raise self.fail(f"operator {index} ({op}): {variable.name!r} has {sizes}")
        if op == READ:
            variable.readings.append(tensor.name)
            return Operator(tensor.name, op, (variable.version,), (tensor,))
        before, variable.version = variable.version, f"{variable.name}:{index}"
        result = Tensor(variable.version, tensor.shape, tensor.n_bytes, variable.name, tensor.dtype)
        is_constant = tensor.name in self.constants
        return Operator(
            f"{variable.name}={index}",
            op,
            (before,) if is_constant or tensor.name == before else (before, tensor.name),
            (result,),
            (tensor.name,) if is_constant else (),
            {"operands": (before, tensor.name), "after": tuple(variable.readings)},
        )

    def _code(self, code: Any) -> str:
        from flatbuffers.number_types import Int32Flags
        from tflite.utils import BUILTIN_OPCODE2NAME

        # The larger of two fields counts; the package's own accessor reads the newer one only from 127 on.
        newer = code._tab.Offset(10)
        number = int(code._tab.Get(Int32Flags, newer + code._tab.Pos)) if newer else 0
        number = max(number, int(code.DeprecatedBuiltinCode()))
        if number == self.schema.BuiltinOperator.CUSTOM:
            return f"CUSTOM:{self.text(code.CustomCode(), 'a custom operator')}"
        return str(BUILTIN_OPCODE2NAME.get(number, f"UNKNOWN:{number}"))

    def _indices(self, indices: Sequence[int], what: str, *, optional: bool = True) -> list[int]:
        for i in indices:
            if not (0 <= i < len(self.names) or (optional and i == NONE)):
                raise self.fail(f"{what}: tensor {i} does not exist (0 to {len(self.names) - 1})")
        return [i for i in indices if i != NONE]

    def _tensor(self, index: int, table: Any) -> Tensor:
        name = self.names[index]
        at = f"tensor {name!r}"
        shape = tuple(int(side) for side in self.numbers(table, "Shape"))
        signature = self.numbers(table, "ShapeSignature")
        if any(side < 0 for side in shape):
            raise self.fail(f"{at} has the unknown shape {list(shape)}: convert the model with fixed shapes")
        if any(side < 0 for side in signature[1:]):
            self._note(f"open dimensions have the sizes of the file: {at} of shape {signature} is {list(shape)}")
        code = int(table.Type())
        if code == RESOURCE:
            return Tensor(name, shape, 0, name, "resource")
        if code not in TYPES:
            kind = {5: "string", 14: "variant"}.get(code, f"unknown type {code}")
            raise self.fail(f"{at} is a {kind}: only numbers can be placed in memory")
        dtype, elements = TYPES[code], math.prod(shape)
        bits = element_bits(dtype)
        packed, n_bytes = bits < 8, (elements * bits + 7) // 8
        self._quantize(name, table)
        data = self._data(int(table.Buffer()), at)
        if data is not None:
            if table.Sparsity() is not None:
                if packed:
                    raise self.fail(f"{at} is stored sparsely, two numbers in a byte: store it densely")
                self.constants[name] = dense(self, table.Sparsity(), _values(data, dtype), shape, at)
            elif len(data) != n_bytes:
                raise self.fail(f"{at}: shape {list(shape)} of {dtype} needs {n_bytes} bytes, the file has {len(data)}")
            else:
                values = _unpack_int4(data, elements) if packed else _values(data, dtype)
                self.constants[name] = values.reshape(shape)
        return Tensor(name, shape, n_bytes, name, dtype)

    def _data(self, index: int, at: str) -> bytes | None:
        if not 0 <= index < len(self.buffers):
            raise self.fail(f"{at} lies in buffer {index}, which does not exist (0 to {len(self.buffers) - 1})")
        buffer = self.buffers[index]
        count = self.length(buffer, "Data", 1)
        if count:
            return bytes(buffer.DataAsNumpy())
        offset, size = int(buffer.Offset()), int(buffer.Size())
        if offset > 1:  # data behind the tables, in files above 2 GB
            if offset + size > len(self.data):
                raise self.fail(f"{at}: its data ({size} bytes at {offset}) lies outside the file")
            self.budget -= size
            return self.data[offset : offset + size]
        return None

    def _note(self, text: str) -> None:
        if not any(text[:40] == other[:40] for other in self.notes):
            self.notes.append(text)

    def _quantize(self, name: str, table: Any) -> None:
        given = table.Quantization()
        if given is None or not given.ScaleLength():
            return
        scale = self.numbers(given, "Scale")
        zero = self.numbers(given, "ZeroPoint", 8) or [0] * len(scale)
        if len(zero) != len(scale) or not np.isfinite(scale).all():
            raise self.fail(f"tensor {name!r}: {len(scale)} scales and {len(zero)} zero points cannot be used")
        self.quantization[name] = Quantization(
            np.array(scale, np.float64), np.array(zero, np.int64), int(given.QuantizedDimension())
        )

    def _operator(self, index: int, operator: Any) -> Operator | None:
        code = int(operator.OpcodeIndex())
        if not 0 <= code < len(self.codes):
            raise self.fail(f"operator {index}: its kind {code} does not exist (0 to {len(self.codes) - 1})")
        op = self.codes[code]
        where = f"operator {index} ({op})"
        operands = self._indices(self.numbers(operator, "Inputs"), where)
        results = self._indices(self.numbers(operator, "Outputs"), where)
        if results:
            where = f"operator {self.names[results[0]]!r} ({op})"
        if op in CONTROL_FLOW:
            raise self.fail(f"{where}: control flow cannot be scheduled: convert the model without loops and branches")
        if op == "VAR_HANDLE" and results:
            self.variables[results[0]] = self._handle(operator, results[0])
        if op in ONCE:
            return None
        if op in (READ, ASSIGN):
            return self._variable(index, operator, operands, results)
        for i in results:
            if self.names[i] in self.constants:
                raise self.fail(f"{where} writes the constant {self.names[i]!r}")
        names = [self.names[i] for i in operands]
        inputs = tuple(dict.fromkeys(name for name in names if name not in self.constants))
        constants = tuple(dict.fromkeys(name for name in names if name in self.constants))
        attributes = self._attributes(op, operator)
        if op not in WEIGHTED or tuple(names) != (*inputs[:1], *constants):
            attributes["operands"] = tuple(names)
        elif op == "CONV_2D":
            channels = self.tensors[operands[0]].shape[-1:], self.constants[constants[0]].shape[-1:]
            attributes["groups"] = channels[0][0] // channels[1][0] if all(channels) and channels[1][0] else 1
        tensors = tuple(self.tensors[i] for i in dict.fromkeys(results))
        return Operator(
            self.names[results[0]] if results else f"operator{index}", op, inputs, tensors, constants, attributes
        )

    def _attributes(self, op: str, operator: Any) -> dict[str, Any]:
        options = self.options(operator, OPTIONS[op]) if op in OPTIONS else None
        if options is None:
            return {}
        attributes: dict[str, Any] = {}
        if hasattr(options, "FusedActivationFunction"):
            attributes["activation"] = ACTIVATIONS.get(int(options.FusedActivationFunction()), "UNKNOWN")
        if hasattr(options, "StrideH"):
            attributes["strides"] = (int(options.StrideH()), int(options.StrideW()))
            attributes["padding"] = PADDINGS.get(int(options.Padding()), "UNKNOWN")
        if hasattr(options, "DilationHFactor"):
            attributes["dilations"] = (int(options.DilationHFactor()), int(options.DilationWFactor()))
        if hasattr(options, "FilterHeight"):
            attributes["window"] = (int(options.FilterHeight()), int(options.FilterWidth()))
        for field, key in NUMBERS.items():
            if hasattr(options, field):
                attributes[key] = getattr(options, field)()
        return attributes

    def _handle(self, operator: Any, index: int) -> _Variable:
        options = self.options(operator, "VarHandleOptions")
        named = None
        if options is not None:
            named = (self.text(options.Container(), "a variable"), self.text(options.SharedName(), "a variable"))
        for other in self.variables.values():
            if named is not None and other.named == named:
                return other
        return _Variable(self.names[index], named)


def unique_names(names: Iterable[str]) -> list[str]:
    times: Counter[str] = Counter()
    taken: dict[str, None] = {}
    for name in names:
        choice = name
        while choice in taken:
            times[name] += 1
            choice = f"{name}#{times[name] + 1}"
        taken[choice] = None
    return list(taken)


def _values(data: bytes, dtype: str) -> npt.NDArray[Any]:
    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<"))


def _unpack_int4(data: bytes, elements: int) -> npt.NDArray[np.int8]:
    """Two elements in a byte, the first one in the low half."""
    packed = np.frombuffer(data, np.uint8)
    nibbles = np.stack((packed & 15, packed >> 4), axis=1).reshape(-1)[:elements].astype(np.int8)
    return np.where(nibbles > 7, nibbles - 16, nibbles).astype(np.int8)


class Tflite(ModelReader):
    suffixes = (".tflite",)

    def opgraph(self, file: Path) -> OpGraph:
        with damage(str(file)):
            return _Reader(file).opgraph()

    def written(self, file: Path, graph: OpGraph, offsets: Mapping[str, int] | None) -> bytes:
        """Offsets are metadata that TensorFlow Lite for Microcontrollers plans by; tensors without are left to it."""
        reader = _Reader(file)
        with damage(str(file)):
            before = reader.opgraph()
            if missing := sorted(set(before.outputs) - set(graph.tensors)):
                raise reader.fail(f"the graph to write has no tensor {missing[0]!r}, which is a result of the model")
            reader.children(reader.model, "Metadata")
            types, activations = ({name: k for k, name in each.items()} for each in (TYPES, ACTIVATIONS))
            return TfliteWriting(reader, before, types, activations).write(graph, offsets)


NETWORK_READERS.register("tflite", summary="TensorFlow Lite: operator graphs, or networks of fully connected layers")(
    Tflite()
)
