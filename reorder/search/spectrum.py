"""Where neurons lie beside each other: smooth coordinates from the network's own connections (Fiedler vectors).

Of all functions on the neurons with zero mean at each depth, those that change least along the connections are the
eigenvectors of the highest eigenvalues of D^-1/2 A D^-1/2 (A: adjacency without directions, D: degrees). In an unrolled
convolution they are the position in the picture. Taking the mean at each depth out leaves no coordinate that merely
counts layers. Lanczos from the distances to a far neuron finds them in a few products.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cython_ext.edges.geometry import distances, neighbour_sums
from reorder.search.intervals import Items

FloatArray = npt.NDArray[np.float64]

STEPS, FIRST_STEPS = 40, 8  # of Lanczos, in all and before a look whether there is any locality
LEAST = 0.9  # eigenvalue: below, neighbours of neighbours lie everywhere (random layers of degree d: 2 / sqrt(d))
FIRST_LEAST = 0.6  # of the first steps, which have not found all of it
ALIKE, TURNS = 0.6, 24  # ratio from which two eigenvalues count as one; turns of their coordinates that are tried
JUDGED = 8192  # neurons, about, by which a turn is judged
NOISE = 0.1  # added to the start, so that it is orthogonal to nothing


def coordinates(items: Items) -> FloatArray | None:
    """Return float64[N, 2], smoothest first; None where the network has no locality. Kept with the items.

    O(W) per step. Deterministic. Neurons without connections get 0.
    """
    if "coordinates" not in items.facts:
        items.facts["coordinates"] = _coordinates(items, 2)
    found: FloatArray | None = items.facts["coordinates"]
    return found


def _coordinates(items: Items, count: int) -> FloatArray | None:
    network = items.network
    of_item, of_source = items.items.astype(np.int32), items.sources.astype(np.int32)
    start, target = items.by_source
    graph = (items.start, items.source, start, target, of_item, of_source, network.n_neurons)
    degree = (network.in_degree + network.out_degree).astype(np.float64)
    touched = degree > 0
    root = np.sqrt(degree)
    inverse = np.where(touched, 1 / np.where(touched, root, 1), 0.0)
    depth = network.depth
    weight = np.bincount(depth, degree)
    weight[weight == 0] = 1

    def centred(x: FloatArray) -> FloatArray:
        return x - root * (np.bincount(depth, x * root) / weight)[depth]

    def product(x: FloatArray) -> FloatArray:
        return centred(inverse * neighbour_sums(items.start, items.source, of_item, of_source, inverse * x))

    _, end = distances(*graph, int(of_source[0]))
    far, _ = distances(*graph, end)
    noise = np.random.default_rng(0).standard_normal(network.n_neurons)
    x = centred(root * (np.maximum(far, 0) + NOISE * noise))
    size = float(np.sqrt(_dot(x, x)))
    if size < 1e-9:
        return None
    basis = np.empty((STEPS, network.n_neurons))
    basis[0] = x / size
    diagonal, beside = np.zeros(STEPS), np.zeros(STEPS)
    steps = STEPS
    for k in range(STEPS):
        y = product(basis[k])
        diagonal[k] = _dot(y, basis[k])
        y -= diagonal[k] * basis[k] + (beside[k - 1] * basis[k - 1] if k else 0)
        along = np.einsum("kn,n->k", basis[: k + 1], y)  # once more, against rounding
        y -= np.einsum("kn,k->n", basis[: k + 1], along)
        beside[k] = np.sqrt(_dot(y, y))
        if k + 1 == FIRST_STEPS and _eigen(diagonal, beside, k + 1)[0][0] < FIRST_LEAST:
            return None
        if beside[k] < 1e-10 or k + 1 == STEPS:
            steps = k + 1
            break
        basis[k + 1] = y / beside[k]
    values, vectors = _eigen(diagonal, beside, steps)
    if values[0] < LEAST:
        return None
    found = inverse[:, None] * (basis[:steps].T @ vectors[:, :count])
    if count > 1 and steps > 1 and 1 - values[0] > ALIKE * (1 - values[1]):
        found[:, :2] = _along_axes(found[:, :2] - found[touched, :2].mean(axis=0), touched)
    for k in range(found.shape[1]):  # the sign of an eigenvector says nothing: the first neuron that has one gets +
        sign = found[np.argmax(np.abs(found[:, k]) > 1e-9), k]
        found[:, k] *= -1 if sign < 0 else 1
    return found if found.shape[1] == count else np.pad(found, ((0, 0), (0, count - found.shape[1])))


def _dot(x: FloatArray, y: FloatArray) -> float:
    return float(np.einsum("n,n->", x, y))  # unlike BLAS, in one thread and the same everywhere


def _along_axes(found: FloatArray, touched: npt.NDArray[np.bool_]) -> FloatArray:
    """Return two coordinates turned so that each goes along an axis of the picture.

    In a square picture the two smoothest ones come in any mixture. A cosine along one axis spends most of its values
    near its ends, a mixture of two does not: so the turn with the least fourth moments is taken.
    """
    scaled = found / np.maximum(np.sqrt((found[touched] ** 2).mean(axis=0)), 1e-30)
    some = scaled[touched]
    some = some[:: max(1, len(some) // JUDGED)]
    angles = np.arange(TURNS) * (np.pi / 2 / TURNS)
    return _turn(scaled, min(angles, key=lambda angle: float((_turn(some, angle) ** 4).mean())))


def _turn(two: FloatArray, angle: float) -> FloatArray:
    c, s = np.cos(angle), np.sin(angle)
    return two @ np.array([[c, -s], [s, c]])


def _eigen(diagonal: FloatArray, beside: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, highest first, and eigenvectors of the tridiagonal matrix of n steps."""
    matrix = np.diag(diagonal[:n]) + np.diag(beside[: n - 1], 1) + np.diag(beside[: n - 1], -1)
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]
