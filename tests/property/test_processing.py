"""Checking an order and laying its connections out: against the obvious way, and what is kept with an order."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import networks

import traces.networks.processing as work
from hwmodel.fastmemory.iomodel import count_io
from reorder.base import Ordering
from traces.base.errors import InputError
from traces.networks.checks import check_order
from traces.networks.network import Network

POLICIES = ("lru", "rr", "min")


def is_valid(network: Network, order: list[int]) -> bool:
    """Section II: a permutation in which every connection into a neuron comes before those out of it."""
    if sorted(order) != list(range(network.n_connections)):
        return False
    done: set[int] = set()
    for edge in order:
        into = np.flatnonzero(network.targets == network.sources[edge])
        if not done.issuperset(into.tolist()):
            return False
        done.add(edge)
    return True


@given(networks(), st.randoms(use_true_random=False), st.sampled_from(("topological", "any", "damaged")))
def test_an_order_is_taken_where_it_is_valid(network, random, kind):
    order = list(range(network.n_connections))
    random.shuffle(order)
    if kind == "topological":
        order.sort(key=lambda edge: network.depth[network.targets[edge]])
    elif kind == "damaged":
        order[random.randrange(len(order))] = random.choice((-1, len(order), 2**40, -(2**62), order[0]))
    if not is_valid(network, order):
        with pytest.raises(InputError, match="order"):
            work.processing(network, order)
        with pytest.raises(InputError, match="order"):
            check_order(network, order)
        for policy in POLICIES:  # checked while it is counted
            with pytest.raises(InputError, match="order"):
                count_io(network, order, memory=3, policy=policy)
        return
    found = work.processing(network, order)
    assert found.sources.tolist() == network.sources[order].tolist()
    assert found.targets.tolist() == network.targets[order].tolist()
    assert found.runs == 1 + np.count_nonzero(np.diff(found.targets))
    assert check_order(network, order).tolist() == order
    for policy in POLICIES:
        in_one_pass = count_io(network, order, memory=3, policy=policy)
        assert in_one_pass == count_io(network, Ordering(np.array(order), "given"), memory=3, policy=policy)


@pytest.mark.parametrize("n", [1, 127, 128, 129, 256, 257, 1023, 1024, 1025, 1153, 2048])
def test_an_order_of_many_blocks_is_counted_as_one_that_is_laid_out(n):
    """It is taken block by block, the ends of the next one asked for while one is counted."""
    rng = np.random.default_rng(n)
    pairs = rng.choice(60 * 60, n, replace=False)
    network = Network(pairs % 60, 60 + pairs // 60, 120, range(60), range(60, 120))
    order = rng.permutation(n)
    for policy in POLICIES:
        for pinning in ("literal", "pin_both"):
            kind = {"memory": 11, "policy": policy, "pinning": pinning}
            assert count_io(network, order.copy(), **kind) == count_io(network, Ordering(order.copy(), "given"), **kind)
        for at in (0, n // 2, n - 1):
            twice = [] if n == 1 else [order[at - 1]]
            for wrong in (-1, n, 2**40, -(2**62), *twice):
                damaged = order.copy()
                damaged[at] = wrong
                with pytest.raises(InputError, match="order"):
                    count_io(network, damaged, memory=11, policy=policy)


@given(networks())
def test_the_own_order_is_that_of_the_indices(network):
    indices = np.arange(network.n_connections)
    if not is_valid(network, indices):
        with pytest.raises(InputError, match="topological"):
            work.processing(network, None)
        return
    own, same = work.processing(network, None), work.processing(network, indices)
    assert (own.sources == same.sources).all() and (own.targets == same.targets).all() and own.runs == same.runs
    assert work.processing(network, None) is own


def test_what_is_kept_goes_with_the_order_and_cannot_be_stale():
    small = Network([0, 1, 0, 2, 3], [2, 2, 3, 4, 4], 5, [0, 1], [4])
    order = np.argsort(small.depth[small.targets], kind="stable")
    ordering = Ordering(order, "given")
    first = work.processing(small, ordering)
    assert work.processing(small, ordering) is first
    order[:] = 0  # the caller's array is the caller's
    assert count_io(small, ordering, memory=3) == count_io(small, np.asarray(ordering.edges), memory=3)
    with pytest.raises(ValueError, match="read-only"):
        ordering.edges[0] = 1
    other = small.with_(name="other")
    assert work.processing(other, ordering) is not first  # it was checked against another network
    kept = len(work._laid_out)
    del ordering, first
    gc.collect()
    assert len(work._laid_out) < kept


def test_an_array_given_again_is_laid_out_once_and_never_stale():
    rng = np.random.default_rng(0)
    pairs = rng.choice(60 * 60, 900, replace=False)
    network = Network(pairs % 60, 60 + pairs // 60, 120, range(60), range(60, 120))
    array = rng.permutation(900)
    counts = [count_io(network, array, memory=11, policy="lru") for _ in range(2)]  # seen, then laid out
    assert work.processing(network, array) is work.processing(network, array)
    for policy in POLICIES:
        assert count_io(network, array, memory=11, policy=policy) == count_io(
            network, array.tolist(), memory=11, policy=policy
        )
    assert counts[0] == counts[1] == count_io(network, array, memory=11, policy="lru")
    assert work.processing(network, array.copy()) is not work.processing(network, array)  # the last one is known
    for _ in range(3):
        work.processing(network, array)
    for _ in range(4):  # and now it changes: every entry of it is looked at at every call
        array[[0, 899]] = array[[899, 0]]
        moved = count_io(network, array, memory=11, policy="lru")
        assert moved == count_io(network, array.tolist(), memory=11, policy="lru")
    assert work.known_processing(network, array) is None  # what changes is not laid out
    array = array.copy()
    for _ in range(3):
        count_io(network, array, memory=11)
    array[5] = array[6]
    for _ in range(2):
        with pytest.raises(InputError, match="permutation"):
            count_io(network, array, memory=11)
    kept = len(work._given)
    del network
    gc.collect()
    assert len(work._given) < kept
