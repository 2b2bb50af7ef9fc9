"""The operator graph: which operator reads which tensors, and which storage each tensor occupies.

The meaning of every field follows Ahn et al. 2020, section 3: an operator runs when all that it reads has been written,
allocates what it writes, and storage is freed after its last use. Weights ride along as ``constants``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, did_you_mean
from traces.base.memory import claim
from traces.base.reprs import OneLineRepr

MAX_BYTES = 2**63 - 1
_ARC_BYTES = 64  # who waits for whom, both ways, in Python and for the kernels
INPUT = "INPUT"  # the operator that brings a graph input into memory


@dataclass(frozen=True)
class Tensor:
    """One activation tensor. Tensors with one `buffer` share one storage of `n_bytes` bytes.

    Several operators may write one buffer: partial results that accumulate (identity rewriting, Ahn et al. 2020,
    section 3.3; in any order), or an in-place update, which reads a tensor of the buffer that it writes.
    """

    name: str
    shape: tuple[int, ...]
    n_bytes: int
    buffer: str
    dtype: str = "uint8"


@dataclass(frozen=True, eq=False)
class Quantization:
    """real = scale x (stored - zero_point), per tensor (one value each) or per index of `axis`."""

    scale: npt.NDArray[np.float64]
    zero_point: npt.NDArray[np.int64]
    axis: int = 0


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator (node). `inputs` are tensor names, each once; `outputs` the tensors it writes, at least one.

    constants: names of the weights it reads, in the order of the model file (keys of `OpGraph.constants`).
    attributes: what the reader knows about the operator (strides, padding, axis, fused activation, ...). `after` names
        tensors whose writers must run before, since they read what this operator overwrites.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[Tensor, ...]
    constants: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    @property
    def operands(self) -> tuple[str, ...]:
        """All that it reads in the order of the model file: constants too, repetitions too."""
        return tuple(self.attributes.get("operands", (*self.inputs, *self.constants)))


@dataclass(frozen=True, eq=False, repr=False)
class OpGraph(OneLineRepr):
    """An operator graph in file order, which is a topological order.

    nodes: the operators, INPUT operators included. outputs: names of the tensors whose storage is never freed.
    constants: name -> array of weights (read-only), empty where the source has none.
    quantization: name of a tensor or constant -> how its stored numbers stand for real ones.
    source: the file it came from, used in messages. allow_disconnected: accept parts that share no tensor. notes: what
    the reader took in another way than the file has it, a sentence each.

    Raises InputError naming the graph and node at fault: a cycle, a tensor that no operator writes, names given twice,
    a tensor of no bytes, no output, a part that is not connected to the rest, sizes that sum up beyond 2^63 - 1.
    """

    name: str
    nodes: tuple[Operator, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    source: str = ""
    quantization: Mapping[str, Quantization] = field(default_factory=dict)
    allow_disconnected: bool = field(default=False, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)

    def _repr_fields(self) -> dict[str, object]:
        return {
            "name": self.name, "operators": self.n_nodes, "buffers": len(self.buffers),
            "bytes": int(self.buffer_bytes.sum()), "constants": len(self.constants) or None,
            "outputs": ", ".join(self.outputs),
        }  # fmt: skip

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))
        object.__setattr__(self, "quantization", MappingProxyType(dict(self.quantization)))
        _Validation(self).run()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by what it was made of: views of mappings cannot be."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given |= {name: dict(given[name]) for name in ("constants", "quantization")}
        return partial(type(self), **given), ()

    # -- what stands where --

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        return MappingProxyType({t.name: t for node in self.nodes for t in node.outputs})

    @cached_property
    def producer(self) -> Mapping[str, int]:
        return MappingProxyType({t.name: i for i, node in enumerate(self.nodes) for t in node.outputs})

    @cached_property
    def buffers(self) -> tuple[str, ...]:
        """Storage names in file order of their first writer."""
        return tuple(dict.fromkeys(t.buffer for t in self.tensors.values()))

    @cached_property
    def buffer_bytes(self) -> npt.NDArray[np.int64]:
        """int64[buffers]: size of each storage."""
        sizes = {t.buffer: t.n_bytes for t in self.tensors.values()}
        return np.array([sizes[name] for name in self.buffers], np.int64)

    @cached_property
    def output_buffers(self) -> frozenset[str]:
        return frozenset(self.tensors[name].buffer for name in self.outputs)

    @cached_property
    def writers(self) -> Mapping[str, tuple[int, ...]]:
        """Storage name -> indices of the operators that write it."""
        writers: dict[str, dict[int, None]] = {name: {} for name in self.buffers}
        for i, node in enumerate(self.nodes):
            for tensor in node.outputs:
                writers[tensor.buffer][i] = None
        return MappingProxyType({name: tuple(ids) for name, ids in writers.items()})

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Per operator: the operators that must have run before it, ascending.

        These are all writers of the storage of its inputs. An in-place operator depends, for the storage that it
        updates itself, only on the writer of the tensor it names (else a chain of updates would wait for itself).
        """
        tensors, writers = self.tensors, self.writers
        if max(map(len, writers.values())) > 1:
            arcs = sum(len(writers[tensors[name].buffer]) for node in self.nodes for name in node.inputs)
            claim(_ARC_BYTES * arcs, self.source or self.name, f"its operators, which wait for others {arcs} times,")
        named = {name for node in self.nodes for name in _after(node)}
        shared: dict[tuple[str, ...], tuple[int, ...]] = {}  # of those that wait for all writers of the same storage
        rows = []
        for node in self.nodes:
            buffers = tuple([tensors[name].buffer for name in node.inputs])
            row = shared.get(buffers)
            updates = not {t.buffer for t in node.outputs}.isdisjoint(buffers)
            if updates or (named and (_after(node) or any(t.name in named for t in node.outputs))):
                row = self._before(node, named)
            elif row is None:
                row = shared[buffers] = tuple(sorted({i for buffer in buffers for i in writers[buffer]}))
            rows.append(row)
        return tuple(rows)

    def _before(self, node: Operator, named: set[str]) -> tuple[int, ...]:
        """Return the row of an operator; named: the tensors that some operator runs after."""
        own, made = {t.buffer for t in node.outputs}, named.intersection(t.name for t in node.outputs)
        before = {self.producer[name] for name in _after(node) if name in self.producer}
        for name in node.inputs:
            buffer = self.tensors[name].buffer
            if buffer in own:
                before.add(self.producer[name])
            elif made:  # but those that overwrite it afterwards
                before.update(w for w in self.writers[buffer] if made.isdisjoint(_after(self.nodes[w])))
            else:
                before.update(self.writers[buffer])
        return tuple(sorted(before))

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """Per operator: the operators that wait for it, ascending."""
        waiting: dict[int, list[int]] = {}  # by the row of predecessors, which several may share
        for i, before in enumerate(self.predecessors):
            waiting.setdefault(id(before), []).append(i)
        rows: list[list[int]] = [[] for _ in self.nodes]
        for key, ids in waiting.items():
            for j in self.predecessors[ids[0]]:
                rows[j].append(key)
        shared = {row: tuple(sorted(i for key in row for i in waiting[key])) for row in set(map(tuple, rows))}
        return tuple(shared[tuple(row)] for row in rows)

    # -- changed copies --

    def with_(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def in_order(self, order: Iterable[int]) -> Self:
        """Return the same graph with its operators listed in `order` (a topological permutation of the indices)."""
        picked = [int(i) for i in order]
        if sorted(picked) != list(range(self.n_nodes)):
            raise InputError(f"{self.name}: the order is not a permutation of the {self.n_nodes} operators")
        return self.with_(nodes=tuple(self.nodes[i] for i in picked))


def _after(node: Operator) -> Sequence[str]:
    names: Sequence[str] = node.attributes.get("after", ())
    return names


class _Validation:
    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.where = f"{graph.source or graph.name}: "

    def run(self) -> None:
        if not self.graph.nodes:
            raise InputError(f"{self.where}the graph has no operators")
        self._names_and_sizes()
        self._references()
        self.needed = [(*node.inputs, *_after(node)) for node in self.graph.nodes]  # what each reads or runs after
        self._order()
        if not self.graph.allow_disconnected:
            self._connected()

    def _names_and_sizes(self) -> None:
        names, nodes = set[str](), set[str]()
        sizes: dict[str, tuple[int, str]] = {}
        for node in self.graph.nodes:
            if node.name in nodes:
                raise InputError(f"{self.where}two operators are named {node.name!r}: names must differ")
            nodes.add(node.name)
            if not node.outputs:
                raise InputError(f"{self.where}operator {node.name!r} writes no tensor")
            for tensor in node.outputs:
                self._tensor(node, tensor, names, sizes)
        total = sum(size for size, _ in sizes.values())
        if total > MAX_BYTES:
            raise InputError(f"{self.where}the buffers sum up to {total} bytes, more than 2^63 - 1")

    def _tensor(self, node: Operator, tensor: Tensor, names: set[str], sizes: dict[str, tuple[int, str]]) -> None:
        size, first = sizes.setdefault(tensor.buffer, (tensor.n_bytes, tensor.name))
        if tensor.name in names:
            fault = "is written twice: tensor names must differ (a shared storage is named by `buffer`)"
        elif not isinstance(tensor.n_bytes, int) or isinstance(tensor.n_bytes, bool):
            fault = f"has {tensor.n_bytes!r} bytes: a whole number is needed"
        elif any(not isinstance(side, int) or side < 0 for side in tensor.shape):
            fault = f"has the unknown or dynamic shape {list(tensor.shape)}: give every dimension"
        elif tensor.n_bytes <= 0:
            fault = f"has {tensor.n_bytes} bytes: every tensor must occupy at least one"
        elif tensor.n_bytes > MAX_BYTES:
            fault = f"has {tensor.n_bytes} bytes, more than 2^63 - 1"
        elif size != tensor.n_bytes:
            fault = (
                f"has {tensor.n_bytes} bytes but shares buffer {tensor.buffer!r} with {first!r} of {size} bytes: "
                "tensors of one buffer have one size"
            )
        else:
            names.add(tensor.name)
            return
        raise InputError(f"{self.where}operator {node.name!r}: tensor {tensor.name!r} {fault}")

    def _references(self) -> None:
        tensors = self.graph.tensors
        for node in self.graph.nodes:
            seen: set[str] = set()
            for name in node.inputs:
                if name not in tensors:
                    raise InputError(
                        f"{self.where}operator {node.name!r} reads {name!r}, which no operator writes{self._near(name)}"
                    )
                if name in seen:
                    raise InputError(f"{self.where}operator {node.name!r} lists its input {name!r} twice: list it once")
                seen.add(name)
            for name in node.constants:
                if name not in self.graph.constants:
                    raise InputError(f"{self.where}operator {node.name!r} uses the constant {name!r}, which is missing")
        if not self.graph.outputs:
            raise InputError(f"{self.where}the graph has no output: name at least one tensor that is kept")
        for position, name in enumerate(self.graph.outputs):
            if name not in tensors:
                raise InputError(f"{self.where}the output {name!r} is written by no operator{self._near(name)}")
            if name in self.graph.outputs[:position]:
                raise InputError(f"{self.where}the output {name!r} is named twice")

    def _near(self, name: str) -> str:
        return did_you_mean(name, self.graph.tensors) if len(self.graph.tensors) <= 2000 else ""

    def _order(self) -> None:
        nodes, writers = self.graph.nodes, self.graph.writers
        last = {name: writers[tensor.buffer][-1] for name, tensor in self.graph.tensors.items()}
        if all(last.get(name, -1) < i for i, names in enumerate(self.needed) for name in names):
            return  # without a list of who waits for whom, which is long where many write and read one storage
        before = self.graph.predecessors
        if all(not ids or ids[-1] < i for i, ids in enumerate(before)):
            return
        pending = [len(ids) for ids in before]
        ready = [i for i, count in enumerate(pending) if not count]
        while ready:
            for j in self.graph.successors[ready.pop()]:
                pending[j] -= 1
                if not pending[j]:
                    ready.append(j)
        stuck = [i for i, count in enumerate(pending) if count]
        if stuck:
            raise InputError(f"{self.where}the graph has a cycle: {self._cycle(stuck)}")
        i = next(i for i, ids in enumerate(before) if ids and ids[-1] > i)
        raise InputError(
            f"{self.where}operator {nodes[i].name!r} comes before {nodes[before[i][-1]].name!r}, whose result it "
            "needs: list the operators in an order in which they can run"
        )

    def _cycle(self, stuck: list[int]) -> str:
        """Walk back among the operators that never became ready until one is met again."""
        waiting, path = set(stuck), [stuck[0]]
        index = {stuck[0]: 0}
        while True:
            step = next(j for j in self.graph.predecessors[path[-1]] if j in waiting)
            if step in index:
                loop = [*path[index[step] :], step]
                names = [repr(self.graph.nodes[i].name) for i in reversed(loop)]
                return " -> ".join(names if len(names) <= 8 else [*names[:4], "...", *names[-3:]])
            index[step] = len(path)
            path.append(step)

    def _connected(self) -> None:
        tensors, group = self.graph.tensors, list(range(self.graph.n_nodes))  # of each the first, by way of others
        user: dict[str, int] = {}  # of each storage the first: parts that write one belong together, read or not
        for i, node in enumerate(self.graph.nodes):
            used = [t.buffer for t in node.outputs]
            used += [tensors[name].buffer for name in self.needed[i] if name in tensors]
            first = i
            for buffer in used:
                other = user.setdefault(buffer, i)
                while group[other] != other:
                    group[other] = other = group[group[other]]
                first, other = (first, other) if first < other else (other, first)
                group[other] = first
        apart = next((i for i in range(1, self.graph.n_nodes) if group[i] == i), None)
        if apart is not None:
            raise InputError(
                f"{self.where}the graph is disconnected: {self.graph.nodes[apart].name!r} shares no tensor, directly "
                f"or through others, with {self.graph.nodes[0].name!r}: remove the unused part or schedule "
                "each on its own (allow_disconnected=True accepts both)"
            )


def pads_of(node: Operator, image: Sequence[int], window: Sequence[int], where: str) -> list[tuple[int, int]]:
    """Return the padding before and behind each of two axes of an image (y, x). Raises InputError for one not known."""
    strides, dilations = node.attributes.get("strides", (1, 1)), node.attributes.get("dilations", (1, 1))
    padding = node.attributes.get("padding", "VALID")
    if padding == "VALID":
        return [(0, 0), (0, 0)]
    if padding not in ("SAME", "SAME_UPPER", "SAME_LOWER"):
        if not isinstance(padding, tuple) or len(padding) != 4:
            raise InputError(f"{where}: padding {padding!r} is not known")
        return [(padding[0], padding[2]), (padding[1], padding[3])]
    pads = []
    for side, taps, stride, dilation in zip(image, window, strides, dilations, strict=True):
        total = max((-(-side // max(stride, 1)) - 1) * stride + (taps - 1) * dilation + 1 - side, 0)
        low = total // 2 if padding != "SAME_LOWER" else total - total // 2
        pads.append((low, total - low))
    return pads


_PACKED_BITS = {
    "int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
}  # fmt: skip


def element_bits(dtype: str) -> int:
    """Return the bits of an element where it is stored: those of less than a byte are packed."""
    return _PACKED_BITS.get(dtype) or 8 * np.dtype(dtype).itemsize


def stored_bytes(values: npt.NDArray[Any], dtype: str = "") -> npt.NDArray[np.uint8]:
    """Return values as they are stored: uint8[ceil(values * bits / 8)], elements of less than a byte packed from the
    lowest bit on. dtype: of the elements, where it is not the array's."""
    raw = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    bits = _PACKED_BITS.get(dtype or str(values.dtype))
    if bits is None:
        return raw
    taken = np.unpackbits(raw[:, None], axis=1, bitorder="little")[:, :bits]
    return np.packbits(taken, bitorder="little")


def real_values(graph: OpGraph, name: str) -> npt.NDArray[np.float32]:
    return dequantized(graph.constants[name], graph.quantization.get(name), f"{graph.source or graph.name}: {name!r}")


def dequantized(stored: npt.NDArray[Any], given: Quantization | None, where: str) -> npt.NDArray[np.float32]:
    """Return stored numbers as real ones. Raises InputError where there is not a scale for each index of the axis."""
    if given is None or np.issubdtype(stored.dtype, np.floating):
        return stored.astype(np.float32)
    shape = [1] * stored.ndim
    if len(given.scale) > 1:
        if not 0 <= given.axis < stored.ndim or stored.shape[given.axis] != len(given.scale):
            scales = f"{len(given.scale)} scales along axis {given.axis}"
            raise InputError(f"{where}: {scales} of a constant of shape {list(stored.shape)}")
        shape[given.axis] = len(given.scale)
    scale, zero = given.scale.reshape(shape), given.zero_point.reshape(shape)
    return ((stored.astype(np.float64) - zero) * scale).astype(np.float32)
