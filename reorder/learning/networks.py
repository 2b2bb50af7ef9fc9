"""Networks to train on: small ones of many shapes, so that weights carry over to other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import ceil, exp, log

import numpy as np

from traces.base.errors import unknown_name
from traces.generators.networks import random_layered, uniform_layers
from traces.networks.network import Network

MOST_CONNECTIONS = 12_000  # of a network: some milliseconds a run
WIDTHS = (100, 150, 200, 300, 400)


def local_network(
    side: int, channels: list[int], kept: float, seed: int, *, strides: list[int] | None = None
) -> Network:
    """Return pruned 3 x 3 convolutions unrolled on a square of `side` pixels, zero padded; ids shuffled in each layer.

    channels: of each layer, the input first. kept: share of the kernels' weights that stay, at least one a channel.
    """
    rng = np.random.default_rng(seed)
    strides = strides or [1] * (len(channels) - 1)
    sizes, edges = [(side, channels[0])], []
    for (n_in, n_out), stride in zip(pairwise(channels), strides, strict=True):
        before = sizes[-1][0]
        after = ceil(before / stride)
        kernel = rng.random((n_out, n_in, 3, 3)) < kept
        kernel[np.arange(n_out), rng.integers(n_in, size=n_out), 1, 1] = True
        o, i, dy, dx = (part[:, None, None] for part in np.nonzero(kernel))
        y, x = np.arange(after)[None, :, None], np.arange(after)[None, None, :]
        from_y, from_x = y * stride + dy - 1, x * stride + dx - 1
        inside = (from_y >= 0) & (from_y < before) & (from_x >= 0) & (from_x < before)
        source = (from_y * before + from_x) * n_in + i
        target = (y * after + x) * n_out + o
        edges.append((source[inside], np.broadcast_to(target, inside.shape)[inside]))
        sizes.append((after, n_out))
    counts = [width * width * depth for width, depth in sizes]
    first = np.concatenate(([0], np.cumsum(counts)))
    names = [start + rng.permutation(count) for start, count in zip(first[:-1].tolist(), counts, strict=True)]
    sources = np.concatenate([names[k][s] for k, (s, _) in enumerate(edges)])
    targets = np.concatenate([names[k + 1][t] for k, (_, t) in enumerate(edges)])
    by_target = np.lexsort((sources, targets))
    n = int(first[-1])
    outputs = np.arange(first[-2], n)
    network = Network(
        sources[by_target], targets[by_target], n, np.arange(first[1]), outputs[np.isin(outputs, targets)],
        name="local",
    )  # fmt: skip
    return network


def _layers(rng: np.random.Generator, density: Callable[[int], float], low: float, high: float) -> tuple[Network, int]:
    width, layers = int(rng.choice(WIDTHS)), int(rng.integers(2, 5))
    share, seed = density(width), int(rng.integers(1 << 30))
    kind = int(rng.integers(3))
    if kind == 0:
        network = random_layered(layers, width, share, seed=seed)
    else:
        widths = (
            [width] * (layers + 1) if kind == 1 else [int(width * rng.choice([0.5, 1, 2])) for _ in range(layers + 1)]
        )
        network = uniform_layers(widths, share, seed)
    slots = width / exp(rng.uniform(log(low), log(high)))
    return network, int(np.clip(slots, 10, 240)) + 2


def _local(rng: np.random.Generator) -> tuple[Network, int]:
    side = int(rng.integers(8, 15))
    channels = [int(rng.integers(1, 5)) for _ in range(int(rng.integers(3, 6)))]
    strides = [int(rng.choice([1, 1, 2])) for _ in channels[1:]]
    network = local_network(side, channels, rng.uniform(0.3, 0.8), int(rng.integers(1 << 30)), strides=strides)
    widest = int(np.bincount(network.depth).max())
    return network, max(12, int(widest * rng.uniform(0.1, 0.7)))


KINDS: dict[str, Callable[[np.random.Generator], tuple[Network, int]]] = {
    "mixed": lambda rng: _layers(rng, lambda width: exp(rng.uniform(log(0.02), log(0.25))), 1.7, 9.0),
    "dense": lambda rng: _layers(rng, lambda width: exp(rng.uniform(log(0.05), log(0.2))), 2.5, 9.0),
    "sparse": lambda rng: _layers(rng, lambda width: rng.uniform(1.5, 12) / width, 2.5, 9.0),
    "roomy": lambda rng: _layers(rng, lambda width: exp(rng.uniform(log(0.02), log(0.2))), 1.2, 2.2),
    "local": _local,
}


def generated(kind: str, seed: int, count: int) -> list[tuple[Network, int]]:
    """Return `count` networks of a kind with a memory size each: 'mixed', 'dense', 'sparse', 'roomy' or 'local'."""
    if kind not in KINDS:
        raise unknown_name("kind of training networks", kind, KINDS)

    def drawn() -> Iterator[tuple[Network, int]]:
        rng = np.random.default_rng((seed, sorted(KINDS).index(kind)))
        while True:
            network, memory = KINDS[kind](rng)
            if 300 <= network.n_connections <= MOST_CONNECTIONS:
                yield network, memory

    source = drawn()
    return [next(source) for _ in range(count)]
