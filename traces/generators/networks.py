"""Synthetic networks. Topologies follow the papers; weights, biases and inputs are random and say nothing of accuracy.

Topology and numbers come from separate streams of one seed. Weights are normal with variance 2 / in-degree, biases
normal with deviation 0.1, inputs uniform in [0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from traces.base.errors import InputError
from traces.generators.generator import at_least, check_density, check_size, check_widths, checked_seed, generator
from traces.networks.network import Network

Int64Array = npt.NDArray[np.int64]
BATCH_ROWS = 16


@generator
def random_layered(
    n_layers: int, width: int, density: float, seed: int = 0, *, n_outputs: int = 1, name: str = "random-layered"
) -> Network:
    """Return a random layered network (Gleinig et al. 2023, Appendix A).

    `n_layers` layers of `width` neurons, the first being the inputs, then `n_outputs` output neurons. Each neuron
    but outputs feeds k randomly chosen neurons of the next layer, k uniform in 1 to max(1, ceil(2 * density * n - 1))
    for a next layer of n. Hidden neurons may stay without incoming connections. Stored by layer, target, source.
    The rule ends near half of all connections. Raises InputError beyond, where uniform_layers goes on.
    """
    check_density(density)
    n_layers, width = at_least("n_layers", n_layers, 1), at_least("width", width, 1)
    n_outputs = at_least("n_outputs", n_outputs, 1)
    cells = (n_layers - 1) * width * width + width * n_outputs
    n_neurons = n_layers * width + n_outputs
    check_size(n_neurons, max(n_neurons - n_outputs, round(density * cells)))
    sizes = [width] * n_layers + [n_outputs]
    topology = np.random.default_rng((checked_seed(seed), 0))
    pairs = []
    for n_in, n_out in pairwise(sizes):
        # round: 2 * 0.07 * 500 is a little more than 70 in binary, which would add one to the upper end
        most = max(1, math.ceil(round(2 * density * n_out - 1, 9)))
        if most > n_out > 1:
            reached = (n_out + 1) / (2 * n_out)
            raise InputError(
                f"density {density:g} is out of reach of Appendix A's rule, which ends at {reached:.3g} for layers of "
                f"{n_out}: use uniform-layers"
            )
        most = min(most, n_out)  # a single output is fed by every neuron before it
        pairs.append(_choose_targets(topology, topology.integers(1, most, n_in, endpoint=True), n_out))
    return _layered(sizes, pairs, seed, name)


@generator
def uniform_layers(widths: Sequence[int], density: float, seed: int = 0, *, name: str = "uniform-layers") -> Network:
    """Return layers that each hold round(density * n_in * n_out) connections (at least 1), drawn uniformly.

    widths: neurons per layer, inputs first. Stored by layer, target, source. Raises InputError for a bad width.
    """
    check_density(density)
    widths = check_widths(widths)
    check_size(sum(widths), round(density * sum(a * b for a, b in pairwise(widths))))
    topology = np.random.default_rng((checked_seed(seed), 0))
    pairs = []
    for n_in, n_out in pairwise(widths):
        cells = topology.choice(n_in * n_out, max(1, round(density * n_in * n_out)), replace=False, shuffle=False)
        pairs.append((cells // n_out, cells % n_out))
    return _layered(widths, pairs, seed, name)


@generator
def bert_ffn(density: float = 0.1, seed: int = 0, *, hidden: int = 1024, inner: int = 4096) -> Network:
    """Return a random network of the shape of BERT-large's feed-forward block, 1024-4096-1024 (no trained weights).

    hidden, inner: the widths. density: the share of connections. Raises InputError for a density beyond 0 to 1.
    """
    return uniform_layers([hidden, inner, hidden], density, seed, name="random-bert-ffn")


@generator
def compact_growth(
    m_g: int, iterations: int = 1000, in_degree: int = 5, seed: int = 0, *, name: str = "compact-growth"
) -> Network:
    """Return a network that inference can run with memory m_g and minimal I/Os (Gleinig et al. 2023, Appendix B).

    The bag starts with m_g - 2 inputs. Each of `iterations` adds a neuron fed by `in_degree` random neurons of the bag
    and takes the last of these out. At the end one output neuron is fed by all that are left. The stored order of the
    connections, that of their creation, is the minimal one. Raises InputError for numbers that do not fit together.
    """
    size = at_least("m_g", m_g, 3) - 2
    iterations, in_degree = at_least("iterations", iterations, 0), at_least("in_degree", in_degree, 1)
    if in_degree > size:
        raise InputError(f"in_degree {in_degree} needs m_g of at least {in_degree + 2}: the bag holds m_g - 2 neurons")
    check_size(size + iterations + 1, iterations * in_degree + size)
    # A partial Fisher-Yates shuffle of the bag per iteration: the first `in_degree` slots are the chosen ones.
    slots = np.arange(in_degree)
    drawn = np.random.default_rng((checked_seed(seed), 0)).integers(slots, size, size=(iterations, in_degree)).tolist()
    bag = list(range(size))
    sources = np.empty((iterations, in_degree), np.int64)
    for step, picks in enumerate(drawn):
        for slot, pick in enumerate(picks):
            bag[slot], bag[pick] = bag[pick], bag[slot]
        sources[step] = bag[:in_degree]
        bag[in_degree - 1] = size + step  # the last chosen one leaves, the new neuron takes its place
    n = size + iterations + 1
    targets = np.concatenate((np.repeat(np.arange(size, n - 1), in_degree), np.full(size, n - 1)))
    network = Network(
        np.concatenate((sources.reshape(-1), np.sort(bag))),
        targets,
        n,
        inputs=np.arange(size),
        outputs=np.array([n - 1]),
        name=name,
    )
    return _with_numbers(network, seed)


def _layered(sizes: Sequence[int], pairs: Sequence[tuple[Int64Array, Int64Array]], seed: int, name: str) -> Network:
    first = np.concatenate(([0], np.cumsum(sizes)))
    sources, targets = [], []
    for k, (source, target) in enumerate(pairs):
        order = np.argsort(target * sizes[k] + source)
        sources.append(source[order] + first[k])
        targets.append(target[order] + first[k + 1])
    network = Network(
        np.concatenate(sources),
        np.concatenate(targets),
        n_neurons=int(first[-1]),
        inputs=np.arange(sizes[0]),
        outputs=np.arange(first[-2], first[-1]),
        layer=np.repeat(np.arange(len(sources)), [len(part) for part in sources]),
        name=name,
    )
    return _with_numbers(network, seed)


def _with_numbers(network: Network, seed: int) -> Network:
    rng = np.random.default_rng((checked_seed(seed), 1))
    deviation = np.sqrt(2 / np.maximum(network.in_degree, 1))
    weights = rng.normal(0, deviation[network.targets])
    biases = np.where(network.in_degree > 0, rng.normal(0, 0.1, network.n_neurons), 0)
    return network.with_(weights=weights, biases=biases, batch=rng.random((BATCH_ROWS, len(network.inputs))))


def _choose_targets(rng: np.random.Generator, counts: Int64Array, n: int) -> tuple[Int64Array, Int64Array]:
    """Return (sources, targets): source i with counts[i] different targets out of n, every set equally likely."""
    left_out = counts > n // 2
    target = np.where(left_out, n - counts, counts)
    drawn = np.empty(0, np.int64)  # source * n + target
    missing = target
    while missing.any():
        source = np.repeat(np.arange(len(counts)), missing)
        drawn = np.unique(np.concatenate((drawn, source * n + rng.integers(0, n, len(source)))))
        missing = target - np.bincount(drawn // n, minlength=len(counts))
    inverted = np.flatnonzero(left_out)
    if inverted.size:
        every = (inverted[:, None] * n + np.arange(n)).reshape(-1)
        drawn = np.concatenate((drawn[~left_out[drawn // n]], np.setdiff1d(every, drawn, assume_unique=True)))
    return drawn // n, drawn % n
