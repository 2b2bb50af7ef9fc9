"""Networks with locality to test on: pruned convolutions."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

import numpy as np

from traces.networks.network import Network


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
