"""The forward pass as one would do it by hand: exact rational sums, one neuron after another."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from traces.networks.network import Network


def forward_by_hand(network: Network, inputs: list[float]) -> list[float]:
    """Activations of all neurons for one input vector; each is rounded once to float32."""
    assert network.weights is not None
    biases = [0.0] * network.n_neurons if network.biases is None else [float(b) for b in network.biases]
    incoming: list[list[tuple[int, float]]] = [[] for _ in range(network.n_neurons)]
    for source, target, weight in zip(network.sources, network.targets, network.weights, strict=True):
        incoming[target].append((int(source), float(weight)))
    known: dict[int, float] = {int(n): float(np.float32(x)) for n, x in zip(network.inputs, inputs, strict=True)}
    outputs = set(network.outputs.tolist())

    def value(neuron: int) -> float:
        if neuron not in known:
            known[neuron] = compute(neuron)
        return known[neuron]

    def compute(neuron: int) -> float:
        z = sum((Fraction(value(source)) * Fraction(weight) for source, weight in incoming[neuron]), Fraction(0))
        with_bias = z + Fraction(biases[neuron])
        if network.activation == "clipped-relu":
            with_bias = Fraction(0) if z == 0 else min(max(with_bias, Fraction(0)), Fraction(32))
        elif network.activation == "relu" and neuron not in outputs:
            with_bias = max(with_bias, Fraction(0))
        return float(np.float32(float(with_bias)))

    return [value(neuron) for neuron in range(network.n_neurons)]
