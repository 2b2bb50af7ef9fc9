"""Trained models as sparse networks: every operator becomes connections, or rearranges neurons."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from traces.base.errors import InputError
from traces.networks.network import Network
from traces.operators.opgraph import INPUT, Operator, OpGraph, pads_of, real_values
from traces.readers.parts.layers import Matrix, dense_layer, from_layers
from traces.readers.parts.unroll import NOBODY, Ids, Unrolled, Window

if TYPE_CHECKING:
    from traces.networks.network import Network


WEIGHTED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
SUMS = {*WEIGHTED, "ADD"}
SAME_NUMBERS = {"QUANTIZE", "DEQUANTIZE", "IDENTITY", "DROPOUT"}
RESHAPED = {"RESHAPE", "FLATTEN", "SQUEEZE"}
LAST = {"SOFTMAX", "LOGSOFTMAX", "LOGISTIC"}  # monotone ends of a classifier: outputs stay linear here
AS_OPERATORS = "`edgewatt schedule` takes it as operators, as ew.load(..., kind='opgraph') reads it"
RECTIFIERS = {"RELU": "", "RELU6": "RELU6 is read as ReLU: values above 6 are not clipped"}


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
        self.rectified: list[Ids] = []
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
        elif node.op in RECTIFIERS and len(node.inputs) == 1:
            if len(self.graph.successors[self.graph.producer[node.inputs[0]]]) > 1:
                raise InputError(f"{at}: what it rectifies is read by others too: {AS_OPERATORS}")
            self.ids[name] = self._given(node.inputs[0], at)
            self._rectify(self.ids[name], node.op)
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
        rectified = np.isin(image[image != NOBODY], np.concatenate(self.rectified)).all() if self.rectified else False
        if rectified or node.attributes.get("activation", "NONE") in RECTIFIERS:
            self.rectified.append(out.ravel())
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
        elif activation in RECTIFIERS:
            self._rectify(ids, activation)
        else:
            raise InputError(f"{at} has the activation {activation}: a network has ReLU, or nothing")

    def _rectify(self, ids: Ids, how: str) -> None:
        self.rectified.append(ids.ravel())
        if RECTIFIERS[how]:
            self._note(RECTIFIERS[how])

    def _activation(self, outputs: Ids) -> str:
        """Return the network's activation. Raises InputError where some layers have ReLU and others have none."""
        rectified = np.zeros(self.made.n_neurons, bool)
        for ids in self.rectified:
            rectified[ids[ids != NOBODY]] = True
        last = np.zeros(self.made.n_neurons, bool)
        last[outputs] = True
        if (rectified & last).any():
            raise InputError(f"{self.where}ReLU behind the last layer: the outputs of a network are linear")
        if not rectified.any():
            return "identity"
        for first, at in self.linear.items():
            if not rectified[first] and not last[first]:
                raise InputError(
                    f"{at} has no ReLU, others have: a network has ReLU, or nothing, after every inner layer"
                )
        return "relu"

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
        if node.op == "RELU" and layers:
            activations[-1] = "RELU"
        elif node.op == "FULLY_CONNECTED" and node.constants:
            layers.append(_layer(graph, node, where))
            activations.append(str(node.attributes.get("activation", "NONE")))
        elif node.op in ("ADD", "MATMUL") and layers and len(node.constants) == 1 and layers[-1].bias is None:
            layers[-1] = _with_bias(graph, node, layers[-1], at)
        else:
            raise InputError(f"{at} has no place in a network of fully connected layers: {AS_OPERATORS}")
    if not layers:
        raise InputError(f"{where}the model has no fully connected layer with weights")
    inner = set(activations[:-1]) or {activations[-1]}
    if len(inner) > 1 or inner - {"RELU", "NONE"} or activations[-1] not in ("NONE", *inner):
        raise InputError(
            f"{where}the layers have the activations {', '.join(activations)}: a network has ReLU, or nothing, after "
            "every layer but the last"
        )
    if len(activations) > 1 and activations[-1] == "RELU":
        raise InputError(f"{where}ReLU behind the last layer: the outputs of a network are linear")
    return from_layers(layers, name=graph.name, activation="relu" if inner == {"RELU"} else "identity")


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
