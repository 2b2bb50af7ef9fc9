"""A plain forward pass over named arrays: which element is touched when, with what value; no addresses, no chunks."""

from __future__ import annotations

import numpy as np


def walk(network, edges, weights, sample, *, kind="tuples", registers=True):
    """Yield (stream, what, is_store, value): what is ("tuple", k), ("neuron", n), ("value", k), ("id", k), ...

    Structure loads (row pointers) are left out. weights: float32[W] as decoded. Values are float32.
    """
    sources, targets = network.sources[edges].tolist(), network.targets[edges].tolist()
    held = {n: np.float32(0 if network.biases is None else network.biases[n]) for n in range(network.n_neurons)}
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
