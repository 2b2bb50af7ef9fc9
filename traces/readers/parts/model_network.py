"""Trained models as sparse networks: every operator becomes connections, or rearranges neurons."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.network import MAX_NEURONS, Network
from traces.operators.opgraph import INPUT, Operator, OpGraph, pads_of, real_values
from traces.readers.parts.layers import MOST_LOOKED_AT, Matrix, claim_network, dense_layer, from_layers, zero_pattern

Ids = npt.NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Window:
    """How a window moves over an image: strides and dilations (y, x), padding (top, left, bottom, right)."""

    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)

    def output(self, image: tuple[int, int], window: tuple[int, int], where: str) -> tuple[int, int]:
        """Return the size of the output image. Raises InputError where the window does not fit."""
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


@dataclass(eq=False)
class Unrolled:
    """A network in the making: neurons are numbered as they come, connections are kept layer by layer.

    where: the file, for messages. n_neurons, n_weights: so far. notes: sentences about what was read otherwise.
    """

    where: str
    n_neurons: int = 0
    n_weights: int = 0
    n_connections: int = 0
    layers: list[tuple[Ids, Ids, npt.NDArray[np.float32], Ids]] = field(default_factory=list)
    positions: list[Ids] = field(default_factory=list)
    biases: list[npt.NDArray[np.float32]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_layers: int = 0

    # -- neurons -------------------------------------------------------------------------------------------------------

    def image(self, channels: int, height: int, width: int) -> Ids:
        """Return new neurons (C, H, W), a layer of their own."""
        n = channels * height * width
        if min(channels, height, width) < 1 or self.n_neurons + n > MAX_NEURONS:
            raise InputError(
                f"{self.where}: {channels} x {height} x {width} more neurons: at most {MAX_NEURONS} can be numbered"
            )
        claim_network(self.n_connections, self.n_neurons + n, self.where)
        y, x = np.divmod(np.arange(n) % (height * width), width)
        self.positions.append(np.stack((np.full(n, self.n_layers), y, x), axis=1))
        return self._new(n).reshape(channels, height, width)

    def vector(self, n: int) -> Ids:
        """Return n new neurons without a place in an image, a layer of their own."""
        if n < 1 or self.n_neurons + n > MAX_NEURONS:
            raise InputError(f"{self.where}: {n} more neurons: at most {MAX_NEURONS} can be numbered")
        claim_network(self.n_connections, self.n_neurons + n, self.where)
        self.positions.append(np.stack((np.full(n, self.n_layers), np.full(n, -1), np.full(n, -1)), axis=1))
        return self._new(n)

    def _new(self, n: int) -> Ids:
        ids = self.n_neurons + np.arange(n)
        self.n_neurons += n
        self.n_layers += 1
        self.biases.append(np.zeros(n, np.float32))
        return ids

    # -- connections ---------------------------------------------------------------------------------------------------

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
        weights = kernel[o, i, r, s]
        first_channel = o // (outputs // groups) * inner
        claim_network(self.n_connections + len(o) * size[0] * size[1], self.n_neurons, where)
        top, left = window.padding[:2]
        parts = []
        for tap_y, tap_x in np.unique(np.stack((r, s)), axis=1).T.tolist():
            taps = np.flatnonzero((r == tap_y) & (s == tap_x))
            ys, from_y = _inside(size[0], window.strides[0], tap_y * window.dilations[0] - top, height)
            xs, from_x = _inside(size[1], window.strides[1], tap_x * window.dilations[1] - left, width)
            source = image[(first_channel + i)[taps][:, None, None], from_y[:, None], from_x]
            target = out[o[taps][:, None, None], ys[:, None], xs]
            parts.append((source.ravel(), target.ravel(), np.repeat(taps, len(ys) * len(xs))))
        source, target, tap = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else _nothing()
        self._connect(source, target, weights[tap] if len(tap) else np.zeros(0, np.float32), self.n_weights + tap)
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
        out = self._results(out, (matrix.shape[0],), where)
        row, column = np.nonzero(matrix)
        self._connect(given[column], out[row], matrix[row, column], self.n_weights + np.arange(len(row)))
        self.n_weights += len(row)
        self._add_bias(out, bias, where)
        return out

    def pool(self, image: Ids, sides: tuple[int, int], window: Window, where: str, *, count_padding: bool) -> Ids:
        """Connect the mean over windows (C, H', W'): every output to all that its window holds.

        One stored weight per number of elements that a window holds. count_padding: padding counts as elements.
        """
        channels, height, width = image.shape
        size = window.output((height, width), sides, where)
        out = self.image(channels, *size)
        top, left = window.padding[:2]
        claim_network(self.n_connections + out.size * sides[0] * sides[1], self.n_neurons, where)
        sources, targets = [], []
        for tap_y in range(sides[0]):
            for tap_x in range(sides[1]):
                ys, from_y = _inside(size[0], window.strides[0], tap_y * window.dilations[0] - top, height)
                xs, from_x = _inside(size[1], window.strides[1], tap_x * window.dilations[1] - left, width)
                sources.append(image[:, from_y[:, None], from_x].ravel())
                targets.append(out[:, ys[:, None], xs].ravel())
        source, target = np.concatenate(sources), np.concatenate(targets)
        held = np.bincount(target - out.flat[0], minlength=out.size)
        each = np.full(out.size, sides[0] * sides[1]) if count_padding else np.maximum(held, 1)
        counts, kind = np.unique(each, return_inverse=True)
        which = kind[target - out.flat[0]]
        self._connect(source, target, (1 / counts).astype(np.float32)[which], self.n_weights + which)
        self.n_weights += len(counts)
        return out

    def identity(self, given: Ids, out: Ids, where: str) -> Ids:
        """Add `given` to the neurons `out` of the same number: one stored weight of 1."""
        if given.size != out.size:
            raise InputError(f"{where}: {given.size} and {out.size} values cannot be added")
        source, target = given.ravel(), out.ravel()
        self._connect(source, target, np.ones(len(source), np.float32), np.full(len(source), self.n_weights))
        self.n_weights += 1
        return out

    def _results(self, out: Ids | None, shape: tuple[int, ...], where: str) -> Ids:
        if out is None:
            return self.image(*shape) if len(shape) == 3 else self.vector(shape[0])
        if out.size != math.prod(shape):
            raise InputError(f"{where}: {math.prod(shape)} results for {out.size} neurons")
        return out.reshape(shape)

    def _connect(self, source: Ids, target: Ids, weight: npt.NDArray[np.float32], weight_id: Ids) -> None:
        kept = source != NOBODY
        self.layers.append((source[kept], target[kept], weight[kept], weight_id[kept]))
        self.n_connections += int(kept.sum())

    def _add_bias(self, out: Ids, bias: npt.NDArray[np.float32] | None, where: str) -> None:
        if bias is None:
            return
        if bias.shape != (out.shape[0],):
            raise InputError(f"{where}: a bias of shape {list(bias.shape)} for {out.shape[0]} outputs")
        flat = np.concatenate(self.biases)
        flat[out.ravel()] += np.repeat(bias, out.size // len(bias))
        self.biases = [flat]

    def _tell_pattern(self, weights: npt.NDArray[np.float32], where: str) -> None:
        pattern = zero_pattern(weights) if weights.size <= MOST_LOOKED_AT else ""
        if pattern:
            self.notes.append(f"{where} is {pattern}")

    # -- the end -------------------------------------------------------------------------------------------------------

    def network(self, inputs: Ids, outputs: Ids, *, activation: str, name: str) -> Network:
        """Return the network: connections by layer of their target, then target, then source (two-optimal)."""
        source, target, weight, weight_id = (np.concatenate(column) for column in zip(*self.layers, strict=True))
        positions = np.concatenate(self.positions)
        if not len(source):
            raise InputError(f"{self.where}: all weights are zero: no connection is left")
        order = np.lexsort((source, target))
        source, target, weight, weight_id = source[order], target[order], weight[order], weight_id[order]
        source, target, weight, weight_id = _added(source, target, weight, weight_id)
        ids = (np.cumsum(np.bincount(weight_id) > 0) - 1)[weight_id]  # numbered from 0, without gaps
        outputs = outputs.ravel()
        used = np.zeros(self.n_neurons, bool)
        for neurons in (inputs.ravel(), outputs, source, target):
            used[neurons] = True
        keep = np.flatnonzero(used)
        number = np.where(used, np.cumsum(used) - 1, -1)
        biases = np.concatenate(self.biases)[keep]
        shared = len(ids) != ids.max() + 1
        try:
            return Network(
                number[source], number[target], n_neurons=len(keep), inputs=number[inputs.ravel()],
                outputs=number[outputs], weights=weight, biases=biases if biases.any() else None,
                layer=positions[target, 0] - 1, activation=activation, name=name,
                weight_ids=ids if shared else None, positions=positions[keep], notes=tuple(self.notes),
            )  # fmt: skip
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None


def _added(
    source: Ids, target: Ids, weight: npt.NDArray[np.float32], weight_id: Ids
) -> tuple[Ids, Ids, npt.NDArray[np.float32], Ids]:
    """Return sorted connections with those of one pair of neurons added, as where branches of one tensor are summed.

    Sums of the same two stored weights are one stored weight.
    """
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


def _inside(n: int, stride: int, offset: int, side: int) -> tuple[Ids, Ids]:
    """Return the outputs of 0..n-1 whose tap lies inside the image, and where it lies."""
    outputs = np.arange(n)
    at = outputs * stride + offset
    inside = (at >= 0) & (at < side)
    return outputs[inside], at[inside]


def _nothing() -> tuple[Ids, Ids, Ids]:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)


WEIGHTED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
SUMS = {*WEIGHTED, "ADD"}
SAME_NUMBERS = {"QUANTIZE", "DEQUANTIZE", "IDENTITY", "DROPOUT"}
RESHAPED = {"RESHAPE", "FLATTEN", "SQUEEZE"}
LAST = {"SOFTMAX", "LOGSOFTMAX", "LOGISTIC"}  # monotone ends of a classifier: outputs stay linear here
AS_OPERATORS = "`edgewatt schedule` takes it as operators, as ew.load(..., kind='opgraph') reads it"
NAMED = {"RELU": "relu", "RELU6": "relu", "TANH": "tanh", "LOGISTIC": "sigmoid", "SILU": "silu", "GELU": "gelu",
         "HARD_SWISH": "hard-swish", "HARDSWISH": "hard-swish", "LEAKY_RELU": "leaky-relu",
         "LEAKYRELU": "leaky-relu"}  # fmt: skip
"""Operators and fused activations -> activation of a network."""


def named_activation(op: str, node: Operator, at: str) -> str:
    """Return a network's name of an activation. Raises InputError for one that a network has not."""
    slope = float(node.attributes.get("alpha", 0.01))
    if op in ("LEAKY_RELU", "LEAKYRELU") and abs(slope - 0.01) > 1e-6:
        raise InputError(f"{at} has the slope {slope:g}: leaky-relu of a network has .01")
    if op == "GELU" and node.attributes.get("approximate") in (True, b"tanh"):
        raise InputError(f"{at} is GELU's approximation by tanh: gelu of a network is exact")
    if op not in NAMED:
        raise InputError(f"{at} has the activation {op}: a network has {', '.join(dict.fromkeys(NAMED.values()))}")
    return NAMED[op]


