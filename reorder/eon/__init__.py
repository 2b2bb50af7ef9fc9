"""EON, the edge ordering network of Kamatar 2023, section 3.2.2: reinforcement learning of an order for one network. A
state is the order so far and an LRU cache of neurons, an action a connection of the frontier, the reward minus misses.
"""
