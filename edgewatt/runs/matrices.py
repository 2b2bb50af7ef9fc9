"""The weights of a point as sparse matrices, one per layer, each row's tuples in the order they are worked on."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from traces.base.errors import InputError

if TYPE_CHECKING:
    from traces.networks.network import Network


def layer_matrices(network: Network, edges: np.ndarray) -> list[Any]:
    """Return scipy.sparse matrices (rows are outputs), float32, whose stored order is that of `edges` (int64[W]).

    Rows and columns count the connected neurons of a layer from 0 in the order of their ids (all inputs, all outputs).
    CSR where the order finishes row after row in the order of their ids, else COO, whose entries stand in the order of
    work. Raises InputError where the network has no layers or no weights, or where the order goes back to a layer that
    it had left, which one matrix per layer cannot hold.
    """
    from scipy.sparse import coo_matrix, csr_matrix

    if network.layer is None or network.weights is None:
        raise InputError(f"{network.name}: matrices need a layered network with weights")
    layers = network.layer[edges]
    back = np.flatnonzero(np.diff(layers) < 0)
    if len(back):
        at = int(back[0]) + 1
        raise InputError(
            f"{network.name}: the order goes back from layer {int(layers[at - 1])} to layer {int(layers[at])} at its "
            f"{at + 1}th connection, which one matrix per layer cannot hold: export an order that works layer by layer "
            "(two-optimal, layerwise), or write the order itself with `edgewatt order -o order.npz`"
        )
    matrices = []
    groups = _groups(network)
    for layer, (columns, rows) in zip(np.unique(network.layer), pairwise(groups), strict=True):
        mine = edges[network.layer[edges] == layer]
        row = np.searchsorted(rows, network.targets[mine])
        column = np.searchsorted(columns, network.sources[mine])
        shape = (len(rows), len(columns))
        if (np.diff(row) < 0).any():
            matrices.append(coo_matrix((network.weights[mine], (row, column)), shape=shape))
            continue
        pointers = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows)))))
        matrices.append(csr_matrix((network.weights[mine], column, pointers), shape=shape))
    return matrices


def _groups(network: Network) -> list[np.ndarray]:
    """Return the neuron ids between the layers, ascending: inputs, what joins two layers, ..., outputs.

    Hidden neurons without any connection are in none of them, so that matrices of neighbouring layers fit.
    """
    assert network.layer is not None
    layers = np.unique(network.layer)
    ends = [np.unique(network.targets[network.layer == layer]) for layer in layers[:-1]]
    starts = [np.unique(network.sources[network.layer == layer]) for layer in layers[1:]]
    joints = [np.union1d(end, start) for end, start in zip(ends, starts, strict=True)]
    return [np.sort(network.inputs), *joints, np.sort(network.outputs)]


def write_matrices(matrices: list[Any], output: str | Path) -> list[Path]:
    """Write one file per layer: `output` itself for a single layer, else NAME-1.EXT, NAME-2.EXT and so on."""
    from reorder.tuples.files import write_matrix

    output = Path(output)
    if output.suffix.lower() == ".safetensors" and any(matrix.format == "coo" for matrix in matrices):
        raise InputError(
            f"{output}: this order does not finish row after row, so it takes coordinate form: write .npz or .mtx"
        )
    paths = [output]
    if len(matrices) > 1:
        paths = [output.with_name(f"{output.stem}-{k}{output.suffix}") for k in range(1, len(matrices) + 1)]
    for matrix, path in zip(matrices, paths, strict=True):
        write_matrix(matrix, path)
    return paths
