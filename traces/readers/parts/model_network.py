"""Trained models as sparse networks: every operator becomes connections, or rearranges neurons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError, did_you_mean
from traces.base.memory import claim
from traces.networks.forward import SLOPE
from traces.networks.network import ACTIVATIONS, MAX_NEURONS, MIXED, Network
from traces.operators.operations import OPERATIONS
from traces.operators.opgraph import INPUT, Operator, OpGraph, pads_of, real_values
from traces.readers.parts.layers import MOST_SCANNED, claim_network, damage, zero_pattern

Ids = npt.NDArray[np.int64]
RELU = ACTIVATIONS.index("relu")
_BYTES = 96  # a connection, at the peak: 92 measured at 54 million connections
NOBODY, ABSENT = -1, -2
"""In place of a neuron: a padding of 0, and one that no maximum takes."""
_NOT_NEGATIVE = [ACTIVATIONS.index(name) for name in ("relu", "relu6", "sigmoid")]


@dataclass(frozen=True)
class Window:
    """How a window moves over an image: strides and dilations (y, x), padding (top, left, bottom, right)."""

    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)

    def output(self, image: tuple[int, int], window: tuple[int, int], where: str) -> tuple[int, int]:
        if (
            min(*self.strides, *self.dilations) < 1
            or min(self.padding) < 0
            or max(*self.strides, *self.padding) > 2**20
        ):
            raise InputError(f"{where}: strides {self.strides}, dilations {self.dilations}, padding {self.padding}")
        reach = [(side - 1) * step + 1 for side, step in zip(window, self.dilations, strict=True)]
        sides = [
            (side + self.padding[a] + self.padding[a + 2] - reach[a]) // self.strides[a] + 1
            for a, side in enumerate(image)
        ]
        if min(sides) < 1:
            raise InputError(f"{where}: a window of {reach} does not fit the image of {list(image)} with its padding")
        return sides[0], sides[1]

    def taps(self, image: Ids, window: tuple[int, int], out: Ids) -> Iterator[tuple[int, int, Any, Any]]:
        """Yield each tap (y, x) of a window, the pixels (y, x) of the image it takes, and where in `out` they go."""
        for tap in product(range(window[0]), range(window[1])):
            taken, into = [], []
            for a in (0, 1):
                at = np.arange(out.shape[a + 1]) * self.strides[a] + tap[a] * self.dilations[a] - self.padding[a]
                into.append(np.flatnonzero((at >= 0) & (at < image.shape[a + 1])))
                taken.append(at[into[a]])
            yield *tap, np.ix_(*taken), np.ix_(*into)


class Unrolled:
    """A network in the making: neurons are numbered as they come, connections are kept layer by layer. where: the
    file, for messages. notes: sentences about what was read otherwise."""

    def __init__(self, where: str) -> None:
        self.where, self.notes = where, list[str]()
        self.n_neurons = self.n_layers = self.n_weights = self.n_connections = 0
        self.layers: list[tuple[Ids, Ids, npt.NDArray[np.float32], Ids]] = []
        self.positions: list[Ids] = []
        self.biases, self.slopes = np.zeros(0, np.float32), np.zeros(0, np.float32)
        self.codes = np.zeros(0, np.uint8)

    # -- neurons --

    def image(self, channels: int, height: int, width: int) -> Ids:
        """Return new neurons (C, H, W), a layer of their own."""
        ids = self.vector(channels * height * width)
        self.positions[-1][:, 1:] = np.stack(np.divmod(np.arange(ids.size) % (height * width), width), axis=1)
        return ids.reshape(channels, height, width)

    def vector(self, n: int) -> Ids:
        """Return n new neurons without a place in an image, a layer of their own."""
        if n < 1 or self.n_neurons + n > MAX_NEURONS:
            raise InputError(f"{self.where}: {n} more neurons: at most {MAX_NEURONS} can be numbered")
        claim_network(self.n_connections, self.n_neurons + n, self.where)
        self.positions.append(np.full((n, 3), (self.n_layers, -1, -1)))
        ids = self.n_neurons + np.arange(n)
        self.n_neurons += n
        self.n_layers += 1
        self.biases = np.append(self.biases, np.zeros(n, np.float32))
        self.codes = np.append(self.codes, np.zeros(n, np.uint8))
        self.slopes = np.append(self.slopes, np.full(n, SLOPE))
        return ids

    # -- connections --

    def convolution(
        self, image: Ids, kernel: npt.NDArray[np.float32], window: Window, where: str, *, groups: int = 1,
        bias: npt.NDArray[np.float32] | None = None, out: Ids | None = None,
    ) -> Ids:  # fmt: skip
        """Connect a convolution and return its neurons (O, H', W').

        image: (C, H, W). kernel: float32[O, C / groups, R, S]; zeros are no connections. out: neurons that take the
        results as well (sums of branches), else new ones. bias: float32[O] or None.
        """
        outputs, inner, rows, columns = kernel.shape
        channels, height, width = image.shape
        if groups < 1 or channels != inner * groups or outputs % groups:
            raise InputError(
                f"{where}: weights of shape {list(kernel.shape)} in {groups} groups do not fit {channels} channels"
            )
        size = window.output((height, width), (rows, columns), where)
        self._tell_pattern(kernel, where)
        out = self._results(out, (outputs, *size), where)
        o, i, r, s = np.nonzero(kernel)
        channel = o // (outputs // groups) * inner + i
        claim_network(self.n_connections + len(o) * size[0] * size[1], self.n_neurons, where)
        parts = [(np.zeros(0, np.int64),) * 3]
        for y, x, pixels, into in window.taps(image, (rows, columns), out):
            taps = np.flatnonzero((r == y) & (s == x))
            source, target = image[(channel[taps][:, None, None], *pixels)], out[(o[taps][:, None, None], *into)]
            parts.append((source.ravel(), target.ravel(), np.repeat(taps, source[:1].size)))
        source, target, tap = (np.concatenate(column) for column in zip(*parts, strict=True))
        self._connect(source, target, kernel[o, i, r, s][tap], self.n_weights + tap)
        self.n_weights += len(o)
        self._add_bias(out, bias, where)
        return out

    def dense(
        self, given: Ids, matrix: npt.NDArray[np.float32], where: str, *, bias: npt.NDArray[np.float32] | None = None,
        out: Ids | None = None,
    ) -> Ids:  # fmt: skip
        """Connect a matrix float32[outputs, inputs] to the neurons `given`, in their order; return the outputs."""
        given = given.ravel()
        if matrix.ndim != 2 or matrix.shape[1] != len(given):
            raise InputError(f"{where}: weights of shape {list(matrix.shape)} do not fit {len(given)} inputs")
        self._tell_pattern(matrix, where)
        out = self._results(out, (len(matrix),), where)
        row, column = np.nonzero(matrix)
        self._connect(given[column], out[row], matrix[row, column], self.n_weights + np.arange(len(row)))
        self.n_weights += len(row)
        self._add_bias(out, bias, where)
        return out

    def pool(self, image: Ids, sides: tuple[int, int], window: Window, where: str, *, count_padding: bool) -> Ids:
        """Connect the mean over windows (C, H', W'), with a stored weight per number of elements that a window holds.
        count_padding: padding counts as elements."""
        channels, height, width = image.shape
        size = window.output((height, width), sides, where)
        out = self.image(channels, *size)
        claim_network(self.n_connections + out.size * sides[0] * sides[1], self.n_neurons, where)
        taps = [(image[:, *pixels], out[:, *into]) for _, _, pixels, into in window.taps(image, sides, out)]
        source, target = (np.concatenate([ids.ravel() for ids in column]) for column in zip(*taps, strict=True))
        held = np.bincount(target - out.flat[0], minlength=out.size)
        each = np.full(out.size, sides[0] * sides[1]) if count_padding else np.maximum(held, 1)
        counts, kind = np.unique(each, return_inverse=True)
        which = kind[target - out.flat[0]]
        self._connect(source, target, (1 / counts).astype(np.float32)[which], self.n_weights + which)
        self.n_weights += len(counts)
        return out

    def identity(self, given: Ids, out: Ids, where: str, weight: float = 1) -> Ids:
        """Add `weight` times `given` to the neurons `out` of the same number: one stored weight."""
        if given.size != out.size:
            raise InputError(f"{where}: {given.size} and {out.size} values cannot be added")
        self._share(given, out, np.float32(weight))
        return out

    def copied(self, given: Ids, where: str, weight: float = 1) -> Ids:
        return self.identity(given, self.like(given), where, weight)

    def like(self, ids: Ids) -> Ids:
        """Return as many new neurons in the same shape, a layer of their own, at the same places of an image."""
        self.positions = [np.concatenate(self.positions)]
        position = self.positions[0][ids.ravel(), 1:]
        position[ids.ravel() == NOBODY] = -1
        new = self.vector(ids.size)
        self.positions[-1][:, 1:] = position
        return new.reshape(ids.shape)

    def maximum(self, one: Ids, other: Ids, where: str) -> Ids:
        """Return neurons of max(one, other) = one + relu(other - one): two more neurons, four connections for each."""
        made, low = np.maximum(one, other), np.minimum(one, other)
        both, above_zero = low >= 0, (low == NOBODY) & (made >= 0)
        if above_zero.any():
            made[above_zero] = self.copied(made[above_zero], where)
            self.codes[made[above_zero]] = RELU
        if both.any():
            one, other = one[both], other[both]
            above = self.like(one)
            self.identity(other, above, where)
            self.identity(one, above, where, -1)
            self.codes[above] = RELU
            made[both] = self.identity(above, self.copied(one, where), where)
        return made

    def highest(self, given: Ids, where: str) -> Ids:
        while len(given) > 1:
            half = len(given) // 2
            pairs = self.maximum(given[:half], given[half : 2 * half], where)
            given = np.concatenate((pairs, given[2 * half :]))
        return np.asarray(given[0])

    def without_zeros(self, ids: Ids) -> Ids:
        """Return ids with padding of 0 as ABSENT where maxima need it not: no neuron gives less than 0."""
        rectified = np.isin(self.codes[ids[ids >= 0]], _NOT_NEGATIVE).all()
        return np.where(ids == NOBODY, ABSENT, ids) if rectified else ids

    def mean(self, given: Ids, where: str) -> Ids:
        out = self.like(given[0])
        self._share(given, np.broadcast_to(out, given.shape), np.float32(1 / len(given)))
        return out

    def mapped(self, image: Ids, rows: npt.NDArray[np.float32], columns: npt.NDArray[np.float32], where: str) -> Ids:
        """Connect rows @ channel @ columns.T of each channel of an image (C, H, W): (C, H', W')."""
        (y, from_y), (x, from_x) = np.nonzero(rows), np.nonzero(columns)
        out = self.image(len(image), len(rows), len(columns))
        claim_network(self.n_connections + len(out) * len(y) * len(x), self.n_neurons, where)
        weights = np.multiply.outer(rows[y, from_y], columns[x, from_x])
        self._share(image[:, from_y[:, None], from_x], out[:, y[:, None], x], weights)
        return out

    def scaled(self, given: Ids, factors: npt.NDArray[np.float32], shift: npt.NDArray[np.float32], where: str) -> Ids:
        out = self.like(given)
        self._share(given, out, factors)
        self.biases[out] = shift
        return out

    def scale(self, ids: Ids, factors: npt.NDArray[np.float32]) -> None:
        factor = np.ones(self.n_neurons, np.float32)
        factor[ids] = factors
        self.biases *= factor
        for k in range(len(self.layers) - 1, -1, -1):
            source, target, weight, number = self.layers[k]
            if not len(target) or target.max() < ids.min():
                break
            weight = weight * factor[target]
            first = np.zeros(int(number.max() - number.min()) + 1, np.float32)
            first[number - number.min()] = weight
            if (first[number - number.min()] != weight).any():  # one stored weight has become several
                pairs = np.stack((number, weight.view(np.int32)))
                number = self.n_weights + np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
                self.n_weights = int(number.max()) + 1
            self.layers[k] = source, target, weight, number

    def _share(self, source: Ids, target: Ids, weights: Any) -> None:
        """Connect with weights, broadcast to the shape of `target`: equal ones are stored once."""
        stored, which = np.unique(weights, return_inverse=True)
        ids = np.broadcast_to(self.n_weights + which.reshape(weights.shape), target.shape)
        self._connect(source.ravel(), target.ravel(), np.broadcast_to(weights, target.shape).ravel(), ids.ravel())
        self.n_weights += len(stored)

    def _results(self, out: Ids | None, shape: tuple[int, ...], where: str) -> Ids:
        if out is None:
            return self.image(*shape) if len(shape) == 3 else self.vector(shape[0])
        if out.size != math.prod(shape):
            raise InputError(f"{where}: {math.prod(shape)} results for {out.size} neurons")
        return out.reshape(shape)

    def _add_bias(self, out: Ids, bias: npt.NDArray[np.float32] | None, where: str) -> None:
        if bias is not None:
            if bias.shape != out.shape[:1]:
                raise InputError(f"{where}: a bias of shape {list(bias.shape)} for {len(out)} outputs")
            self.biases[out.ravel()] += np.repeat(bias, out.size // len(bias))

    def _tell_pattern(self, weights: npt.NDArray[np.float32], where: str) -> None:
        if pattern := zero_pattern(weights) if weights.size <= MOST_SCANNED else "":
            self.notes.append(f"{where} is {pattern}")

    def _connect(self, source: Ids, target: Ids, weight: npt.NDArray[np.float32], weight_id: Ids) -> None:
        kept = source != NOBODY
        source, target, weight_id = (column[kept].astype(np.int32) for column in (source, target, weight_id))
        self.layers.append((source, target, weight[kept], weight_id))
        self.n_connections += len(source)

    # -- the end --

    def network(self, inputs: Ids, outputs: Ids, *, name: str, activation: str | None = None) -> Network:
        """Return the network: connections by layer of their target, then target, then source (two-optimal)."""
        columns: list[Any] = [list(column) for column in zip(*self.layers, strict=True)]
        self.layers = []
        source, target, weight, weight_id = (np.concatenate(columns.pop(0)) for _ in range(4))  # frees what it has read
        positions: Any = np.concatenate(self.positions).astype(np.int32)  # Network widens it
        if not len(source):
            raise InputError(f"{self.where}: all weights are zero: no connection is left")
        order = np.argsort(target * np.int64(2**31) + source)  # faster than lexsort
        source, target = source[order], target[order]
        weight, weight_id = weight[order], weight_id[order]
        del order
        source, target, weight, weight_id = _added(source, target, weight, weight_id)
        ids: Any = (np.cumsum(np.bincount(weight_id) > 0, dtype=np.int32) - 1)[weight_id]  # from 0, without gaps
        outputs = outputs.ravel()
        used = positions[:, 1] < 0  # those of an image that nothing reaches are left out
        for neurons in (inputs.ravel(), outputs, source, target):
            used[neurons] = True
        keep = np.flatnonzero(used)
        number: Any = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
        fed = used.copy()  # or biased alone
        fed[inputs] = False
        if activation is None:
            activation = self._one_activation(outputs, fed)
        mixed = activation == MIXED
        shared = len(ids) != ids.max() + 1
        del weight_id
        try:
            return Network(
                number[source], number[target], n_neurons=len(keep), inputs=number[inputs.ravel()],
                outputs=number[outputs], weights=weight, biases=self.biases[keep] if self.biases.any() else None,
                layer=positions[target, 0] - 1, activation=activation, name=name,
                weight_ids=ids if shared else None, positions=positions[keep], notes=tuple(self.notes),
                activations=self.codes[keep] if mixed else None,
                slopes=self.slopes[keep] if mixed and (self.slopes != SLOPE).any() else None,
            )  # fmt: skip
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None

    def _one_activation(self, outputs: Ids, fed: npt.NDArray[np.bool_]) -> str:
        inner = fed.copy()
        inner[outputs] = False
        codes = np.unique(self.codes[inner if inner.any() else fed])
        slopes = self.slopes[inner & (self.codes == ACTIVATIONS.index("leaky-relu"))]
        one = len(codes) == 1 and not self.codes[outputs][fed[outputs]].any() and (slopes == SLOPE).all()
        return ACTIVATIONS[codes[0]] if one else MIXED


def _added(
    source: Ids, target: Ids, weight: npt.NDArray[np.float32], weight_id: Ids
) -> tuple[Ids, Ids, npt.NDArray[np.float32], Ids]:
    """Return sorted connections with those of one pair of neurons added, as where branches of one tensor are summed."""
    while True:
        again = np.r_[False, (np.diff(source) == 0) & (np.diff(target) == 0)]
        second = np.flatnonzero(again & ~np.r_[False, again[:-1]])
        if not second.size:
            return source, target, weight, weight_id
        first = second - 1
        pairs = np.stack((weight_id[first], weight_id[second]))
        sums = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
        weight[first] += weight[second]
        weight_id[first] = int(weight_id.max()) + 1 + sums
        kept = np.ones(len(source), bool)
        kept[second] = False
        source, target, weight, weight_id = source[kept], target[kept], weight[kept], weight_id[kept]


WEIGHTED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
SAME_NUMBERS = {"RESHAPE", "FLATTEN", "SQUEEZE", "UNSQUEEZE", "EXPAND_DIMS", "QUANTIZE", "DEQUANTIZE", "IDENTITY",
                "CAST", "DROPOUT", "READ_VARIABLE"}  # fmt: skip
MOVES = {"PAD", "PADV2", "MIRROR_PAD", "SPLIT", "SPLIT_V", "CONCATENATION", "TRANSPOSE", "SLICE", "STRIDED_SLICE",
         "GATHER", "PACK", "UNPACK", "DEPTH_TO_SPACE", "DEPTHTOSPACE", "SPACE_TO_DEPTH", "SPACETODEPTH", "TILE",
         "BROADCAST_TO", "EXPAND", "RESIZE_NEAREST_NEIGHBOR"}  # fmt: skip
"""Operators whose results are numbers of their operands, or 0."""
LAST = {"SOFTMAX", "LOGSOFTMAX", "LOGISTIC"}  # monotone ends of a classifier: outputs stay linear here
AS_OPERATORS = "`edgewatt schedule` takes it as operators, as ew.load(..., kind='opgraph') reads it"
NAMED = {"RELU": "relu", "RELU6": "relu6", "TANH": "tanh", "LOGISTIC": "sigmoid", "SILU": "silu", "GELU": "gelu",
         "HARD_SWISH": "hard-swish", "HARDSWISH": "hard-swish", "LEAKY_RELU": "leaky-relu",
         "LEAKYRELU": "leaky-relu", "PRELU": "leaky-relu"}  # fmt: skip
"""Operators and fused activations -> activation of a neuron."""
HIGHEST = {"MAX", "MAXIMUM", "MIN", "MINIMUM"}
AFFINE = {"ADD", "SUB", "MUL", "DIV", "NEG", "BATCHNORMALIZATION"}


def named_activation(op: str, node: Operator, at: str) -> str:
    if op == "GELU" and node.attributes.get("approximate") in (True, b"tanh"):
        raise InputError(f"{at} is GELU's approximation by tanh: gelu of a network is exact")
    if op not in NAMED:
        raise InputError(f"{at} has the activation {op}: a network has {', '.join(dict.fromkeys(NAMED.values()))}")
    return NAMED[op]


def part_of(graph: OpGraph, names: Sequence[str]) -> OpGraph:
    known = [node.name for node in graph.nodes if node.op != INPUT]
    for pattern in names:
        if not any(name == pattern or fnmatchcase(name, pattern) for name in known):
            raise InputError(f"{graph.source or graph.name}: no operator {pattern!r}{did_you_mean(pattern, known[:8])}")
    nodes = [node for node in graph.nodes if any(node.name == p or fnmatchcase(node.name, p) for p in names)]
    made = {tensor.name for node in nodes for tensor in node.outputs}
    needed = {*graph.outputs, *(name for node in graph.nodes if node not in nodes for name in node.inputs)}
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name not in made)
    begin = [Operator(name, INPUT, (), (graph.tensors[name],)) for name in read]
    constants = {name: graph.constants[name] for node in nodes for name in node.constants}
    outputs = [name for node in nodes for name in (tensor.name for tensor in node.outputs) if name in needed]
    return graph.with_(nodes=(*begin, *nodes), outputs=tuple(outputs), constants=constants, allow_disconnected=True)


def to_network(graph: OpGraph) -> Network:
    """Return a model of convolutions, fully connected layers, sums, means and maxima as a network.

    A weight of a convolution is stored once for its connections; zeros are none. What only rearranges values rearranges
    neurons, means and bilinear resizing are connections, scaling (batch normalisation) goes into the weights before it.
    max(a, b) = a + relu(b - a). A final softmax or sigmoid is left out.
    """
    with damage(graph.source or graph.name):
        return _Model(graph).network()


def _most_moved(op: str, values: Sequence[Any], shape: tuple[int, ...]) -> int:
    given: tuple[int, ...] = values[0].shape
    numbers = [abs(int(v)) for v in np.ravel(values[1].real)] if len(values) > 1 else []
    if "PAD" in op:
        return math.prod(side + sum(numbers) for side in given)
    if op == "RESIZE_NEAREST_NEIGHBOR":
        return math.prod(given[:1] + given[3:]) * math.prod(numbers)
    if op == "EXPAND":
        return math.prod(np.broadcast_shapes(given, tuple(numbers)))
    several = {"TILE": math.prod(numbers), "GATHER": len(numbers)}.get(op, 1)
    return max(math.prod(shape), several * int(sum(value.size for value in values)))


class _Model:
    """ids: tensor -> neuron numbers in its shape. own: tensors that alone hold their neurons, which are sums so far."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.where = f"{graph.source or graph.name}: "
        self.made = Unrolled(graph.source or graph.name)
        self.ids: dict[str, Ids] = {}
        self.own: set[str] = set()
        self.channels_first = any(node.attributes.get("channel_axis") == 1 for node in graph.nodes)
        self.into: dict[str, list[Callable[[Ids], Ids]]] = {}  # tensor of a sum -> what still goes into it
        self.assigned: dict[str, Ids] = {}  # storage of a variable -> what it holds in the end
        self.readers = Counter(name for node in graph.nodes for name in node.inputs) + Counter(graph.outputs)

    def network(self) -> Network:
        self._estimate()
        inputs: list[Ids] = []
        for node in self.graph.nodes:
            at = f"{self.where}operator {node.name!r} ({node.op})"
            if node.op == INPUT:
                inputs.append(self._new(node.output.shape, at))
                self.ids[node.output.name] = inputs[-1]
            elif len(node.outputs) != 1 and node.op not in MOVES:
                raise InputError(f"{at} writes several tensors: {AS_OPERATORS}")
            else:
                self._operator(node, at)
        tensors = self.graph.tensors
        outputs = [self.assigned.get(tensors[n].buffer, self._given(n, self.where)) for n in self.graph.outputs]
        if not inputs or not outputs or not self.made.layers:
            raise InputError(f"{self.where}the model has no layer with weights between an input and an output")
        first, last = (np.concatenate([ids.ravel() for ids in each]) for each in (inputs, outputs))
        again = np.isin(last, first)
        again[np.setdiff1d(np.arange(len(last)), np.unique(last, return_index=True)[1])] = True
        if (last == NOBODY).any():
            raise InputError(f"{self.where}an output holds padding alone: {AS_OPERATORS}")
        if again.any():  # outputs of their own, where a result is an input or is asked for twice
            last[again] = self.made.copied(last[again], self.where)
        return self.made.network(first, last, name=self.graph.name)

    def _estimate(self) -> None:
        connections = 0
        for node in self.graph.nodes:
            if node.op in WEIGHTED and len(node.constants):
                weights = self.graph.constants[node.constants[0]]
                last = node.op == "DEPTHWISE_CONV_2D" and node.attributes.get("weight_layout") != "OIHW"
                channels = weights.shape[-1 if last or node.attributes.get("transposed") else 0]
                connections += int(np.count_nonzero(weights) / max(1, channels) * math.prod(node.output.shape))
        what = f"a network of {connections:,} connections in its layers alone ({_BYTES} bytes each)"
        claim(_BYTES * connections, f"{self.where}choose operators (--names) or a smaller input (--shape)", what)

    # -- operators --

    def _operator(self, node: Operator, at: str) -> None:
        name, op = node.output.name, node.op
        if op in LAST and self._is_last(name):
            note = f"the final {op} is left out: outputs are what goes into it"
            self.made.notes += [note] * (note not in self.made.notes)
            self._rename(node, at)
        elif op == "LOGISTIC" and self._gated(self._only_reader(name)) == node.inputs[0]:
            return  # with the product behind it it is SiLU
        elif gated := self._gated(node):
            alone = gated in self.own and self.readers[gated] == 2
            ids = self._given(gated, at)
            self.ids[name] = ids if alone else self.made.copied(ids, at)
            self._activate(self.ids[name], "SILU", node, at)
        elif op in WEIGHTED and node.constants and node.operands == (*node.inputs[:1], *node.constants):
            add = self._weighted(node, at)
            if (total := self._sum_of(node)) is None:
                self._finish(node, add(None), at)
            else:
                self.into.setdefault(total, []).append(add)
        elif op in ("ADD", "SUB") and len(node.operands) == 2 and not node.constants:
            self._add(node, at)
        elif op in NAMED and len(node.inputs) == 1:
            self.ids[name] = self._changeable(node, at)
            self._activate(self.ids[name], op, node, at)
        elif op in AFFINE and len(node.inputs) == 1 and len(node.operands) == 1 + len(node.constants):
            self._affine(node, at)
        elif op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            self._pool(node, at)
        elif op in ("MEAN", "REDUCEMEAN", "REDUCE_MAX", "REDUCEMAX", "GLOBALMAXPOOL"):
            self._reduce(node, at)
        elif op in HIGHEST and len(node.operands) == 2:
            self._highest(node, at)
        elif op == "CLIP":
            self._clip(node, at)
        elif op == "RESIZE_BILINEAR":
            self._resize(node, at)
        elif op == "ASSIGN_VARIABLE":
            self.assigned[node.output.buffer] = self._given(node.operands[1], at)
            self.ids[name] = self.assigned[node.output.buffer]
        elif op in SAME_NUMBERS:
            self._check_numbers(node, at)
            self._rename(node, at)
        elif op in MOVES:
            self._move(node, at)
        else:
            why = ": a product of two results is not a sum" if op in ("MUL", "BATCH_MATMUL", "MATMUL") else ""
            raise InputError(f"{at} has no place in a network of weighted connections{why}: {AS_OPERATORS}")

    def _check_numbers(self, node: Operator, at: str) -> None:
        if op_rounds := node.op in ("QUANTIZE", "DEQUANTIZE"):
            note = "values are neither rounded nor limited as QUANTIZE and DEQUANTIZE do"
            self.made.notes += [note] * (note not in self.made.notes)
        if (op_rounds or node.op == "CAST") and node.operands[:1] != node.inputs:
            raise InputError(f"{at} has a computed scale: {AS_OPERATORS}")
        whole = "int" in node.output.dtype or node.output.dtype == "bool"
        if node.op == "CAST" and whole and "int" not in self.graph.tensors[node.inputs[0]].dtype:
            raise InputError(f"{at} rounds to {node.output.dtype}: {AS_OPERATORS}")

    def _is_last(self, name: str) -> bool:
        after = self.graph.successors[self.graph.producer[name]]
        nodes = [self.graph.nodes[k] for k in after]
        return all(node.op in SAME_NUMBERS | {"TRANSPOSE"} and self._is_last(node.output.name) for node in nodes)

    def _only_reader(self, name: str) -> Operator | None:
        after = self.graph.successors[self.graph.producer[name]]
        return self.graph.nodes[after[0]] if len(after) == 1 and self.readers[name] == 1 else None

    def _gated(self, node: Operator | None) -> str | None:
        if node is None or node.op != "MUL" or len(node.inputs) != 2 or node.constants:
            return None
        for x, gate in (node.inputs, node.inputs[::-1]):
            made = self.graph.nodes[self.graph.producer[gate]]
            if made.op == "LOGISTIC" and made.inputs == (x,) and self._only_reader(gate) is node:
                return x
        return None

    def _rename(self, node: Operator, at: str) -> None:
        given, name = node.inputs[0], node.output.name
        self.ids[name] = self._shaped(self._given(given, at), node.output.shape, at)
        if self._owned(given):
            self.own.add(name)

    def _owned(self, name: str) -> bool:
        return name in self.own and self.readers[name] == 1

    def _changeable(self, node: Operator, at: str) -> Ids:
        ids = self._given(node.inputs[0], at)
        return ids if self._owned(node.inputs[0]) else self.made.copied(ids, at)

    def _move(self, node: Operator, at: str) -> None:
        joins = node.op in ("CONCATENATION", "PACK")
        axis_first = node.op == "SPLIT" and "compute" not in node.attributes
        if not joins and {*node.inputs} != {node.operands[axis_first]}:
            raise InputError(f"{at} moves values by what is computed: {AS_OPERATORS}")
        values = [self._moved(name, at) for name in node.operands]
        claim(32 * _most_moved(node.op, values, node.output.shape), at, "what it moves")
        try:
            if "compute" in node.attributes:
                results = node.attributes["compute"](values)
            else:
                results = OPERATIONS[node.op](node, *values)
        except (InputError, ValueError) as error:
            crop = "; a Slice crops" * ("PAD" in node.op)
            raise InputError(f"{at} is not read ({error}{crop}): {AS_OPERATORS}") from error
        own = all(self._owned(name) for name in node.inputs)
        for tensor, result in zip(node.outputs, results, strict=True):
            moved = np.asarray(result)
            if (constants := moved.real[moved.real != 0]).size:
                value = f"the constant {constants.flat[0]:g}"
                raise InputError(f"{at} puts {value} into {tensor.name!r}, only 0 is read: {AS_OPERATORS}")
            ids = self._shaped(moved.imag.astype(np.int64) - 1, tensor.shape, at)
            self.ids[tensor.name] = ids
            if own and len(np.unique(ids)) == ids.size and NOBODY not in ids:
                self.own.add(tensor.name)

    def _moved(self, name: str, at: str) -> npt.NDArray[Any]:
        """Return an operand of what moves: neurons as imaginary numbers from 1, constants as real ones."""
        if name not in self.graph.constants:
            return np.asarray((self._given(name, at) + 1) * 1j)
        return real_values(self.graph, name) if name in self.graph.quantization else self.graph.constants[name]

    def _weighted(self, node: Operator, at: str) -> Callable[[Ids | None], Ids]:
        given = self._given(node.inputs[0], at)
        weights = real_values(self.graph, node.constants[0])
        if (alpha := node.attributes.get("alpha", 1)) != 1:
            weights = weights * np.float32(alpha)
        bias = self._bias(node, at) if len(node.constants) > 1 else None
        if not np.isfinite(weights).all() or (bias is not None and not np.isfinite(bias).all()):
            raise InputError(f"{at}: a weight is not finite")
        shape = node.output.shape
        if node.op == "FULLY_CONNECTED":
            if weights.ndim != 2:
                raise InputError(f"{at}: weights of shape {list(weights.shape)} are no matrix")
            matrix = weights.T if node.attributes.get("transposed") else weights
            rows = given.size // matrix.shape[1] if given.size % matrix.shape[1] == 0 else 1
            if rows > 1:  # a matrix for each row: a window of one
                return lambda out: self._rows(given.reshape(rows, -1), matrix, bias, out, at).reshape(shape)
            return lambda out: self._shaped(self.made.dense(given, matrix, at, bias=bias, out=out), shape, at)
        if weights.ndim != 4:
            raise InputError(f"{at}: weights of shape {list(weights.shape)}: only images of two dimensions are read")
        image = self._channels_first(given, at)
        groups = int(node.attributes.get("groups", 1))
        oihw = node.attributes.get("weight_layout") == "OIHW"
        if node.op == "DEPTHWISE_CONV_2D":
            groups = image.shape[0]
            weights = weights if oihw else np.moveaxis(weights[0], -1, 0)[:, None]
        elif not oihw:
            weights = np.moveaxis(weights, -1, 1)
            groups = (
                image.shape[0] // weights.shape[1] if weights.shape[1] and not image.shape[0] % weights.shape[1] else 1
            )
        window = self._window(node, image, weights.shape[2:], at)

        def connect(out: Ids | None) -> Ids:
            into = None if out is None else self._channels_first(out, at)
            ids = self.made.convolution(image, weights, window, at, groups=groups, bias=bias, out=into)
            return self._as_stored(ids, shape, at)

        return connect

    def _bias(self, node: Operator, at: str) -> npt.NDArray[np.float32]:
        bias = real_values(self.graph, node.constants[1]) * np.float32(node.attributes.get("beta", 1))
        if node.op == "FULLY_CONNECTED" and bias.size == 1:
            return np.broadcast_to(bias.reshape(-1), node.output.shape[-1:])
        if node.op == "FULLY_CONNECTED" and bias.size != bias.shape[-1]:
            raise InputError(f"{at}: a bias of shape {list(bias.shape)}, not one for each output: {AS_OPERATORS}")
        return bias.reshape(-1)

    def _rows(self, given: Ids, matrix: Any, bias: Any, out: Ids | None, at: str) -> Ids:
        into = None if out is None else out.reshape(len(given), -1).T[:, :, None]
        kernel = np.ascontiguousarray(matrix)[:, :, None, None]
        return self.made.convolution(given.T[:, :, None], kernel, Window(), at, bias=bias, out=into)[:, :, 0].T

    def _sum_of(self, node: Operator) -> str | None:
        after = self._only_reader(node.output.name)
        if after is None or after.op != "ADD" or len(after.inputs) != 2 or after.constants:
            return None
        alike = after.output.shape == node.output.shape and node.attributes.get("activation", "NONE") == "NONE"
        return after.output.name if alike else None

    def _add(self, node: Operator, at: str) -> None:
        name, shape = node.output.name, node.output.shape
        own = self.into.pop(name, [])
        for k, given in enumerate(node.operands):
            if given in self.ids:
                ids = np.broadcast_to(self._given(given, at), shape)
                own.append(partial(self.made.identity, ids, where=at, weight=-1 if k and node.op == "SUB" else 1))
        total = self._sum_of(node)
        if total is not None:
            self.into.setdefault(total, []).extend(own)
            return
        out = self._new(shape, at)
        for add in own:
            add(out)
        self._finish(node, out, at)

    def _affine(self, node: Operator, at: str) -> None:
        """Scale and shift by constants: in the layer before where only this reads it, else by a connection a value."""
        shape, op = node.output.shape, node.op
        first = node.operands[0] == node.inputs[0]
        constants = [real_values(self.graph, name) for name in node.constants]
        one, zero = np.float32(1), np.float32(0)
        if op == "BATCHNORMALIZATION":
            gain, offset, mean, variance = (c.reshape(-1, *[1] * (len(shape) - 2)) for c in constants)
            factor = gain / np.sqrt(variance + np.float32(node.attributes.get("epsilon", 1e-5)))
            shift = offset - mean * factor
        elif op == "NEG":
            factor, shift = -one, zero
        elif op in ("ADD", "SUB"):
            factor = one if first or op == "ADD" else -one
            shift = constants[0] if op == "ADD" or not first else -constants[0]
        elif first or op == "MUL":
            factor, shift = (constants[0] if op == "MUL" else 1 / constants[0]), zero
        else:
            raise InputError(f"{at} divides by a result: {AS_OPERATORS}")
        given = self._given(node.inputs[0], at)
        if not np.isfinite(factor).all() or not np.isfinite(shift).all() or given.shape != shape:
            raise InputError(f"{at}: {list(given.shape)} becomes {list(shape)}, or a constant is not finite")
        factor, shift = (np.broadcast_to(c, shape).astype(np.float32) for c in (factor, shift))
        if not self._owned(node.inputs[0]):
            self._finish(node, self.made.scaled(given, factor, shift, at), at)
            return
        if (factor != 1).any():
            self.made.scale(given, factor)
        self.made.biases[given] += shift
        self._finish(node, given, at)

    def _pool(self, node: Operator, at: str) -> None:
        image = self._channels_first(self._given(node.inputs[0], at), at)
        sides = tuple(node.attributes.get("window", image.shape[1:]))
        window = self._window(node, image, sides, at)
        at += " with ceil_mode=1, which is not read" * bool(node.attributes.get("ceil_mode"))
        if node.op == "AVERAGE_POOL_2D":
            counted = bool(node.attributes.get("count_include_pad"))
            out = self.made.pool(image, sides, window, at, count_padding=counted)
            self._finish_mean(node, image, self._as_stored(out, node.output.shape, at), at)
            return
        out, own = self.made.without_zeros(image), math.prod(sides) > 1
        size = window.output((image.shape[1], image.shape[2]), (sides[0], sides[1]), at)
        claim(16 * len(image) * math.prod(size) * math.prod(sides), at, "its windows")
        for axis in (0, 1):  # along y, then x
            padding = [(0, 0)] * 3
            padding[axis + 1] = window.padding[axis], window.padding[axis + 2]
            out = np.pad(out, padding, constant_values=ABSENT)
            reach = (size[axis] - 1) * window.strides[axis] + 1
            taps = [slice(t, t + reach, window.strides[axis])
                    for t in range(0, sides[axis] * window.dilations[axis], window.dilations[axis])]  # fmt: skip
            held = np.stack([out[:, tap] if axis == 0 else out[:, :, tap] for tap in taps])
            own &= bool(((held >= 0).sum(axis=0) >= min(2, len(taps))).all())
            out = self.made.highest(held, at)
        self._finish(node, self._as_stored(np.maximum(out, NOBODY), node.output.shape, at), at, own=own)

    def _reduce(self, node: Operator, at: str) -> None:
        ids, listed = self._given(node.inputs[0], at), node.attributes.get("axes")
        if node.constants:
            listed = self.graph.constants[node.constants[0]].reshape(-1).tolist()
        if node.op == "GLOBALMAXPOOL":
            listed = range(2, ids.ndim)
        axes = sorted({int(axis) % ids.ndim for axis in (range(ids.ndim) if listed is None else listed)})
        n = math.prod(ids.shape[axis] for axis in axes)
        values = np.moveaxis(ids, axes, range(len(axes))).reshape(n, -1)
        if "MEAN" in node.op:
            out = self._shaped(self.made.mean(values, at), node.output.shape, at)
            self._finish_mean(node, values, out, at)
        else:
            highest = self.made.highest(self.made.without_zeros(values), at)
            out = self._shaped(np.maximum(highest, NOBODY), node.output.shape, at)
            self._finish(node, out, at, own=n > 1 and NOBODY not in values)

    def _finish_mean(self, node: Operator, given: Ids, out: Ids, at: str) -> None:
        """As `_finish`; the mean of what ReLU gave is no lower than 0, so it has ReLU too, as all neurons may then."""
        rectified = (self.made.codes[given[given != NOBODY]] == RELU).all()
        self._finish(node, out, at)
        if rectified and node.output.name in self.own:
            self.own.remove(node.output.name)
            self.made.codes[out] = RELU

    def _highest(self, node: Operator, at: str) -> None:
        constant = node.constants and real_values(self.graph, node.constants[0])
        if node.constants:
            self._finish(node, self._limited(self._given(node.inputs[0], at), constant, node.op[:3] == "MIN", at), at)
            return
        both = np.stack([np.broadcast_to(self._given(name, at), node.output.shape) for name in node.operands])
        if node.op[:3] == "MIN":
            raise InputError(f"{at} has no place in a network: {AS_OPERATORS}")
        out = self.made.highest(self.made.without_zeros(both), at)
        self._finish(node, np.maximum(out, NOBODY), at, own=NOBODY not in both)

    def _limited(self, ids: Ids, bound: Any, is_upper: bool, at: str) -> Ids:
        """Return neurons of max(ids, bound) = bound + relu(ids - bound), or of min = bound - relu(bound - ids)."""
        sign = -1 if is_upper else 1
        bound = np.broadcast_to(bound, ids.shape).astype(np.float32)
        above = self.made.copied(ids, at, sign)
        self.made.biases[above] -= sign * bound
        self.made.codes[above] = RELU
        out = self.made.copied(above, at, sign)
        self.made.biases[out] += bound
        return out

    def _clip(self, node: Operator, at: str) -> None:
        ids, limits = self._given(node.inputs[0], at), node.attributes.get("limits", ())
        if node.operands != (*node.inputs[:1], *node.constants) or len(limits) != 2:
            raise InputError(f"{at}: only constant lower and upper limits are read")
        if name := {(0, 6): "RELU6", (0, math.inf): "RELU"}.get(limits):
            self.ids[node.output.name] = self._changeable(node, at)
            self._activate(self.ids[node.output.name], name, node, at)
            return
        for is_upper, bound in enumerate(limits):
            if math.isfinite(bound):
                ids = self._limited(ids, bound, bool(is_upper), at)
        self._finish(node, ids, at, own=any(map(math.isfinite, limits)))

    def _resize(self, node: Operator, at: str) -> None:
        image = self._channels_first(self._given(node.inputs[0], at), at)
        size = self.graph.constants[node.operands[1]]
        height, width = image.shape[1:]
        claim(8 * sum(n * (n + int(m)) for n, m in zip((height, width), size, strict=True)), at, "its weights")
        y, x = (np.eye(side, dtype=np.float32) for side in (height, width))  # one channel a row, or a column
        rows = OPERATIONS[node.op](node, y[None, :, None], size)[0][0, :, 0]
        columns = OPERATIONS[node.op](node, x[None, None], size)[0][0, 0]
        self._finish(node, self._as_stored(self.made.mapped(image, rows, columns, at), node.output.shape, at), at)

    # -- activations --

    def _finish(self, node: Operator, ids: Ids, at: str, *, own: bool = True) -> None:
        activation = node.attributes.get("activation", "NONE")
        if activation != "NONE" and not own:
            ids = self.made.copied(ids, at)
        self.ids[node.output.name] = ids
        if activation != "NONE":
            self._activate(ids, activation, node, at)
        elif own:
            self.own.add(node.output.name)

    def _activate(self, ids: Ids, op: str, node: Operator, at: str) -> None:
        self.made.codes[ids] = ACTIVATIONS.index(named_activation(op, node, at))
        if op == "PRELU":
            if len(node.constants) != 1:
                raise InputError(f"{at}: only constant slopes are read")
            self.made.slopes[ids] = np.broadcast_to(real_values(self.graph, node.constants[0]), ids.shape)
        elif "LEAKY" in op:
            self.made.slopes[ids] = node.attributes.get("alpha", SLOPE)

    # -- tensors --

    def _given(self, name: str, at: str) -> Ids:
        if name not in self.ids:
            raise InputError(f"{at} reads {name!r}, which is not a layer's result alone: {AS_OPERATORS}")
        return self.ids[name]

    def _new(self, shape: tuple[int, ...], at: str) -> Ids:
        if not shape or shape[0] != 1:
            raise InputError(f"{at}: a shape of {list(shape)}: only one input at a time is read, of shape [1, ...]")
        if len(shape) == 4:
            channels, height, width = shape[1:] if self.channels_first else (shape[3], shape[1], shape[2])
            return self._as_stored(self.made.image(channels, height, width), shape, at)
        return self.made.vector(math.prod(shape)).reshape(shape)

    def _channels_first(self, ids: Ids, at: str) -> Ids:
        if ids.ndim != 4 or ids.shape[0] != 1:
            raise InputError(f"{at}: a tensor of shape {list(ids.shape)} is not an image")
        return ids[0] if self.channels_first else np.moveaxis(ids[0], -1, 0)

    def _shaped(self, ids: Ids, shape: tuple[int, ...], at: str) -> Ids:
        if ids.size != math.prod(shape):
            raise InputError(f"{at}: {ids.size} values do not fill the shape {list(shape)}")
        return ids.reshape(shape)

    def _as_stored(self, image: Ids, shape: tuple[int, ...], at: str) -> Ids:
        ids = image if self.channels_first or len(shape) != 4 else np.moveaxis(image, 0, -1)
        if ids.size != math.prod(shape):
            raise InputError(f"{at}: its result has the shape {list(shape)}, its window gives {list(image.shape)}")
        return ids.reshape(shape)

    def _window(self, node: Operator, image: Ids, sides: Any, at: str) -> Window:
        strides = tuple(node.attributes.get("strides", (1, 1)))
        dilations = tuple(node.attributes.get("dilations", (1, 1)))
        if len(strides) != 2 or len(dilations) != 2 or len(sides) != 2:
            raise InputError(f"{at}: only windows of two dimensions are read")
        (top, bottom), (left, right) = pads_of(node, image.shape[1:], sides, at)
        return Window(strides, (top, left, bottom, right), dilations)
