"""Inference by the definition: one connection after the other, exact numbers, one input vector at a time."""

from fractions import Fraction
from typing import Any

import numpy as np

from traces.networks.network import Network


def neurons(network: Network, edges: Any, batch: np.ndarray) -> list[list[Fraction]]:
    """Return what every neuron holds, exactly, after Algorithm 1 of Gleinig et al. 2023 in the given order.

    Neurons without incoming connections that are not inputs are activated when they are loaded; their sum is empty.
    """
    biases = np.zeros(network.n_neurons) if network.biases is None else network.biases
    left = network.in_degree.tolist()
    vectors = []
    for row in batch.tolist():
        held = [Fraction(float(b)) for b in biases]
        sums = [Fraction(0)] * network.n_neurons
        inputs = set(network.inputs.tolist())
        for neuron in range(network.n_neurons):
            if left[neuron] == 0 and neuron not in inputs and (network.touched | network.is_output)[neuron]:
                held[neuron] = _finished(network, neuron, Fraction(0), held[neuron])
        for neuron, value in zip(network.inputs.tolist(), row, strict=True):
            held[neuron] = Fraction(value)
        waiting = list(left)
        for e in np.asarray(edges).tolist():
            a, b = int(network.sources[e]), int(network.targets[e])
            assert waiting[a] == 0, "not a topological order"
            sums[b] += Fraction(float(network.weights[e])) * held[a]
            waiting[b] -= 1
            if waiting[b] == 0:
                held[b] = _finished(network, b, sums[b], held[b])
        vectors.append(held)
    return vectors


def _finished(network: Network, neuron: int, total: Fraction, bias: Fraction) -> Fraction:
    if network.activation == "clipped-relu":
        return Fraction(0) if total == 0 else min(max(total + bias, Fraction(0)), Fraction(32))
    if network.activation == "relu" and not network.is_output[neuron]:
        return max(total + bias, Fraction(0))
    return total + bias


def int8_neurons(network: Network, edges: Any, batch: np.ndarray, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (stored bytes int64[B, N], sums int64[B, N]) of the 8-bit network `q`, whose weights are in the order
    `edges`: whole numbers in plain Python, rounding half to even by float32 as the definition says."""
    stored = np.tile(q.zero.astype(np.int64), (len(batch), 1))
    sums = np.zeros((len(batch), network.n_neurons), np.int64)
    quantized = np.rint(batch.astype(np.float64) / q.scale[network.inputs]) + q.zero[network.inputs]
    stored[:, network.inputs] = np.clip(quantized, 0, 255)
    biases = np.zeros(network.n_neurons) if network.biases is None else network.biases
    for neuron in np.flatnonzero(network.in_degree == 0).tolist():
        if neuron not in network.inputs:
            value = float(biases[neuron])
            if network.activation == "relu" and not network.is_output[neuron]:
                value = max(value, 0.0)
            u = np.rint(value / float(q.scale[neuron])) + q.zero[neuron]
            stored[:, neuron] = np.clip(u, 0, 255)
    left = network.in_degree.copy()
    sums[:] = q.start
    for k, e in enumerate(np.asarray(edges).tolist()):
        a, b = int(network.sources[e]), int(network.targets[e])
        sums[:, b] += int(q.weights[k]) * stored[:, a]
        left[b] -= 1
        if left[b] == 0:
            relu = network.activation == "relu" and not network.is_output[b]
            x = np.clip(sums[:, b].astype(np.float32) * q.multiplier[b], np.float32(-1024), np.float32(1024))
            u = np.rint(x).astype(np.int64) + int(q.zero[b])
            stored[:, b] = np.clip(u, q.zero[b] if relu else 0, 255)
    return stored, sums
