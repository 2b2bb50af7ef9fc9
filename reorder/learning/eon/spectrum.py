"""EON's features of a neuron: its row in the eigenvectors of the largest eigenvalues of the undirected Laplacian."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, diags
from scipy.sparse.linalg import eigsh

from traces.networks.network import Network

DENSE = 2000  # neurons up to which all eigenvectors are found at once


def features(network: Network, count: int) -> npt.NDArray[np.float32]:
    """Return float32[N, count]: ``v_i = Q[i, :count]`` of ``L = D - A = Q Lambda Q^-1``, largest eigenvalues first.

    Scaled by sqrt(N), so that entries are of order 1; each vector's largest entry is positive. Columns beyond N are 0.
    """
    n = network.n_neurons
    ones = np.ones(network.n_connections)
    adjacency = coo_matrix((ones, (network.sources, network.targets)), shape=(n, n)).tocsr()
    adjacency = ((adjacency + adjacency.T) > 0).astype(np.float64)
    laplacian = diags(np.asarray(adjacency.sum(axis=1)).ravel()) - adjacency
    computed = min(count, n)
    if n <= DENSE or computed >= n - 1:
        values, vectors = np.linalg.eigh(laplacian.toarray())
    else:
        values, vectors = eigsh(laplacian, computed, which="LA", v0=np.random.default_rng(0).standard_normal(n))
    largest = vectors[:, np.argsort(values, kind="stable")[::-1][:computed]]
    signs = np.sign(largest[np.argmax(np.abs(largest), axis=0), np.arange(computed)])
    result = np.zeros((n, count), np.float32)
    result[:, :computed] = largest * signs * np.sqrt(n)
    return result
