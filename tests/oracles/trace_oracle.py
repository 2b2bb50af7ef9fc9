"""A plain forward pass over named arrays: which element is touched when, with what value; no addresses, no chunks."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from traces.networks.network import COMPILED_ACTIVATIONS, Network


def walk(network, edges, weights, sample, *, kind="tuples", registers=True):
    """Yield (stream, what, is_store, value): what is ("tuple", k), ("neuron", n), ("value", k), ("id", k), ...

    Structure loads (row pointers) are left out. weights: float32[W] as decoded. Values are float32.
    """
    sources, targets = network.sources[edges].tolist(), network.targets[edges].tolist()
    held = {n: np.float32(0 if network.biases is None else network.biases[n]) for n in range(network.n_neurons)}
    for n in np.flatnonzero(network.in_degree == 0).tolist():
        held[n] = activated(network, n, held[n])
    for n, value in zip(network.inputs.tolist(), sample, strict=True):
        held[n] = np.float32(value)
    left = network.in_degree.copy()
    last_source = last_target = None
    for k, (s, t) in enumerate(zip(sources, targets, strict=True)):
        if kind == "tuples":
            yield "tuples", ("tuple", k), 0, weights[edges[k]]
        else:
            yield "ids", ("id", k), 0, s
            if kind == "coo":
                yield "ids", ("row", k), 0, t
            yield "values", ("value", k), 0, weights[edges[k]]
        if s != last_source or not registers:
            yield "inputs", ("neuron", s), 0, held[s]
        if t != last_target or not registers:
            yield "partial_sums", ("neuron", t), 0, held[t]
        held[t] = np.float32(held[t] + np.float32(weights[edges[k]] * held[s]))
        left[t] -= 1
        last_source, last_target = s, t
        if left[t] == 0:
            held[t] = activated(network, t, held[t])
            yield "outputs", ("neuron", t), 1, held[t]
        elif not registers or targets[k + 1] != t:
            yield "partial_sums", ("neuron", t), 1, held[t]


def activated(network, neuron, value):
    if network.activation == "clipped-relu":
        bias = np.float32(0 if network.biases is None else network.biases[neuron])
        return np.float32(0) if value == bias else np.float32(min(max(value, 0), 32))
    if network.activation == "relu" and not network.is_output[neuron]:
        return np.float32(max(value, 0))
    return value


def random_network(rng, *, whole_numbers=False, activation="relu"):
    """A random acyclic network with skip connections, dead ends and isolated neurons."""
    n = int(rng.integers(4, 24))
    pairs = np.argwhere(np.triu(rng.random((n, n)) < rng.uniform(0.1, 0.6), 1))
    if not len(pairs):
        pairs = np.array([[0, n - 1]])
    relabel = rng.permutation(n)
    sources, targets = relabel[pairs].T
    fed, feeds = np.isin(np.arange(n), targets), np.isin(np.arange(n), sources)
    draw = (lambda *shape: rng.integers(-2, 3, shape)) if whole_numbers else (lambda *shape: rng.standard_normal(shape))
    return Network(
        sources,
        targets,
        n_neurons=n,
        inputs=np.flatnonzero(~fed & feeds),
        outputs=np.flatnonzero(fed & ~feeds),
        weights=draw(len(pairs)).astype(np.float32),
        biases=draw(n).astype(np.float32),
        activation=activation,
        batch=draw(3, int((~fed & feeds).sum())).astype(np.float32),
    )


def topological_order(network, rng, *, rows):
    """A random topological order; with `rows`, all connections into a neuron side by side."""
    rank = np.empty(network.n_neurons, int)
    rank[np.lexsort((rng.random(network.n_neurons), network.depth))] = np.arange(network.n_neurons)
    if rows:
        return np.lexsort((rng.random(network.n_connections), rank[network.targets]))
    return np.lexsort((rng.random(network.n_connections), network.depth[network.targets]))


networks = st.builds(
    lambda seed, activation: (np.random.default_rng(seed), activation),
    st.integers(0, 2**32),
    st.sampled_from(COMPILED_ACTIVATIONS),
)


def small_network(**changes):
    """Inputs 0, 1; hidden 2, 3, 4 (3 is fed by nothing); output 5."""
    given = {
        "sources": [0, 1, 1, 2, 4],
        "targets": [2, 2, 4, 5, 5],
        "n_neurons": 6,
        "inputs": [0, 1],
        "outputs": [5],
        "weights": [1, 2, -3, 4, 5],
        "biases": [0, 0, 1, 7, 2, 3],
        "layer": [0, 0, 0, 1, 1],
        "batch": [[1, 2], [3, -4]],
    }
    return Network(**(given | changes))
