"""EON's world once more, plainly: one order, lists, an LRU cache as a list of neurons."""

import math

import numpy as np


class World:
    def __init__(self, network, capacity):
        self.sources, self.targets = network.sources.tolist(), network.targets.tolist()
        self.left = network.in_degree.tolist()
        self.frontier = {edge for edge, source in enumerate(self.sources) if self.left[source] == 0}
        self.cache, self.capacity = [], capacity

    def step(self, edge):
        self.frontier.remove(edge)
        misses = 0
        for neuron in (self.sources[edge], self.targets[edge]):
            if neuron in self.cache:
                self.cache.remove(neuron)
            else:
                misses += 1
            self.cache = [neuron, *self.cache][: self.capacity]
        target = self.targets[edge]
        self.left[target] -= 1
        if self.left[target] == 0:
            self.frontier |= {e for e, source in enumerate(self.sources) if source == target}
        return misses


def policy(parameters, features, sources, targets, frontier, cache):
    """EON's network by its description (Kamatar 2023, Figure 2): (probabilities of the frontier's connections, value).

    One connection and one neuron at a time, every map on its own; arrays by name as a checkpoint holds them.
    """
    p = {name: np.asarray(each, np.float64) for name, each in parameters.items()}

    def linear(name, x):
        return p[f"{name}.weight"] @ x + p[f"{name}.bias"]

    def softmax(scores):
        scores = np.exp(np.array(scores) - max(scores))
        return scores / scores.sum()

    edges = [linear("edge", np.concatenate([features[sources[e]], features[targets[e]]])) for e in frontier]
    nodes = [linear("node", features[x].astype(np.float64)) for x in cache]
    scale = 1 / math.sqrt(len(p["empty"]))
    attended = []
    for x in edges:
        weights = softmax([scale * linear("query", x) @ linear("key", y) for y in edges])
        mixed = linear("mixed", sum(w * linear("value", y) for w, y in zip(weights, edges, strict=True)))
        y = x + mixed
        normed = (y - y.mean()) / np.sqrt(y.var() + 1e-5)
        attended.append(normed * p["norm.weight"] + p["norm.bias"])
    keys = [linear("offers", x) for x in nodes] + [p["empty"]]
    logits = [max(scale * linear("asks", x) @ key for key in keys) for x in attended]
    looks = softmax([scale * linear("seen_key", x) @ p["sentinel"] for x in attended + nodes])
    seen = sum(w * linear("seen_value", x) for w, x in zip(looks, attended + nodes, strict=True))
    return softmax(logits), float(linear("critic_out", np.tanh(linear("critic", seen)))[0])
