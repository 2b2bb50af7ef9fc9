"""The kernel of learned orders against the definition of its rule, and its bounds on any network."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags
from oracles.residency_oracle import carried as saved_loads
from oracles.residency_oracle import intervals
from oracles.streaming_oracle import Stream, random_weights

from cython_ext.edges.intervals import carried, grouped, latest_opens
from cython_ext.edges.streaming import _Streaming
from reorder.base import check_order
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Budget
from reorder.edges.search.intervals import IntervalState, Items
from reorder.edges.search.streaming import Ends, Rival, completed, shipped_weights, stream_items, streaming_of
from traces.generators.networks import random_layered
from traces.networks.network import Network


@settings(max_examples=150, deadline=None)
@given(dags(max_neurons=14, max_connections=40), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_every_choice_has_the_best_score(network: Network, slots: int, seed: int) -> None:
    items = Items(network)
    weights = random_weights(np.random.default_rng(seed))
    start, target = items.by_source
    depth = network.depth[items.items].astype(np.int32)
    early = int(slots * weights.early)
    run = _Streaming(
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
@given(dags(), st.integers(1, 8), st.integers(1, 4), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_bounded_looks_leave_nothing_out(network: Network, slots: int, window: int, credit: int, seed: int) -> None:
    items = Items(network)
    weights = random_weights(np.random.default_rng(seed))
    start, target = items.by_source
    run = _Streaming(
        items.start, items.source, start, target, items.own, items.item,
        network.depth[items.items].astype(np.int32), slots, int(slots * weights.early), np.array(weights.stream),
        np.array(weights.factor), np.array(weights.open), window, 2, credit,
    )  # fmt: skip
    asked = iter(range(10**6))
    while not run.run(3, lambda: next(asked) % 3 == 2):  # an answer of yes ends a call, not the run
        assert run.finished < len(items.items)
    for part in run.state():
        assert sorted(part) == list(range(len(items.items)))


@settings(max_examples=150, deadline=None)
@given(dags(max_neurons=14, max_connections=40), st.integers(1, 4))
def test_sources_stay_as_the_oracle_lets_them(network: Network, slots: int) -> None:
    items = Items(network)
    state = items.state_of(two_optimal_order(network), slots)
    search = items.search(slots)
    search.set_state(state.opens, state.drops)
    opened, finish, drop = (stages.astype(np.int32) for stages in search.intervals)
    start, target = items.by_source
    release = np.where(items.item >= 0, drop[items.item], 0).astype(np.int32)
    stage, place = np.divmod(carried(start, opened[target], finish[target], release, len(items.items)), 4)
    assert (opened[target] <= stage).all() and (stage <= finish[target]).all()
    source = np.repeat(np.arange(len(release)), np.diff(start))
    assert ((place == 3) == (opened[target] <= release[source])).all()
    loads = set(zip(source[place != 3].tolist(), stage[place != 3].tolist(), strict=True))
    stays = {(s, k) for s, k, at in zip(source.tolist(), stage.tolist(), place.tolist(), strict=True) if at == 0}
    assert len(stays) == len({k for _, k in stays})  # one from each stage
    ranks = items.items[state.opens].tolist(), items.items[state.drops].tolist()
    saved = saved_loads(network, intervals(network, *ranks, slots), items.sources.tolist())
    assert len(stays) == saved and len(loads - stays) <= search.cost - saved


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40), st.randoms(use_true_random=False))
def test_grouped_is_a_stable_sort(keys: list[int], shuffle: random.Random) -> None:
    array = np.array(keys, np.int32)
    assert grouped(array, 7).tolist() == np.argsort(array, kind="stable").tolist()
    first = list(range(len(keys)))
    shuffle.shuffle(first)
    found = grouped(array, 7, np.array(first, np.int32))
    assert found.tolist() == sorted(first, key=lambda place: keys[place])
    with pytest.raises(ValueError, match=r"key 7 is not in \[0, 7\)"):
        grouped(np.array([*keys, 7], np.int32), 7)


@pytest.mark.parametrize("groups", [4096, 4097, 70_000, 1 << 25, 2**31 - 1])
def test_grouped_by_digits_is_a_stable_sort(groups: int) -> None:
    rng = np.random.default_rng(groups)
    keys = rng.integers(0, groups, 300_000).astype(np.int32)
    keys[:3] = 0, groups - 1, groups - 1
    assert np.array_equal(grouped(keys, groups), np.argsort(keys, kind="stable"))
    first = rng.permutation(len(keys)).astype(np.int32)
    assert np.array_equal(grouped(keys, groups, first), first[np.argsort(keys[first], kind="stable")])
    assert np.array_equal(grouped(np.sort(keys), groups), np.arange(len(keys)))
    keys[7] = -1
    with pytest.raises(ValueError, match="key -1 is not in"):
        grouped(keys, groups)


def test_a_run_that_falls_behind_is_given_up() -> None:
    items = Items(random_layered(3, 80, 0.1, seed=1))
    good, bad = shipped_weights()[0], random_weights(np.random.default_rng(3))
    rival = Rival()
    assert stream_items(items, 20, good, Ends(rival=rival)) is not None
    known = list(rival.loads)
    assert known[-1] > known[1] > 0 and rival.finished[-1] == len(items.items)
    assert stream_items(items, 20, bad, Ends(rival=rival)) is None and rival.loads == known
    assert stream_items(items, 20, bad) is not None


@settings(max_examples=100, deadline=None)
@given(dags(), st.integers(1, 8), st.integers(0, 2**32 - 1), st.sampled_from([0, 1, 250]))
def test_states_decode_to_orders(network: Network, slots: int, seed: int, spread: float) -> None:
    items = Items(network)
    state = stream_items(items, slots, random_weights(np.random.default_rng(seed), spread))
    assert state is not None
    check_state(items, state)


@settings(max_examples=150, deadline=None)
@given(dags(), st.integers(1, 8), st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_what_was_done_until_a_limit_is_completed(network: Network, slots: int, seed: int, sources: int) -> None:
    items = Items(network)
    slots = min(slots, len(items.items))
    run = streaming_of(items, slots, random_weights(np.random.default_rng(seed), 1))
    run.run(sources)
    opened, finished = (part.copy() for part in run.so_far)
    state = completed(items, slots, opened, finished)
    assert list(state.drops[: len(finished)]) == list(finished)
    if len(finished) == len(items.items):
        assert list(state.opens) == list(opened)
    check_state(items, state)


def test_a_limit_in_the_middle_of_a_pass_keeps_what_it_found() -> None:
    """Passes over a million connections take most of a second: a limit before their end once left two-optimal."""
    network = random_layered(3, 300, 0.2, seed=1)
    items = Items(network)
    whole = stream_items(items, 98, shipped_weights()[0])
    run = streaming_of(items, 98, shipped_weights()[0])
    costs = []
    while not run.run(100):
        state = completed(items, 98, *run.so_far)
        costs.append(items.search(98).cost_of(state))
    natural = items.search(98).cost_of(items.state_of(two_optimal_order(network), 98))
    assert whole is not None and len(costs) > 5
    assert items.search(98).cost_of(whole) < costs[-1] < costs[0] < natural
    over = Budget(1e-9)
    assert stream_items(items, 98, shipped_weights()[0], Ends(over, cut=True)) is not None


def check_state(items: Items, state: IntervalState) -> None:
    """Whether a state is two permutations, never holds more than its slots, and decodes to a valid order."""
    network = items.network
    assert sorted(state.opens) == sorted(state.drops) == list(range(len(items.items)))
    rank = np.empty(len(items.items), np.int64)
    rank[state.drops] = np.arange(len(items.items))
    opened = np.argsort(state.opens)
    assert (opened <= rank + state.slots - 1).all()  # never more than that many at once
    search = items.search(state.slots)
    search.set_state(state.opens, state.drops)
    check_order(network, items.decode(search))


def test_numbers_beyond_all_slots_and_groups_are_as_many_as_can_be() -> None:
    """Sums and shifts left 64 bits: reads before an array."""
    drops, wish = np.array([2, 0, 1], np.int32), np.array([1, 0, 2], np.int32)
    assert np.array_equal(latest_opens(drops, wish, 2**63 - 1), latest_opens(drops, wish, 3))
    keys, last_first = np.zeros(1 << 19, np.int32), np.arange((1 << 19) - 1, -1, -1, dtype=np.int32)
    assert np.array_equal(grouped(keys, 2**62, last_first), last_first)