def unroll_model(graph: OpGraph) -> Network:
    """Return a model of convolutions, pooling, sums and fully connected layers as a network.

    A weight of a convolution is stored once for its connections. The results of layers without activation that are
    added go straight into the sum's neurons. Pooling is the mean over its window. Between layers there must be ReLU
    everywhere or nowhere; a final softmax or sigmoid is left out. Raises InputError naming the first operator that
    does not fit.
    """
    return _Model(graph).network()


class _Model:
    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.where = f"{graph.source or graph.name}: "
        self.made = Unrolled(graph.source or graph.name)
        self.ids: dict[str, Ids] = {}  # tensor -> neuron numbers in its shape
        self.channels_first = any(node.attributes.get("channel_axis") == 1 for node in graph.nodes)
        self.active: list[tuple[str, Ids]] = []  # activation, its neurons
        self.linear: dict[int, str] = {}  # first neuron of a result without activation -> operator
        self.into: dict[str, list[Callable[[Ids], Ids]]] = {}  # tensor of a sum -> what still goes into it

    def network(self) -> Network:
        inputs: list[Ids] = []
        for node in self.graph.nodes:
            at = f"{self.where}operator {node.name!r} ({node.op})"
            if node.op == INPUT:
                ids = self._image(node.output.shape, at)
                inputs.append(ids)
                self.ids[node.output.name] = ids
            elif node.op == "SPLIT" and len(node.inputs) == 1 and node.constants:
                axis = int(self.graph.constants[node.constants[0]].reshape(-1)[0])
                self._split(node, axis, at)
            elif len(node.outputs) != 1:
                raise InputError(f"{at} writes several tensors: {AS_OPERATORS}")
            else:
                self._operator(node, at)
        outputs = [self._given(name, self.where) for name in self.graph.outputs]
        if not inputs or not outputs or not self.made.layers:
            raise InputError(f"{self.where}the model has no layer with weights between an input and an output")
        activation = self._activation(np.concatenate([ids.ravel() for ids in outputs]))
        return self.made.network(
            np.concatenate([ids.ravel() for ids in inputs]),
            np.concatenate([ids.ravel() for ids in outputs]),
            activation=activation,
            name=self.graph.name,
        )

    # -- operators -----------------------------------------------------------------------------------------------------

    def _operator(self, node: Operator, at: str) -> None:
        name = node.output.name
        if node.op in WEIGHTED and node.constants and len(node.inputs) == 1:
            add = self._weighted(node, at)
            total = self._sum_of(node)
            if total is not None:
                self.into.setdefault(total, []).append(add)
                return
            self._finish(node, add(None), at)
        elif node.op == "ADD" and len(node.inputs) == 2:
            self._add(node, at)
        elif node.op in ("ADD", "MATMUL") and len(node.inputs) == 1 and len(node.constants) == 1:
            self._add_constant(node, at)
        elif node.op in NAMED and len(node.inputs) == 1 and not (node.op in LAST and name in self.graph.outputs):
            if len(self.graph.successors[self.graph.producer[node.inputs[0]]]) > 1:
                raise InputError(f"{at}: what it activates is read by others too: {AS_OPERATORS}")
            self.ids[name] = self._given(node.inputs[0], at)
            self._activate(self.ids[name], node.op, node, at)
        elif node.op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN"):
            self._pool(node, at)
        elif node.op in SAME_NUMBERS | RESHAPED or (node.op in LAST and name in self.graph.outputs):
            self.ids[name] = self._shaped(self._given(node.inputs[0], at), node.output.shape, at)
        elif node.op == "TRANSPOSE" and len(node.inputs) == 1:
            perm = node.attributes.get("perm", node.constants and self.graph.constants[node.constants[0]].tolist())
            self.ids[name] = self._turned(node, perm, at)
        elif node.op == "PAD" and node.constants:
            self._pad(node, at)
        elif node.op == "CONCATENATION":
            axis = int(node.attributes.get("axis", -1))
            parts = [self._given(given, at) for given in node.attributes.get("operands", node.inputs)]
            self.ids[name] = self._joined(parts, axis, node, at)
        else:
            raise InputError(
                f"{at} has no place in a network of convolutions and fully connected layers: {AS_OPERATORS}"
            )

    def _weighted(self, node: Operator, at: str) -> Callable[[Ids | None], Ids]:
        """Return what connects the layer: from the neurons that take its results (or None) to those neurons."""
        given = self._given(node.inputs[0], at)
        weights = real_values(self.graph, node.constants[0])
        bias = real_values(self.graph, node.constants[1]).reshape(-1) if len(node.constants) > 1 else None
        if not np.isfinite(weights).all() or (bias is not None and not np.isfinite(bias).all()):
            raise InputError(f"{at}: a weight is not finite")
        shape = node.output.shape
        if node.op == "FULLY_CONNECTED":
            matrix = weights.T if node.attributes.get("transposed") else weights
            flat: Any = lambda out: None if out is None else out.ravel()  # noqa: E731
            return lambda out: self._shaped(self.made.dense(given, matrix, at, bias=bias, out=flat(out)), shape, at)
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

    def _sum_of(self, node: Operator) -> str | None:
        """Return the tensor of the sum into which a result without activation goes straight, if there is one."""
        name, readers = node.output.name, self.graph.successors[self.graph.producer[node.output.name]]
        if node.attributes.get("activation", "NONE") != "NONE" or len(readers) != 1 or name in self.graph.outputs:
            return None
        after = self.graph.nodes[readers[0]]
        if after.op != "ADD" or len(after.inputs) != 2:
            return None
        return after.output.name

    def _add(self, node: Operator, at: str) -> None:
        name = node.output.name
        total = self._sum_of(node)
        own = self.into.pop(name, [])
        own += [partial(self._pass_on, self.ids[given], at) for given in node.inputs if given in self.ids]
        if total is not None:
            self.into.setdefault(total, []).extend(own)
            return
        out = self._image(node.output.shape, at)
        for add in own:
            add(out)
        self._finish(node, out, at)

    def _pass_on(self, ids: Ids, at: str, out: Ids) -> Ids:
        return self.made.identity(ids, out, at)

    def _add_constant(self, node: Operator, at: str) -> None:
        ids = self._given(node.inputs[0], at)
        if len(self.graph.successors[self.graph.producer[node.inputs[0]]]) > 1 or node.op != "ADD":
            raise InputError(f"{at}: only a constant that is added to one layer's results is read: a bias")
        try:
            values = np.broadcast_to(real_values(self.graph, node.constants[0]), ids.shape)
        except ValueError:
            raise InputError(f"{at}: a constant of another shape is no bias") from None
        flat = np.concatenate(self.made.biases)
        flat[ids.ravel()] += values.ravel()
        self.made.biases = [flat]
        self._finish(node, ids, at)

    def _pool(self, node: Operator, at: str) -> None:
        image = self._channels_first(self._given(node.inputs[0], at), at)
        whole = node.op == "MEAN"
        sides = tuple(node.attributes.get("window", image.shape[1:])) if not whole else image.shape[1:]
        if whole and math.prod(node.output.shape) != image.shape[0]:
            raise InputError(f"{at}: only a mean over the whole image is read")
        window = Window() if whole else self._window(node, image, sides, at)
        counted = bool(node.attributes.get("count_include_pad"))
        if node.op == "MAX_POOL_2D":
            self._note(
                "max pooling is read as the mean over its window: the connections are the same, the values are not"
            )
        out = self._as_stored(self.made.pool(image, sides, window, at, count_padding=counted), node.output.shape, at)
        self.ids[node.output.name] = out
        # The mean of what ReLU gave is no lower than 0, so ReLU changes nothing.
        rectified = [ids for how, ids in self.active if how == "relu"]
        if rectified and np.isin(image[image != NOBODY], np.concatenate(rectified)).all():
            self.active.append(("relu", out.ravel()))
        elif (fused := node.attributes.get("activation", "NONE")) != "NONE":
            self._activate(out, fused, node, at)
        else:
            self.linear[int(out.flat[0])] = at

    def _split(self, node: Operator, axis: int, at: str) -> None:
        ids, n = self._given(node.inputs[0], at), len(node.outputs)
        if not -ids.ndim <= axis < ids.ndim or ids.shape[axis] % n:
            raise InputError(f"{at}: a tensor of shape {list(ids.shape)} has no {n} equal parts along axis {axis}")
        for tensor, part in zip(node.outputs, np.split(ids, n, axis=axis), strict=True):
            self.ids[tensor.name] = self._shaped(part, tensor.shape, at)

    def _pad(self, node: Operator, at: str) -> None:
        pads = self.graph.constants[node.constants[0]].reshape(-1).tolist()
        ids = self._given(node.inputs[0], at)
        if len(pads) != 2 * ids.ndim:
            raise InputError(f"{at}: {len(pads)} paddings for a tensor of shape {list(ids.shape)}")
        pairs = np.array(pads, np.int64)
        pairs = pairs.reshape(2, -1).T if self.channels_first else pairs.reshape(-1, 2)
        if pairs.shape != (ids.ndim, 2) or pairs.min() < 0 or pairs.max() > 2**12:
            raise InputError(f"{at}: padding {pads} is not read")
        padded = np.pad(ids, pairs, constant_values=NOBODY)
        self.ids[node.output.name] = self._shaped(padded, node.output.shape, at)

    # -- activations ---------------------------------------------------------------------------------------------------

    def _finish(self, node: Operator, ids: Ids, at: str) -> None:
        self.ids[node.output.name] = ids
        activation = node.attributes.get("activation", "NONE")
        if activation == "NONE":
            self.linear[int(ids.flat[0])] = at
        else:
            self._activate(ids, activation, node, at)

    def _activate(self, ids: Ids, op: str, node: Operator, at: str) -> None:
        self.active.append((named_activation(op, node, at), ids.ravel()))
        if op == "RELU6":
            self._note("RELU6 is read as ReLU: values above 6 are not clipped")

    def _activation(self, outputs: Ids) -> str:
        """Return the network's activation. Raises InputError where layers differ in it."""
        names = sorted({how for how, _ in self.active})
        if len(names) > 1:
            raise InputError(f"{self.where}layers have the activations {', '.join(names)}: a network has one")
        active = np.zeros(self.made.n_neurons, bool)
        for _, ids in self.active:
            active[ids[ids != NOBODY]] = True
        last = np.zeros(self.made.n_neurons, bool)
        last[outputs] = True
        if (active & last).any():
            raise InputError(f"{self.where}{names[0]} behind the last layer: the outputs of a network are linear")
        if not names:
            return "identity"
        for first, at in self.linear.items():
            if not active[first] and not last[first]:
                raise InputError(
                    f"{at} has no activation, others have {names[0]}: a network has it after every inner layer, or none"
                )
        return names[0]

    # -- tensors -------------------------------------------------------------------------------------------------------

    def _given(self, name: str, at: str) -> Ids:
        if name not in self.ids:
            raise InputError(f"{at} reads {name!r}, which is no layer's result alone: {AS_OPERATORS}")
        return self.ids[name]

    def _image(self, shape: tuple[int, ...], at: str) -> Ids:
        if not shape or shape[0] != 1:
            raise InputError(f"{at}: a shape of {list(shape)}: only one input at a time is read, of shape [1, ...]")
        if len(shape) == 4:
            channels, height, width = shape[1:] if self.channels_first else (shape[3], shape[1], shape[2])
            return self._as_stored(self.made.image(channels, height, width), shape, at)
        return self.made.vector(math.prod(shape)).reshape(shape)

    def _channels_first(self, ids: Ids, at: str) -> Ids:
        if ids.ndim != 4 or ids.shape[0] != 1:
            raise InputError(f"{at}: a tensor of shape {list(ids.shape)} is no image")
        return ids[0] if self.channels_first else np.moveaxis(ids[0], -1, 0)

    def _shaped(self, ids: Ids, shape: tuple[int, ...], at: str) -> Ids:
        if ids.size != math.prod(shape):
            raise InputError(f"{at}: {ids.size} values do not fill the shape {list(shape)}")
        return ids.reshape(shape)

    def _turned(self, node: Operator, perm: Any, at: str) -> Ids:
        ids = self._given(node.inputs[0], at)
        axes = [int(axis) for axis in perm] if perm else list(range(ids.ndim))[::-1]
        if sorted(axes) != list(range(ids.ndim)):
            raise InputError(f"{at}: {axes} is no order of the axes of a tensor of shape {list(ids.shape)}")
        return self._shaped(ids.transpose(axes), node.output.shape, at)

    def _joined(self, parts: list[Ids], axis: int, node: Operator, at: str) -> Ids:
        try:
            return self._shaped(np.concatenate(parts, axis=axis), node.output.shape, at)
        except (ValueError, IndexError) as error:
            shapes = ", ".join(str(list(part.shape)) for part in parts)
            raise InputError(f"{at}: tensors of shapes {shapes} cannot be joined along axis {axis}") from error

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

    def _note(self, text: str) -> None:
        if text not in self.made.notes:
            self.made.notes.append(text)


