"""What a peer is: a library that computes a network layer by layer, and the registry of those we know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from traces.base.errors import EdgewattError, InputError
from traces.base.registry import Registry
from traces.networks.forward import start_values
from traces.networks.network import ACTIVATIONS, Network, weights_of

Step = Callable[[], object]


class MissingPeer(EdgewattError):
    """The library is not installed, or not for this machine; the text says what would install it."""


class Peer(Protocol):
    """Prepare all that can be prepared once, for a table of values; the result computes all layers in place."""

    def __call__(self, layers: list[MatrixLayer], values: Float32) -> Step: ...


PEERS: Registry[Peer] = Registry("peer", "edgewatt.peers", folder="edgewatt.checks.peers")


Float32 = npt.NDArray[np.float32]
CLIP = 32.0


@dataclass(frozen=True, eq=False)
class MatrixLayer:
    """values[targets] = f(matrix @ values[sources] + bias). matrix: scipy.sparse.csr_array, float32, int32 indices.

    sources, targets: slices of the table of values. bias: float32[n, 1]. activation: 'identity', 'relu', 'clip' (to 0
    and 32).
    """

    matrix: Any
    sources: slice
    targets: slice
    bias: Float32
    activation: str

    def finish(self, result: Float32) -> None:
        """Apply the activation in place, to sums that hold their bias."""
        if self.activation == "relu":
            np.maximum(result, 0, out=result)
        elif self.activation == "clip":
            np.clip(result, 0, CLIP, out=result)


def layers_of(network: Network) -> tuple[list[MatrixLayer], npt.NDArray[np.int64]]:
    """Return the layers, and int64[N]: the row of each neuron in the table of values, which goes by depth.

    Sources of a layer are the rows from its first to its last source, so connections that skip layers are possible.
    """
    from scipy.sparse import csr_array

    weights = weights_of(network, "inference")
    n = network.n_neurons
    by_depth = np.lexsort((np.arange(n), network.depth))
    row = np.empty(n, np.int64)
    row[by_depth] = np.arange(n)
    biases = np.zeros(n, np.float32) if network.biases is None else network.biases
    if network.activation == "clipped-relu" and (biases > 0).any():
        raise InputError("layer by layer, clipped-relu needs biases of at most 0: others count where the sum is not 0")
    layers = []
    depth_of = network.depth[network.targets]
    for depth in range(1, int(network.depth.max()) + 1):
        here = np.flatnonzero(depth_of == depth)
        targets = np.flatnonzero(network.depth == depth)
        rows, columns = row[network.targets[here]], row[network.sources[here]]
        first, low, high = int(row[targets[0]]), int(columns.min()), int(columns.max()) + 1
        matrix = csr_array((weights[here], (rows - first, columns - low)), shape=(len(targets), high - low))
        matrix.sort_indices()
        codes = np.unique(network.codes[targets])
        if len(codes) > 1:
            raise InputError(
                f"depth {depth} has neurons of several activations (outputs are linear): it is not a layer"
            )
        activation = ACTIVATIONS[codes[0]].replace("clipped-relu", "clip")
        bias = np.ascontiguousarray(biases[targets][:, None])
        layers.append(MatrixLayer(matrix, slice(low, high), slice(first, first + len(targets)), bias, activation))
    return layers, row


def table_of(network: Network, row: npt.NDArray[np.int64], batch: Float32) -> Float32:
    values = np.zeros((network.n_neurons, len(batch)), np.float32)
    unfed = np.flatnonzero(network.in_degree == 0)
    values[row[unfed]] = start_values(network)[unfed, None]
    values[row[network.inputs]] = batch.T
    return values
