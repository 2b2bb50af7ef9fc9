"""Where neurons lie beside each other: places that a reader knows, else smooth coordinates of the network itself.

The latter come from its own connections (Fiedler vectors).

Of all functions on the neurons with zero mean at each depth, those that change least along the connections are the
eigenvectors of the highest eigenvalues of D^-1/2 A D^-1/2 (A: adjacency without directions, D: degrees). In an unrolled
convolution they are the position in the picture. Taking the mean at each depth out leaves no coordinate that merely
counts layers. Lanczos from the distances to a far neuron finds them in 40 to 120 products.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cython_ext.edges.geometry import distances, neighbour_sums, tridiagonal
from reorder.search.intervals import Items
from traces.work.network import Network

FloatArray = npt.NDArray[np.float64]

STEPS, FIRST_STEPS, LOOKS = 120, 8, 20  # of Lanczos, at most, before a look for any locality, and between later looks
KEPT = 1 << 25  # numbers of all steps together, above which there are fewer steps
FEWEST = 40
CLOSE = 0.1  # the error at which a vector is one: residual against the distance of its eigenvalue to 1
LEAST = 0.9  # eigenvalue: below, neighbours of neighbours lie everywhere (random layers of degree d: 2 / sqrt(d))
FIRST_LEAST = 0.6  # of the first steps, which have not found all of it
ALIKE = 0.6  # ratio from which two eigenvalues count as one
JUDGED = 8192  # neurons, about, by which a turn is judged
NEAR = 0.15  # mean distance of a connection's ends in a picture, at most; at random a third
NOISE = 0.1  # added to the start, so that it is orthogonal to nothing


def known_places(network: Network) -> FloatArray | None:
    """Return float64[N, 2]: (y, x) of each neuron from 0 to 1 within its layer's picture; None without pictures.

    Neurons of a layer that has none (-1) come last: they need all of the picture before them.
    """
    if network.positions is None:
        return None
    layer, pixels = network.positions[:, 0], network.positions[:, 1:]
    largest = np.full((int(layer.max()) + 1, 2), -1, np.int64)
    np.maximum.at(largest, layer, pixels)
    if (largest < 1).all():
        return None
    return np.where(pixels >= 0, (pixels + 0.5) / (np.maximum(largest, 0)[layer] + 1.0), 1.0)


def _wide(network: Network) -> bool:
    """Whether the largest picture is wider than it is high."""
    assert network.positions is not None
    y, x = network.positions[:, 1:].max(axis=0).tolist()
    return bool(x > y)


def places(items: Items) -> FloatArray | None:
    """Return float64[N, 2], the most telling coordinate first: known places or spectral ones; None without locality.

    Known ones where connections join what lies close to each other, on average; layers of all connections do not.
    """
    if "places" not in items.facts:
        network, known = items.network, known_places(items.network)
        if known is not None and np.abs(known[network.sources] - known[network.targets]).max(axis=1).mean() > NEAR:
            known = None
        if known is not None and _wide(network):
            known = known[:, ::-1]  # along the longer side first: fronts across it are shorter
        items.facts["places"] = coordinates(items) if known is None else known
    found: FloatArray | None = items.facts["places"]
    return found


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
    most = max(FEWEST, min(STEPS, KEPT // network.n_neurons))
    basis = np.empty((most, network.n_neurons))
    basis[0] = x / size
    diagonal, beside = np.zeros(most), np.zeros(most)
    steps = most
    for k in range(most):
        y = product(basis[k])
        diagonal[k] = _dot(y, basis[k])
        y -= diagonal[k] * basis[k] + (beside[k - 1] * basis[k - 1] if k else 0)
        along = np.einsum("kn,n->k", basis[: k + 1], y)  # once more, against rounding
        y -= np.einsum("kn,k->n", basis[: k + 1], along)
        beside[k] = np.sqrt(_dot(y, y))
        if k + 1 == FIRST_STEPS and _eigen(diagonal, beside, k + 1)[0][0] < FIRST_LEAST:
            return None
        if beside[k] < 1e-10 or k + 1 == most or _close(diagonal, beside, k + 1, count):
            steps = k + 1
            break
        basis[k + 1] = y / beside[k]
    values, vectors = _eigen(diagonal, beside, steps)
    if values[0] < LEAST:
        return None
    found = inverse[:, None] * np.einsum("kn,ck->nc", basis[:steps], vectors[:count])
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
    moments = [float((_turn(some, angle) ** 4).mean()) for angle in (0, np.pi / 8, np.pi / 4)]
    middle = (moments[0] + moments[2]) / 2  # over all angles they are middle + a cos 4 angle + b sin 4 angle
    return _turn(scaled, (np.arctan2(moments[1] - middle, moments[0] - middle) + np.pi) / 4)


def _turn(two: FloatArray, angle: float) -> FloatArray:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack((c * two[:, 0] + s * two[:, 1], c * two[:, 1] - s * two[:, 0]), axis=1)


def _close(diagonal: FloatArray, beside: FloatArray, n: int, count: int) -> bool:
    """Return whether the smoothest vectors are found, as far as n steps with a look can tell."""
    if n < FEWEST or n % LOOKS:
        return False
    values, vectors = _eigen(diagonal, beside, n)
    error = beside[n - 1] * np.abs(vectors[:count, -1])
    return bool((error < CLOSE * np.maximum(1 - values[:count], 1e-12)).all())


def _eigen(diagonal: FloatArray, beside: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, highest first, and eigenvectors (in rows) of the tridiagonal matrix of n steps."""
    values, vectors = tridiagonal(diagonal[:n], beside[: n - 1])
    return values, vectors
