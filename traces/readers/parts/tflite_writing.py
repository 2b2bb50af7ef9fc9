"""A TensorFlow Lite file with other operators, and with the places of its tensors in an arena.

References in a flatbuffer point forward, so new operators and tensors, and the lists of all, stand in front and point
to what is kept; the old bytes follow unchanged. New constants replace those that nobody
reads any more, so a file whose weights are cut grows by little.

Places: a metadata entry `OfflineMemoryAllocation`, as the offline planner of the runtime for microcontrollers reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.operators.opgraph import INPUT, Operator, OpGraph, Quantization, dequantized

_ALIGNMENT = 64  # of what comes in front, so that the old bytes keep theirs


@dataclass(frozen=True)
class Old:
    """What stands at a position of the old bytes."""

    at: int


@dataclass(frozen=True, eq=False)
class Numbers:
    """A vector of numbers, its first one aligned to `alignment` bytes; of text (uint8), a zero follows."""

    values: npt.NDArray[np.generic]
    alignment: int = 4
    text: bool = False


Table = dict[int, "int | Part"]
"""Number of a field -> a scalar, or what it refers to."""
Part = Old | Numbers | Table | list["Part"]


def text(value: str) -> Numbers:
    return Numbers(np.frombuffer(value.encode(), np.uint8), text=True)


def integers(values: Sequence[int]) -> Numbers:
    return Numbers(np.array(values, "<i4"))


def in_front(root: Table, data: bytes) -> bytes:
    """Return a flatbuffer with a new root, which keeps the mark of the format of the old one."""
    front = _Front()
    front.bytes += bytes(4) + data[4:8]
    front.pending.append((0, root))
    done = 0
    while done < len(front.pending):  # parts come behind what refers to them
        position, part = front.pending[done]
        done += 1
        if not isinstance(part, Old):
            struct.pack_into("<I", front.bytes, position, front.new(part) - position)
    front.pad(_ALIGNMENT)
    for position, part in front.pending:
        if isinstance(part, Old):
            struct.pack_into("<I", front.bytes, position, len(front.bytes) + part.at - position)
    return bytes(front.bytes) + data


class _Front:
    """Bytes that grow; places are positions in them. pending: (position of a reference, what it refers to)."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.pending: list[tuple[int, Part]] = []

    def pad(self, alignment: int, ahead: int = 0) -> None:
        """Fill up so that the length and `ahead` bytes more are a multiple of `alignment`."""
        self.bytes += bytes(-(len(self.bytes) + ahead) % alignment)

    def new(self, part: Table | list[Part] | Numbers) -> int:
        self.pad(4)
        if isinstance(part, dict):
            return self._table(part)
        if isinstance(part, list):
            at = len(self.bytes)
            self.bytes += struct.pack("<I", len(part)) + bytes(4 * len(part))
            self.pending += [(at + 4 + 4 * i, item) for i, item in enumerate(part)]
            return at
        self.pad(part.alignment, 4)
        at = len(self.bytes)
        self.bytes += struct.pack("<I", part.values.size) + part.values.tobytes() + bytes(part.text)
        return at

    def _table(self, fields: Table) -> int:
        present = sorted(fields)
        n_fields = present[-1] + 1 if present else 0
        offsets = [4 * (present.index(k) + 1) if k in fields else 0 for k in range(n_fields)]
        vtable = len(self.bytes)
        self.bytes += struct.pack(f"<{2 + n_fields}H", 4 + 2 * n_fields, 4 * (len(present) + 1), *offsets)
        self.pad(4)
        at = len(self.bytes)
        self.bytes += struct.pack("<i", at - vtable) + bytes(4 * len(present))
        for i, k in enumerate(present):
            value = fields[k]
            if isinstance(value, int):
                struct.pack_into("<i" if value < 0 else "<I", self.bytes, at + 4 * (i + 1), value)
            else:
                self.pending.append((at + 4 * (i + 1), value))
        return at


