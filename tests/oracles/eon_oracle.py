"""EON's world once more, plainly: one order, lists, an LRU cache as a list of neurons."""


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
