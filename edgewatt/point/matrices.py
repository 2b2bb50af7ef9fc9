"""The weights of a point as sparse matrices, one per layer, each row's tuples in the order they are worked on."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from traces.base.errors import InputError

if TYPE_CHECKING:
    from traces.work.network import Network


def layer_matrices(network: Network, edges: np.ndarray) -> list[Any]:
    """Return scipy.sparse CSR matrices (rows are outputs), float32, whose stored order follows `edges` (int64[W]).

    Rows and columns count the connected neurons of a layer from 0 in the order of their ids (all inputs, all outputs).
    Each row holds its connections in the order of work; the rows themselves follow the ids, as CSR demands.
    Raises InputError where the network has no layers or no weights.
    """
    from scipy.sparse import csr_matrix

    if network.layer is None or network.weights is None:
        raise InputError(f"{network.name}: matrices need a layered network with weights")
    matrices = []
    groups = _groups(network)
    for layer, (columns, rows) in zip(np.unique(network.layer), pairwise(groups), strict=True):
        mine = edges[network.layer[edges] == layer]
        row = np.searchsorted(rows, network.targets[mine])
        column = np.searchsorted(columns, network.sources[mine])
        by_row = np.argsort(row, kind="stable")
        pointers = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows)))))
        data = network.weights[mine][by_row]
        matrices.append(csr_matrix((data, column[by_row], pointers), shape=(len(rows), len(columns))))
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
    from reorder.cdr.files import write_matrix

    output = Path(output)
    paths = [output]
    if len(matrices) > 1:
        paths = [output.with_name(f"{output.stem}-{k}{output.suffix}") for k in range(1, len(matrices) + 1)]
    for matrix, path in zip(matrices, paths, strict=True):
        write_matrix(matrix, path)
    return paths
