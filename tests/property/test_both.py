"""Tuple orders that leave I/Os alone: the windows against a plain simulation, the promise by recount."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewatt as ew
from reorder.joint import io_neutral_windows, order_jointly
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
def test_any_permutation_inside_io_neutral_windows_keeps_every_io(case):
    """The claim proved in reorder.joint for MIN and RR, tried with random permutations."""
    seed, memory, policy, pinning = case
    network, edges = network_and_order(seed)
    kind = dict(memory=memory, policy=policy, pinning=pinning)
    bounds = io_neutral_windows(network, edges, **kind)
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
def test_joint_orders_keep_runs_and_ios(case, spare_runs):
    seed, memory, policy, pinning = case
    network, edges = network_and_order(seed)
    kind = dict(memory=memory, policy=policy, pinning=pinning)
    got = order_jointly(network, edges, value_format="fp16", effort=0.1, spare_runs=spare_runs, **kind)
    before, after = (ew.count_io(network, e, **kind) for e in (edges, got.edges))
    assert (got.before.reads, got.before.writes) == (before.reads, before.writes)
    assert (got.after.reads, got.after.writes) == (after.reads, after.writes)
    assert after.reads <= before.reads and after.writes <= before.writes
    if policy != "lru" and not spare_runs:
        assert (after.reads, after.writes) == (before.reads, before.writes)
    assert (network.targets[got.edges] == network.targets[edges]).all()
    assert got.after.ones <= got.before.ones or not spare_runs


@quick
@given(cases)
def test_a_configuration_reorders_tuples_without_further_ios(case):
    seed, memory, policy, pinning = case
    run = {
        "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 12, "density": 0.4, "seed": seed}},
        "fast_memory": {"size": memory, "policy": policy, "pinning": pinning},
        "orderings": ["by-source"],
        "strides": ["none", {"kind": "greedy", "stride": "io-neutral"}],
        "measure": "io",
    }
    plain, joint = (one.results["io"] for one in ew.run(run))
    assert joint["reads"] <= plain["reads"] and joint["writes"] <= plain["writes"]
    assert joint["runs"] == plain["runs"]
