"""EON's compiled world against the oracle, and its misses against the I/O model: on any network, any legal order."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.eon_oracle import World
from oracles.trace_oracle import networks, random_network

import edgewatt as ew
from cython_ext.eon.frontier import Frontiers


def world_of(network, count, capacity):
    by_source = np.argsort(network.sources, kind="stable").astype(np.int64)
    start = np.concatenate(([0], np.cumsum(network.out_degree))).astype(np.int64)
    ends = (np.ascontiguousarray(a, np.int64) for a in (network.sources, network.targets, network.in_degree))
    return Frontiers(*ends, start, by_source, count, capacity)


@settings(max_examples=60, deadline=None)
@given(networks, st.integers(2, 9), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_any_walk_is_that_of_the_oracle_and_of_the_io_model(made, capacity, count, seed):
    rng, activation = made
    network = random_network(rng, activation=activation)
    world, draw = world_of(network, count, capacity), np.random.default_rng(seed)
    for _ in range(2):  # the second time after a reset
        world.reset()
        plain = [World(network, capacity) for _ in range(count)]
        edges, misses = [], np.zeros(count, np.int64)
        for _ in range(network.n_connections):
            for b, one in enumerate(plain):
                assert set(world.frontier[b, : world.size[b]].tolist()) == one.frontier
                assert [x for x in world.cache[b].tolist() if x >= 0] == one.cache
            taken, missed = world.step((draw.random(count) * world.size).astype(np.int64))
            assert [one.step(int(edge)) for one, edge in zip(plain, taken, strict=True)] == missed.tolist()
            edges.append(taken)
            misses += missed
        assert (world.size == 0).all()
        for b, order in enumerate(np.array(edges).T):
            counted = ew.count_io(network, order, memory=capacity + 1, policy="lru")
            assert counted.reads - network.n_connections == misses[b]