def to_network(graph: OpGraph) -> Network:
    """Return a chain of fully connected layers as a network (every weight a connection; pruning thins it).

    A model with anything else than such a chain is unrolled.

    Between two layers there must be ReLU (fused or not) everywhere or nowhere; a final softmax or sigmoid is left out.
    Raises InputError naming the first operator that does not fit.
    """
    if not _is_chain(graph):
        try:
            return unroll_model(graph)
        except InputError:
            raise
        except (ValueError, IndexError, TypeError, OverflowError) as error:  # attributes that contradict each other
            raise InputError(f"{graph.source or graph.name}: damaged ({type(error).__name__}: {error})") from error
    where = f"{graph.source or graph.name}: "
    layers: list[Matrix] = []
    activations: list[str] = []  # after each layer
    for node in graph.nodes:
        at = f"{where}operator {node.name!r} ({node.op})"
        if len(node.inputs) > 1 or any(len(graph.successors[graph.producer[name]]) > 1 for name in node.inputs):
            raise InputError(f"{at}: the model is no chain of layers: {AS_OPERATORS}")
        last = node.op in LAST and not graph.successors[graph.producer[node.name]]
        if node.op == INPUT or node.op in SAME_NUMBERS | RESHAPED or last:
            continue
        if node.op in NAMED and layers:
            activations[-1] = named_activation(node.op, node, at)
        elif node.op == "FULLY_CONNECTED" and node.constants:
            layers.append(_layer(graph, node, where))
            fused = str(node.attributes.get("activation", "NONE"))
            activations.append("identity" if fused == "NONE" else named_activation(fused, node, at))
        elif node.op in ("ADD", "MATMUL") and layers and len(node.constants) == 1 and layers[-1].bias is None:
            layers[-1] = _with_bias(graph, node, layers[-1], at)
        else:
            raise InputError(f"{at} has no place in a network of fully connected layers: {AS_OPERATORS}")
    if not layers:
        raise InputError(f"{where}the model has no fully connected layer with weights")
    inner = set(activations[:-1]) or {activations[-1]}
    if len(inner) > 1 or activations[-1] not in ("identity", *inner):
        raise InputError(
            f"{where}the layers have the activations {', '.join(activations)}: a network has one after every layer but "
            "the last"
        )
    if len(activations) > 1 and activations[-1] != "identity":
        raise InputError(f"{where}{activations[-1]} behind the last layer: the outputs of a network are linear")
    return from_layers(layers, name=graph.name, activation=inner.pop())


def _is_chain(graph: OpGraph) -> bool:
    """Tell whether no operator is one that only unrolling makes connections of."""
    unrolled = {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "CONCATENATION"}
    return not any(node.op in unrolled or (node.op == "ADD" and len(node.inputs) == 2) for node in graph.nodes)


def _layer(graph: OpGraph, node: Operator, where: str) -> Matrix:
    weights = real_values(graph, node.constants[0])
    if weights.ndim != 2:
        raise InputError(f"{where}operator {node.name!r}: weights of shape {list(weights.shape)} are no matrix")
    if node.attributes.get("transposed"):
        weights = weights.T
    bias = real_values(graph, node.constants[1]).reshape(-1) if len(node.constants) > 1 else None
    return dense_layer(np.ascontiguousarray(weights), f"{where}operator {node.name!r}", bias=bias)


def _with_bias(graph: OpGraph, node: Operator, layer: Matrix, at: str) -> Matrix:
    bias = real_values(graph, node.constants[0]).reshape(-1)
    if bias.shape != (layer.shape[0],):
        raise InputError(f"{at} adds {bias.size} values to {layer.shape[0]} outputs: it is no bias")
    return replace(layer, bias=bias)
