"""What the readers of trained models share: names, weight matrices, and fully connected models as networks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from traces.base.errors import InputError
from traces.readers.parts.model_network import AS_OPERATORS, unroll_model
from traces.work.opgraph import INPUT, Operator, OpGraph
from traces.work.quantized import real_values

if TYPE_CHECKING:
    from traces.work.network import Network

# Operators that leave a vector's values as they are, up to the number format.
PASSING = {"RESHAPE", "QUANTIZE", "DEQUANTIZE", "FLATTEN", "IDENTITY", "SQUEEZE", "DROPOUT"}
LAST = {"SOFTMAX", "LOGSOFTMAX", "LOGISTIC"}  # monotone ends of a classifier: outputs stay linear here
MATRICES = {"FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"}


def unique_names(names: Iterable[str]) -> list[str]:
    """Return the names with '#2', '#3' ... behind those that have appeared before."""
    seen: dict[str, int] = {}
    result: list[str] = []
    taken: set[str] = set()
    for name in names:
        choice = name
        while choice in taken:
            seen[name] = seen.get(name, 1) + 1
            choice = f"{name}#{seen[name]}"
        taken.add(choice)
        result.append(choice)
    return result


def to_network(graph: OpGraph) -> Network:
    """Return a chain of fully connected layers as a network (every weight a connection; traces.work.prune thins it).

    A model with anything else than such a chain is unrolled (traces.readers.parts.model_network).

    Between two layers there must be ReLU (fused or not) everywhere or nowhere; a final softmax or sigmoid is left out.
    Raises InputError naming the first operator that does not fit.
    """
    from traces.readers.parts.layers import from_layers

    if not _is_chain(graph):
        try:
            return unroll_model(graph)
        except InputError:
            raise
        except (ValueError, IndexError, TypeError, OverflowError) as error:  # attributes that contradict each other
            raise InputError(f"{graph.source or graph.name}: damaged ({type(error).__name__}: {error})") from error
    where = f"{graph.source or graph.name}: "
    layers: list[Any] = []
    activations: list[str] = []  # after each layer
    for node in graph.nodes:
        at = f"{where}operator {node.name!r} ({node.op})"
        if len(node.inputs) > 1 or any(len(graph.successors[graph.producer[name]]) > 1 for name in node.inputs):
            raise InputError(f"{at}: the model is no chain of layers: {AS_OPERATORS}")
        if (
            node.op == INPUT
            or node.op in PASSING
            or (node.op in LAST and not graph.successors[graph.producer[node.name]])
        ):
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
    unrolled = {
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "AVERAGE_POOL_2D",
        "MAX_POOL_2D",
        "MEAN",
        "CONCATENATION",
    }
    return not any(node.op in unrolled or (node.op == "ADD" and len(node.inputs) == 2) for node in graph.nodes)


def _layer(graph: OpGraph, node: Operator, where: str) -> Any:
    from traces.readers.parts.layers import dense_layer

    weights = real_values(graph, node.constants[0])
    if weights.ndim != 2:
        raise InputError(f"{where}operator {node.name!r}: weights of shape {list(weights.shape)} are no matrix")
    if node.attributes.get("transposed"):
        weights = weights.T
    bias = real_values(graph, node.constants[1]).reshape(-1) if len(node.constants) > 1 else None
    return dense_layer(np.ascontiguousarray(weights), f"{where}operator {node.name!r}", bias=bias)


def _with_bias(graph: OpGraph, node: Operator, layer: Any, at: str) -> Any:
    from dataclasses import replace

    bias = real_values(graph, node.constants[0]).reshape(-1)
    if bias.shape != (layer.shape[0],):
        raise InputError(f"{at} adds {bias.size} values to {layer.shape[0]} outputs: it is no bias")
    return replace(layer, bias=bias)