NAME = "OfflineMemoryAllocation"
VERSION = 1
NONE = -1  # an operand that is left out, an offset that is not planned
# numbers of fields in the schema (schema.fbs of TensorFlow Lite)
_CODES, _SUBGRAPHS, _BUFFERS, _METADATA = 1, 2, 4, 6  # of Model
_TENSORS, _OPERATORS = 0, 3  # of SubGraph
_SCALARS: Mapping[str, Mapping[int, str]] = {  # field -> how it is stored; all others are references
    "Model": {0: "I"},
    "SubGraph": {5: "i"},
    "Tensor": {1: "b", 2: "I", 5: "B", 8: "B"},
    "Operator": {0: "I", 3: "B", 6: "b", 11: "B", 13: "i"},
    "Conv2DOptions": {0: "b", 1: "i", 2: "i", 3: "b", 4: "i", 5: "i", 6: "b"},
}
_NEW = {"ADD": "AddOptions", "CONCATENATION": "ConcatenationOptions"}  # operators that can be added


class TfliteWriting:
    """Writes one file anew. reader: what has read it (traces.readers.tflite); before: the graph that it holds.

    types: dtype -> its number in the schema. activations: the same for fused activations.
    """

    def __init__(self, reader: Any, before: OpGraph, types: Mapping[str, int], activations: Mapping[str, int]) -> None:
        self.reader, self.data, self.where = reader, bytearray(reader.data), str(reader.path)
        self.room: list[tuple[int, int]] = []  # (first byte, behind the last) of old data that new ones may take
        self.schema, self.model = reader.schema, reader.model
        self.types, self.activations, self.before = types, activations, before
        self.subgraph = reader.subgraph()
        self.codes: list[Part] = self._listed(self.model, _CODES)
        self.code_names = list(reader.codes)
        self.buffers: list[Part] = self._listed(self.model, _BUFFERS)
        self.tensors: list[Part] = self._listed(self.subgraph, _TENSORS)
        self.operators = self._listed(self.subgraph, _OPERATORS)
        self.index = {name: i for i, name in enumerate(reader.names)}
        self.file = {node.name: (reader.index[node.name], node) for node in _run(before)}
        self.variables = {v.name for v in reader.variables.values()}

    def write(self, graph: OpGraph, offsets: Mapping[str, int] | None) -> bytes:
        for i in range(self.model.BuffersLength()):
            if self.model.Buffers(i).Offset() > 1:
                raise self._fail("its data lie behind the tables, as in files above 2 GB: it cannot be extended")
        first = self._before(graph)
        self._free_unread()
        new = {name for node in graph.nodes for name in node.constants if name not in self.index}
        for name in sorted(new, key=lambda name: (-graph.constants[name].nbytes, name)):
            self._new_constant(name, graph.constants[name], graph.quantization.get(name))
        for name, tensor in graph.tensors.items():
            if name not in self.index and tensor.buffer not in self.variables:
                self._new_tensor(name, tensor.shape, self.types[tensor.dtype], 0, graph.quantization.get(name))
        operators: list[Part] = [*first, *(self._operator(node) for node in _run(graph))]
        subgraph = self._copied(self.subgraph, "SubGraph", 6) | {_TENSORS: self.tensors, _OPERATORS: operators}
        others = self._listed(self.model, _SUBGRAPHS)[1:]
        fields = self._copied(self.model, "Model", 8) | {_SUBGRAPHS: [subgraph, *others]}
        if offsets is not None:
            fields[_METADATA] = self._with_offsets(offsets)
        return in_front(fields | {_CODES: self.codes, _BUFFERS: self.buffers}, bytes(self.data))

    def _fail(self, what: str) -> InputError:
        return InputError(f"{self.where}: {what}")

    def _before(self, graph: OpGraph) -> list[Part]:
        needed = {name for node in graph.nodes for name in node.operands} | set(graph.outputs)
        kept: list[Part] = []
        for k, operands, results in reversed(self.reader.before):
            if not results or needed.intersection(results):
                needed.update(operands)
                kept.append(self.operators[k])
        self.read = needed
        return kept[::-1]

    # -- what is there --

    def _at(self, table: Any, field: int) -> int | None:
        at = table._tab.Offset(4 + 2 * field)
        return table._tab.Pos + at if at else None

    def _target(self, position: int) -> int:
        return position + int(struct.unpack_from("<I", self.data, position)[0])

    def _listed(self, table: Any, field: int) -> list[Part]:
        at = self._at(table, field)
        if at is None:
            return []
        start = self._target(at)
        (count,) = struct.unpack_from("<I", self.data, start)
        return [Old(self._target(start + 4 + 4 * i)) for i in range(count)]

    def _copied(self, table: Any, kind: str, n_fields: int) -> Table:
        fields: Table = {}
        for k in range(n_fields):
            at = self._at(table, k)
            if at is not None and k in _SCALARS[kind]:
                fields[k] = int(struct.unpack_from(f"<{_SCALARS[kind][k]}", self.data, at)[0])
            elif at is not None:
                fields[k] = Old(self._target(at))
        return fields

    # -- what is new --

    def _free_unread(self) -> None:
        # metadata may name buffers too: those are tensors' only by accident
        dead = {i for name, i in self.index.items() if name in self.reader.constants and name not in self.read}
        buffers = [int(table.Buffer()) for table in self.reader.tables]
        if self.model.SubgraphsLength() > 1:
            return
        starts = [self._target(at) if (at := self._at(table, 0)) else 0 for table in self.reader.buffers]
        freed = {buffers[i] for i in dead} - {0} - {buffer for i, buffer in enumerate(buffers) if i not in dead}
        used = {start for buffer, start in enumerate(starts) if buffer not in freed}
        for i in dead:
            if buffers[i] in freed:
                self.tensors[i] = self._copied(self.reader.tables[i], "Tensor", 9) | {2: 0}
        for start in sorted({starts[buffer] for buffer in freed} - used - {0}):
            self.room.append((start, start + 4 + int(struct.unpack_from("<I", self.data, start)[0])))
        for buffer in freed:
            self.buffers[buffer] = {}

    def _stored(self, raw: bytes) -> Part:
        for k, (start, stop) in enumerate(self.room):
            at = start + -(start + 4) % 16
            if at + 4 + len(raw) <= stop:
                self.data[at : at + 4 + len(raw)] = struct.pack("<I", len(raw)) + raw
                self.room[k] = at + 4 + len(raw), stop
                return Old(at)
        return Numbers(np.frombuffer(raw, np.uint8), alignment=16)

    def _new_constant(self, name: str, values: npt.NDArray[Any], quantization: Quantization | None) -> None:
        kind = self._type_of_whole(name)
        if kind == self.types["float32"] and values.dtype != np.float32:  # what a folded DEQUANTIZE gives
            values, quantization = dequantized(values, quantization, self.where), None
        raw = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        self.buffers.append({0: self._stored(raw)})
        self._new_tensor(name, values.shape, kind, len(self.buffers) - 1, quantization)

    def _new_tensor(
        self, name: str, shape: Sequence[int], kind: int, buffer: int, quantization: Quantization | None
    ) -> None:
        fields: Table = {0: integers(shape), 1: kind, 2: buffer, 3: text(name)}
        if quantization is not None:
            zero = Numbers(quantization.zero_point.astype("<i8"), alignment=8)
            fields[4] = {2: Numbers(quantization.scale.astype("<f4")), 3: zero, 6: quantization.axis}
        self.index[name] = len(self.tensors)
        self.tensors.append(fields)

    def _zeros(self, name: str) -> int:
        made = f"{name}[0]"
        if made not in self.index:
            zeros = np.zeros_like(self.before.constants[name])
            self._new_constant(made, zeros, self.before.quantization.get(name))
        return self.index[made]

    def _type_of_whole(self, name: str) -> int:
        whole = name.rpartition("[")[0]
        kind = int(self.reader.tables[self.index[whole]].Type())
        if kind == self.types["int4"]:
            raise self._fail(f"constant {whole!r} holds two numbers in a byte: it cannot be cut")
        return kind

    def _operator(self, node: Operator) -> Part:
        k, old = self.file.get(node.attributes.get("like", node.name), (0, None))
        if old is node or (old is not None and old.op in ("READ_VARIABLE", "ASSIGN_VARIABLE")):
            return self.operators[k]
        outputs = [self.index[t.name] for t in node.outputs]
        if old is None:
            if node.op not in _NEW:
                raise self._fail(
                    f"operator {node.name!r} ({node.op}) is not in the model: only {', '.join(_NEW)} can be"
                )
            operands = [self.index[name] for name in node.operands]
            return {0: self._code(node.op), 1: integers(operands), 2: integers(outputs), **self._options(node)}
        table = self.subgraph.Operators(k)
        changed = self._activation(node, table, old)
        made = [self.index[t.name] for t in old.outputs]
        if old.operands == node.operands and made == outputs and not changed:
            return self.operators[k]
        raw = self.reader.numbers(table, "Inputs")
        operands = [self.index[name] for name in node.operands]
        if len(operands) == sum(i != NONE for i in raw):  # those that are left out keep their places
            given = iter(operands)
            operands = [next(given) if i != NONE else NONE for i in raw]
        elif node.op == "CONV_2D" and len(node.operands) == 2:  # its kernel wants a bias
            operands.append(self._zeros(old.operands[2]))
        written = [outputs[made.index(i)] if i in made else i for i in self.reader.numbers(table, "Outputs")]
        return self._copied(table, "Operator", 14) | {1: integers(operands), 2: integers(written)} | changed

    def _activation(self, node: Operator, table: Any, old: Operator) -> Table:
        needed = node.attributes.get("activation", "NONE")
        if needed == old.attributes.get("activation", "NONE"):
            return {}
        options = self.reader.options(table, "Conv2DOptions")  # parts of others leave no activation out
        return {4: self._copied(options, "Conv2DOptions", 7) | {3: self.activations[needed]}}

    def _options(self, node: Operator) -> Table:
        activation = self.activations[node.attributes.get("activation", "NONE")]
        fields: Table = {0: activation}
        if node.op == "CONCATENATION":
            fields = {0: int(node.attributes["axis"]), 1: activation}
        return {3: int(getattr(self.schema.BuiltinOptions, _NEW[node.op])), 4: fields}

    def _code(self, op: str) -> int:
        if op not in self.code_names:
            number = int(getattr(self.schema.BuiltinOperator, op))
            self.codes.append({0: number, 2: 1, 3: number})
            self.code_names.append(op)
        return self.code_names.index(op)

    def _with_offsets(self, offsets: Mapping[str, int]) -> list[Part]:
        names = sorted(self.index, key=self.index.__getitem__)
        plan = [VERSION, 0, len(names), *(offsets.get(name, NONE) for name in names)]
        if max(plan) >= 2**31:
            raise self._fail("offsets of 2^31 bytes and more have no position in the file")
        entries = self._listed(self.model, _METADATA)
        kept = [entry for i, entry in enumerate(entries) if self.model.Metadata(i).Name() != NAME.encode()]
        raw = np.frombuffer(np.array(plan, "<i4").tobytes(), np.uint8)
        self.buffers.append({0: Numbers(raw, alignment=16)})
        return [*kept, {0: text(NAME), 1: len(self.buffers) - 1}]


def _run(graph: OpGraph) -> list[Operator]:
    return [node for node in graph.nodes if node.op != INPUT]
