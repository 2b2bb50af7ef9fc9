"""Neuron coordinates: from the reader, or Fiedler vectors of the connection graph.

Of all functions on the neurons with zero mean at each depth, those that change least along the connections are the
eigenvectors of the highest eigenvalues of D^-1/2 A D^-1/2 (A: adjacency without directions, D: degrees). In an unrolled
convolution they are the position in the picture. Taking the mean at each depth out leaves no coordinate that merely
counts layers. Lanczos from the distances to a far neuron finds them in 40 to 120 products, in large networks on
cells.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cython_ext.edges.geometry import distances, neighbour_sums, tridiagonal
from reorder.edges.search.intervals import Int32Array, Items
from traces.networks.network import Int64Array, Network

FloatArray = npt.NDArray[np.float64]

# Steps of Lanczos: at most, before a first check for locality, between later checks, between two pairs of steps that
# are made orthogonal to all before (Grcar 1981): fewer take less than half the time, and lose nothing above 1e-11.
STEPS, FIRST_STEPS, CHECK_EVERY, ORTHOGONAL_EVERY = 120, 8, 20, 8
BASIS_NUMBERS = 1 << 25  # numbers of all steps together, above which there are fewer steps
FEWEST = 40
CLOSE = 0.1  # the error at which a vector is one: residual against the distance of its eigenvalue to 1
LEAST = 0.9  # eigenvalue: below, neighbours of neighbours lie everywhere (random layers of degree d: 2 / sqrt(d))
FIRST_LEAST = 0.6  # of the first steps, which have not found all of it
ALIKE = 0.6  # ratio from which two eigenvalues count as one
SAMPLED = 8192  # neurons, about, by which a turn is chosen
NEAR = 0.15  # mean distance of a connection's ends in a picture, at most; at random a third
NOISE = 0.1  # added to the start, so that it is orthogonal to nothing
# Above so many connections or neurons, coordinates are those of cells, but with more depths only above so many neurons
# (where fewer steps than they need are left); neurons in a cell, and how many cells, at least and at most; rounds that
# make them smooth.
LARGE, MANY, DEPTHS, MANY_DEEP = 1 << 18, 1 << 14, 64, 1 << 16
PER_CELL, FEWEST_CELLS, MOST_CELLS, SMOOTHED = 32, 1024, 4096, 2


def image_coordinates(network: Network) -> FloatArray | None:
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


def neuron_coordinates(items: Items) -> FloatArray | None:
    """Return float64[N, 2], the most telling coordinate first: known places or spectral ones; None without locality."""
    if "neuron_coordinates" not in items.facts:
        known = known_coordinates(items.network)
        items.facts["neuron_coordinates"] = coordinates(items) if known is None else known
    cached: FloatArray | None = items.facts["neuron_coordinates"]
    return cached


def known_coordinates(network: Network) -> FloatArray | None:
    """Return the places in pictures, along the longer side first: fronts across it are shorter.

    None where connections do not join what lies close to each other, on average; layers of all connections do not.
    """
    known = image_coordinates(network)
    if known is None or np.abs(known[network.sources] - known[network.targets]).max(axis=1).mean() > NEAR:
        return None
    assert network.positions is not None
    height, width = network.positions[:, 1:].max(axis=0)  # of the largest picture
    return known[:, ::-1] if width > height else known


def give_up_coordinates(items: Items) -> None:
    """Take the network for one without locality: there is no time to look for it."""
    items.facts.setdefault("neuron_coordinates", None)


def coordinates(items: Items) -> FloatArray | None:
    """Return float64[N, 2], smoothest first; None where the network has no locality.

    O(W) per step. Deterministic. Neurons without connections get 0.
    """
    network = items.network
    if network.out_degree.max(initial=0) <= 1:  # a tree: each value is used once, whatever is near
        return None
    graph = _Graph(items)
    _, _, end = graph.distances(np.array([graph.degree.argmax()]))
    far, _, _ = graph.distances(np.array([end]))
    graph.keep(far >= 0)
    noise = np.random.default_rng(0).standard_normal(network.n_neurons)
    start = graph.centred(graph.root * (np.maximum(far, 0) + NOISE * noise))
    if _dot(start, start) < 1e-18:
        return None
    large = network.n_connections > LARGE or network.n_neurons > MANY
    large = large and (len(graph.weight) <= DEPTHS or network.n_neurons > MANY_DEEP)
    most = FIRST_STEPS if large else max(FEWEST, min(STEPS, BASIS_NUMBERS // network.n_neurons))
    values, vectors = lanczos(graph.product, start, most, 2, FIRST_LEAST)
    if large and values[0] >= FIRST_LEAST:
        values, vectors = _from_cells(graph, far)
    elif len(values) > 1 and values[0] >= LEAST and 1 - values[0] <= ALIKE * (1 - values[1]):
        values, vectors = with_twin(graph.product, values, vectors, most)
    if values[0] < LEAST:
        return None
    embedding = (graph.inverse * vectors).T
    if len(values) > 1 and 1 - values[0] > ALIKE * (1 - values[1]):
        embedding = _along_axes(embedding - embedding[graph.touched].mean(axis=0), graph.touched)
    for k in range(embedding.shape[1]):  # the sign of an eigenvector says nothing: the first neuron that has one gets +
        sign = embedding[np.argmax(np.abs(embedding[:, k]) > 1e-9), k]
        embedding[:, k] *= -1 if sign < 0 else 1
    return np.pad(embedding, ((0, 0), (0, 2 - embedding.shape[1])))


class _Graph:
    """A network without directions: products of D^-1/2 A D^-1/2; degrees D, their `root`, its inverse (float64[N])."""

    def __init__(self, items: Items) -> None:
        self.network = network = items.network
        start, target = items.by_source
        of_item, of_source = items.items.astype(np.int32), items.sources.astype(np.int32)
        self._ways = (items.start, items.source, start, target, of_item, of_source, network.n_neurons)
        self._into = (items.start, items.source, of_item, of_source)
        self.degree = (network.in_degree + network.out_degree).astype(np.float64)
        self._weigh()

    def _weigh(self) -> None:
        self.touched = self.degree > 0
        self.root = np.sqrt(self.degree)
        self.inverse = np.where(self.touched, 1 / np.where(self.touched, self.root, 1), 0.0)
        self.weight = np.bincount(self.network.depth, self.degree)
        self.weight[self.weight == 0] = 1

    def keep(self, part: npt.NDArray[np.bool_]) -> None:
        """Keep one connected component if it has most connections: else the smoothest vector tells components apart.

        So small ones hide neither where the neurons of the largest lie nor that they lie nowhere.
        """
        if not part.all() and 2 * self.degree[part].sum() > self.degree.sum():
            self.degree[~part] = 0
            self._weigh()

    def distances(self, firsts: Int64Array) -> tuple[Int32Array, Int32Array, int]:
        """Return (int32[N], int32[N], last): distance to the nearest of some neurons, which one, one farthest off."""
        return distances(*self._ways, firsts)

    def centred(self, x: FloatArray) -> FloatArray:
        """Return float64[N] without the mean at each depth."""
        depth = self.network.depth
        return x - self.root * (np.bincount(depth, x * self.root) / self.weight)[depth]

    def product(self, x: FloatArray) -> FloatArray:
        """Return the product with float64[N], centred. O(W)."""
        return self.centred(self.inverse * neighbour_sums(*self._into, self.inverse * x))


def with_twin(
    product: Callable[[FloatArray], FloatArray], values: FloatArray, vectors: FloatArray, most: int
) -> tuple[FloatArray, FloatArray]:
    """Return the two highest eigenvalues and vectors, given what one Krylov space has of them.

    That has one vector of each eigenvalue. A square picture has two; the other is found from a start of its own.
    """
    noise: FloatArray = np.random.default_rng(0).standard_normal(len(vectors[0]))
    start = product(noise)
    for known, steps in ((vectors, FEWEST), (vectors[:1], most)):
        start = _without(list(known), start)
        if _dot(start, start) < 1e-18:
            return values, vectors
        found, twin = lanczos(_apart(product, list(known)), start, steps, 1)
        if found[0] <= values[1]:
            return values, vectors
        start = twin[0]
    return np.concatenate((values[:1], found)), np.concatenate((vectors[:1], twin))


def _apart(product: Callable[[FloatArray], FloatArray], known: list[FloatArray]) -> Callable[[FloatArray], FloatArray]:
    return lambda x: _without(known, product(x))


def lanczos(
    product: Callable[[FloatArray], FloatArray], start: FloatArray, most: int, count: int, give_up_below: float = -1.0
) -> tuple[FloatArray, FloatArray]:
    """Return the `count` highest eigenvalues and eigenvectors (in rows) that at most so many steps find.

    It ends early once they are close, or with an eigenvalue below `give_up_below` after FIRST_STEPS.
    """
    basis = np.empty((most, len(start)))
    basis[0] = start / np.sqrt(_dot(start, start))
    diagonal, off_diagonal = np.zeros(most), np.zeros(most)
    for k in range(most):
        y = product(basis[k])
        diagonal[k] = _dot(y, basis[k])
        y -= diagonal[k] * basis[k] + (off_diagonal[k - 1] * basis[k - 1] if k else 0)
        if k % ORTHOGONAL_EVERY < 2:  # once more, against rounding
            y -= np.einsum("kn,k->n", basis[: k + 1], np.einsum("kn,n->k", basis[: k + 1], y))
        off_diagonal[k] = np.sqrt(_dot(y, y))
        if k + 1 == FIRST_STEPS and tridiagonal(diagonal[: k + 1], off_diagonal[:k])[0][0] < give_up_below:
            break
        if off_diagonal[k] < 1e-10 or k + 1 == most or _close(diagonal, off_diagonal, k + 1, count):
            break
        basis[k + 1] = y / off_diagonal[k]
    values, vectors = tridiagonal(diagonal[: k + 1], off_diagonal[:k])
    return values[:count], np.einsum("kn,ck->cn", basis[: k + 1], vectors[:count])


def _from_cells(graph: _Graph, far: Int32Array) -> tuple[FloatArray, FloatArray]:
    """Return (quotients, float64[2, N]): nearly the eigenvectors, from cells of neurons near to some at random.

    Eigenvectors of the network with each cell drawn together (a Galerkin projection, so the quotients of what is
    constant on cells are the same), made smooth on the network itself. A step costs as much as there are pairs of cells
    with connections; smooth vectors change little within a cell (multilevel methods: Barnard and Simon 1994).
    """
    network, degree = graph.network, graph.degree
    touched = np.flatnonzero(graph.touched)
    cells = min(max(FEWEST_CELLS, len(touched) // PER_CELL), MOST_CELLS, len(touched))
    _, cell, _ = graph.distances(np.random.default_rng(0).choice(touched, cells, replace=False))
    reached = cell >= 0
    owner = np.maximum(cell, 0)

    def summed(values: FloatArray) -> FloatArray:
        return np.bincount(owner[reached], values[reached], cells).astype(np.float64, copy=False)

    inside = reached[network.sources]  # then its target is reached, too
    pairs, times = np.unique(
        owner[network.sources[inside]].astype(np.int64) * cells + owner[network.targets[inside]], return_counts=True
    )
    one, other = np.divmod(pairs, cells)
    root = np.sqrt(summed(degree))
    layers: list[FloatArray] = []  # orthonormal: what is constant at each depth
    for depth in range(len(graph.weight)):
        layer = summed(np.where(network.depth == depth, degree, 0.0)) / root
        layer = _without(layers, _without(layers, layer))
        if _dot(layer, layer) > 1e-12 * graph.weight[depth]:
            layers.append(layer / np.sqrt(_dot(layer, layer)))

    def product(x: FloatArray) -> FloatArray:
        x = _without(layers, x) / root  # on both sides: what rounding leaves there would grow without bound
        sums = np.bincount(one, times * x[other], cells) + np.bincount(other, times * x[one], cells)
        return _without(layers, sums / root)

    start = _without(layers, summed(graph.degree * far) / root)
    start += _without(
        layers, NOISE * np.sqrt(_dot(start, start) / cells) * np.random.default_rng(0).standard_normal(cells)
    )
    _, vectors = lanczos(product, start, STEPS, 2)
    smooth = [graph.centred(np.where(reached, graph.root * (vector / root)[owner], 0.0)) for vector in vectors]
    for _ in range(SMOOTHED):  # factors: the square of an eigenvalue q, then (1 + q) / 2 against those near to -1
        smooth = [graph.product(graph.product(x)) for x in smooth]
        smooth = [(x + graph.product(x)) / 2 for x in smooth]
    quotients = np.array([_dot(x, graph.product(x)) / max(_dot(x, x), 1e-300) for x in smooth])
    return quotients, np.array(smooth)


def _without(directions: list[FloatArray], x: FloatArray) -> FloatArray:
    """Return x without its parts along some orthonormal vectors."""
    for direction in directions:
        x = x - _dot(x, direction) * direction
    return x


def _dot(x: FloatArray, y: FloatArray) -> float:
    return float(np.einsum("n,n->", x, y))  # unlike BLAS, in one thread and the same everywhere


def _along_axes(embedding: FloatArray, touched: npt.NDArray[np.bool_]) -> FloatArray:
    """Return two coordinates turned so that each goes along an axis of the picture.

    In a square picture the two smoothest ones come in any mixture. A cosine along one axis spends most of its values
    near its ends, a mixture of two does not: so the turn with the least fourth moments is taken.
    """
    scaled = embedding / np.maximum(np.sqrt((embedding[touched] ** 2).mean(axis=0)), 1e-30)
    some = scaled[touched]
    some = some[:: max(1, len(some) // SAMPLED)]
    moments = [float((_turn(some, angle) ** 4).mean()) for angle in (0, np.pi / 8, np.pi / 4)]
    middle = (moments[0] + moments[2]) / 2  # over all angles they are middle + a cos 4 angle + b sin 4 angle
    return _turn(scaled, (np.arctan2(moments[1] - middle, moments[0] - middle) + np.pi) / 4)


def _turn(two: FloatArray, angle: float) -> FloatArray:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack((c * two[:, 0] + s * two[:, 1], c * two[:, 1] - s * two[:, 0]), axis=1)


def _close(diagonal: FloatArray, off_diagonal: FloatArray, n: int, count: int) -> bool:
    """Return whether the smoothest vectors are found, as far as n steps with a look can tell."""
    if n < FEWEST or n % CHECK_EVERY:
        return False
    values, vectors = tridiagonal(diagonal[:n], off_diagonal[: n - 1])
    error = off_diagonal[n - 1] * np.abs(vectors[:count, -1])
    return bool((error < CLOSE * np.maximum(1 - values[:count], 1e-12)).all())
