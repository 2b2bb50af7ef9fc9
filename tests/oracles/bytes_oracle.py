"""Which rows move in int8, and with what bytes: whole numbers in plain Python, one step after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Access = tuple[str, int, int, bytes]
"""Stream, neuron, whether it is a store, what it carries."""


class Values:
    """Bytes and sums of all neurons of one pass; `quantized` has a weight for each connection of the network."""

    def __init__(self, network, quantized, vectors):
        self.network, self.q, self.lanes = network, quantized, len(vectors)
        q, n = quantized, network.n_neurons
        biases = np.zeros(n, np.float32) if network.biases is None else network.biases
        real = np.tile(biases.astype(np.float64), (self.lanes, 1))
        real[:, network.inputs] = vectors
        stored = np.clip(np.rint(real / q.scale) + q.zero, 0, 255).astype(int)
        self.held = stored.T.tolist()
        self.sums = [[int(start)] * self.lanes for start in q.start]
        self.left = network.in_degree.tolist()

    def add(self, k):
        """Execute connection k; return whether it was its target's last."""
        network, q = self.network, self.q
        a, b = int(network.sources[k]), int(network.targets[k])
        assert self.left[a] == 0, "not a topological order"
        self.sums[b] = [s + int(q.weights[k]) * u for s, u in zip(self.sums[b], self.held[a], strict=True)]
        self.left[b] -= 1
        if self.left[b]:
            return False
        relu = network.activation == "relu" and not network.is_output[b]
        x = np.clip(np.array(self.sums[b], np.float32) * q.multiplier[b], np.float32(-1024), np.float32(1024))
        u = np.rint(x).astype(int) + int(q.zero[b])
        self.held[b] = np.clip(u, q.zero[b] if relu else 0, 255).tolist()
        return True

    def value(self, neuron):
        return bytes(self.held[neuron])

    def sum(self, neuron):
        return b"".join(s.to_bytes(4, "little", signed=True) for s in self.sums[neuron])


def accesses(network, edges, quantized, vectors, *, registers=True) -> Iterator[Access]:
    """The rows that an engine loads and stores in one pass."""
    now, last_source, last_target = Values(network, quantized, vectors), None, None
    pairs = [(int(network.sources[e]), int(network.targets[e])) for e in edges]
    for k, (a, b) in enumerate(pairs):
        if a != last_source or not registers:
            yield "inputs", a, 0, now.value(a)
        if b != last_target or not registers:
            yield "partial_sums", b, 0, now.sum(b)
        last_source, last_target = a, b
        if now.add(int(edges[k])):
            yield "outputs", b, 1, now.value(b)
        elif not registers or pairs[k + 1][1] != b:
            yield "partial_sums", b, 1, now.sum(b)


def transfers(network, edges, quantized, vectors, moves) -> Iterator[Access]:
    """The rows that a scratchpad loads and stores in one pass: moves are (step, neuron, kind), kind 0 a load."""
    now, waiting = Values(network, quantized, vectors), list(moves)
    for k in range(len(edges) + 1):
        while waiting and waiting[0][0] <= k:
            _, neuron, kind = waiting.pop(0)
            if now.left[neuron]:
                yield "partial_sums", neuron, int(kind != 0), now.sum(neuron)
            else:
                yield ("outputs" if kind else "inputs"), neuron, int(kind != 0), now.value(neuron)
        if k < len(edges):
            now.add(int(edges[k]))
