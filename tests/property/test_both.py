"""Tuple orders that leave I/Os alone: the windows against a plain simulation, the promise by recount."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from reorder.joint.io_neutral import order_both, still_windows
from reorder.joint.pareto import pareto_orders, undominated
from traces.base.errors import InputError
from traces.generators.networks import random_layered

quick = settings(max_examples=25, deadline=None)
cases = st.tuples(
    st.integers(0, 10**6),
    st.integers(3, 30),
    st.sampled_from(("min", "rr", "lru")),
    st.sampled_from(("literal", "pin_both")),
)


def network_and_order(seed):
    network = random_layered(3, 12, 0.4, seed=seed)
    method = ("two-optimal", "by-source", "random-topological")[seed % 3]
    return network, ew.order(network, method, memory=10, seed=seed).edges


@quick
@given(cases)
def test_any_permutation_inside_still_windows_keeps_every_io(case):
    """The claim proved in reorder.joint.io_neutral for MIN and RR, tried with random permutations."""
    seed, memory, policy, pinning = case
    network, edges = network_and_order(seed)
    kind = dict(memory=memory, policy=policy, pinning=pinning)
    bounds = still_windows(network, edges, **kind)
    assert bounds[0] == 0 and bounds[-1] == len(edges)
    rng = np.random.default_rng(seed)
    moved = edges.copy()
    for a, b in pairwise(bounds):
        assert len(set(network.targets[edges[a:b]])) <= 1
        moved[a:b] = rng.permutation(moved[a:b])
    if policy != "lru":
        assert ew.count_io(network, moved, **kind) == ew.count_io(network, edges, **kind)


@quick
@given(cases, st.booleans())
def test_both_orders_keep_runs_and_ios(case, spare_runs):
    seed, memory, policy, pinning = case
    network, edges = network_and_order(seed)
    kind = dict(memory=memory, policy=policy, pinning=pinning)
    got = order_both(network, edges, value_format="fp16", effort=0.1, spare_runs=spare_runs, **kind)
    before, after = (ew.count_io(network, e, **kind) for e in (edges, got.edges))
    assert (got.before.reads, got.before.writes) == (before.reads, before.writes)
    assert (got.after.reads, got.after.writes) == (after.reads, after.writes)
    assert after.reads <= before.reads and after.writes <= before.writes
    if policy != "lru" and not spare_runs:
        assert (after.reads, after.writes) == (before.reads, before.writes)
    assert (network.targets[got.edges] == network.targets[edges]).all()
    assert got.after.ones <= got.before.ones or not spare_runs


def test_pareto_orders_do_not_dominate_each_other():
    network, edges = network_and_order(1)
    other = ew.order(network, "two-optimal", memory=8).edges
    found = pareto_orders(network, {"given": edges, "two": other}, memory=8, value_format="int8", effort=0.1, rounds=30)
    for a in found:
        assert ew.count_io(network, a.edges, memory=8).total == a.io
        for b in found:
            assert a is b or any(x < y for x, y in zip(a.costs, b.costs, strict=True))
    both = order_both(network, edges, memory=8, value_format="int8", effort=0.1)
    assert min(p.ones for p in found) < both.before.ones
    assert len(undominated([*found, *found])) == len(found)
    with pytest.raises(InputError, match="not all 0"):
        pareto_orders(network, {"given": edges}, memory=8, value_format="int8", weights=[(0, 0, 0)])
    with pytest.raises(InputError, match="at least one edge ordering"):
        pareto_orders(network, {}, memory=8, value_format="int8")
