"""The kernel of learned orders against the definition of its rule, and its bounds on any network."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags
from oracles.streaming_oracle import Stream, random_weights

from cython_ext.edges.streaming import Streaming
from reorder.base import check_order
from reorder.search.intervals import Items
from reorder.search.streaming import stream_items
from traces.work.network import Network


@settings(max_examples=150, deadline=None)
@given(dags(max_neurons=14, max_connections=40), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_every_choice_has_the_best_score(network: Network, slots: int, seed: int) -> None:
    items = Items(network)
    weights = random_weights(np.random.default_rng(seed))
    start, target = items.by_source
    depth = network.depth[items.items].astype(np.int32)
    early = int(slots * weights.early)
    run = Streaming(
        items.start, items.source, start, target, items.own, items.item, depth, slots, early,
        np.array(weights.stream), np.array(weights.factor), np.array(weights.open), 64, 8192, 1 << 20, record=True,
    )  # fmt: skip
    assert run.run(1 << 20)
    oracle = Stream(items, slots, weights, max(0, min(early, slots - 2)))
    for event in run.events.tolist():
        behind = oracle.open(event) if event >= 0 else oracle.stream(-1 - event)
        assert behind <= 1e-4, (event, behind)  # the kernel sums warmth in single precision
    opens, drops = run.state()
    assert opens.tolist() == oracle.opens and sorted(drops.tolist()) == sorted(oracle.drops)
    assert run.finished == len(items.items)


@settings(max_examples=100, deadline=None)
@given(dags(), st.integers(1, 8), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 250]))
def test_states_decode_to_orders(network: Network, slots: int, seed: int, spread: float) -> None:
    items = Items(network)
    state = stream_items(items, slots, random_weights(np.random.default_rng(seed), spread))
    assert state is not None
    rank = np.empty(len(items.items), np.int64)
    rank[state.drops] = np.arange(len(items.items))
    opened = np.argsort(state.opens)
    assert (opened <= rank + state.slots - 1).all()  # never more than that many at once
    search = items.search(state.slots)
    search.set_state(state.opens, state.drops)
    check_order(network, items.decode(search))
