"""Hypothesis strategies for small networks of any shape: skips, isolated neurons, hidden neurons without inputs."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from traces.networks.network import Network


@st.composite
def dags(draw: st.DrawFn, max_neurons: int = 12, max_connections: int = 30) -> Network:
    """A network whose connections are stored in a random topological order of work."""
    n = draw(st.integers(2, max_neurons))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=max_connections, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    relabel = rng.permutation(n)
    sources = relabel[[a for a, _ in chosen]]
    targets = relabel[[b for _, b in chosen]]
    fed = np.bincount(targets, minlength=n)
    feeds = np.bincount(sources, minlength=n)
    some_start_is_hidden = draw(st.booleans())
    inputs = [
        x
        for x in range(n)
        if not fed[x] and (feeds[x] or not some_start_is_hidden) and (x % 3 or not some_start_is_hidden)
    ]
    outputs = [x for x in range(n) if fed[x] and (not feeds[x] or rng.random() < 0.2)]
    network = Network(sources, targets, n_neurons=n, inputs=inputs, outputs=outputs)
    return network.in_order(random_order(network, rng))


def random_order(network: Network, rng: np.random.Generator) -> np.ndarray:
    """Pick ready connections one by one, as plainly as possible."""
    waiting = network.in_degree.copy()
    left = list(range(network.n_connections))
    order = []
    while left:
        ready = [e for e in left if waiting[network.sources[e]] == 0]
        edge = ready[rng.integers(len(ready))]
        left.remove(edge)
        order.append(edge)
        waiting[network.targets[edge]] -= 1
    return np.array(order)
