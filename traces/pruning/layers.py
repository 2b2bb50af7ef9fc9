"""A layered network as one matrix for each layer, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.networks.network import Network
from traces.pruning.windows import Int64Array

Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Layers:
    """A network in which each connection leads from a layer to the next one.

    neurons: int64[n] for each layer, the inputs first: ids in the network. layer, target, source: int64[W], the layer
    of each connection, counted from 0, and its ends as numbers inside their layers.
    """

    network: Network
    neurons: tuple[Int64Array, ...]
    layer: Int64Array
    target: Int64Array
    source: Int64Array

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(len(ids) for ids in self.neurons)

    def matrices(self, values: npt.NDArray[np.floating]) -> list[npt.NDArray[np.floating]]:
        """Return [outputs, inputs] of each layer, filled with a value for each connection; 0 elsewhere."""
        made = [np.zeros((b, a), values.dtype) for a, b in zip(self.widths, self.widths[1:], strict=False)]
        for k, matrix in enumerate(made):
            here = self.layer == k
            matrix[self.target[here], self.source[here]] = values[here]
        return made

    def at(self, matrices: Sequence[npt.NDArray[np.generic]]) -> npt.NDArray[np.generic]:
        """Return the value of each connection, [W]."""
        values = np.empty(len(self.layer), matrices[0].dtype)
        for k, matrix in enumerate(matrices):
            here = self.layer == k
            values[here] = matrix[self.target[here], self.source[here]]
        return values

    def only(self, kept: npt.NDArray[np.bool_], weights: Weights | None = None) -> Network:
        """Return the network with the connections of bool[W] alone, in their order; weights: float32[W], new ones."""
        network = self.network
        weights = network.weights if weights is None else weights
        return network.with_(
            sources=network.sources[kept],
            targets=network.targets[kept],
            weights=None if weights is None else weights[kept],
            layer=self.layer[kept],
        )


def layers_of(network: Network) -> Layers:
    """Return a network's layers. Raises InputError where it is not a chain of them, or connections share weights."""
    if network.weight_ids is not None:
        raise InputError(f"{network.name}: its connections share stored weights; give a mask the widths in channels")
    layer = network.depth[network.sources] if network.layer is None else network.layer
    last = int(layer.max()) + 1
    layer_of = np.full(network.n_neurons, -1, np.int64)
    layer_of[network.inputs], layer_of[network.outputs] = 0, last
    layer_of[network.targets] = np.maximum(layer_of[network.targets], layer + 1)
    unplaced = layer_of[network.sources] < 0  # of neurons that only have a bias
    layer_of[network.sources[unplaced]] = layer[unplaced]
    wrong = (layer_of[network.sources] != layer) | (layer_of[network.targets] != layer + 1)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(
            f"{network.name}: connection {k} ({network.sources[k]} -> {network.targets[k]}) does not lead from a layer "
            "to the next one, from the inputs to the outputs: masks are for such networks alone"
        )
    neurons = [network.inputs, *(np.flatnonzero(layer_of == k) for k in range(1, last)), network.outputs]
    number = np.full(network.n_neurons, -1, np.int64)
    for ids in neurons:
        number[ids] = np.arange(len(ids))
    return Layers(network, tuple(neurons), layer, number[network.targets], number[network.sources])
