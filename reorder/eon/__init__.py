"""EON, the edge ordering network of Kamatar 2023, section 3.2.2: reinforcement learning of an order for one network.

A state is the order so far and an LRU cache of neurons, an action a connection of the frontier (those whose source is
done), the reward minus the cache misses of its source and target. Needs PyTorch (extra `learn`).
"""
