"""Every ordering method on random networks: valid orders, honest counts; the annealing kernel against its oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.residency_oracle import Annealing, cost, intervals
from oracles.residency_oracle import anneal as annealed
from oracles.residency_oracle import carried as carried_by_oracle

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import Task, check_order
from reorder.edges.methods.natural import two_optimal
from reorder.edges.search.budget import Best, Budget, Scorer, in_batches
from reorder.edges.search.edge_moves import polish
from reorder.edges.search.intervals import Items
from reorder.edges.search.objectives import IOTerm, Objective
from reorder.order import order
from traces.networks.network import Network

ENGINE = ("output-stationary", "tiles", "residency", "auto")
MODEST = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Any acyclic network: skips, isolated neurons, hidden neurons without inputs, several components, few edges."""
    n = draw(st.integers(2, 30))
    density = draw(st.sampled_from((0.03, 0.1, 0.3, 0.8)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < density] or [(0, n - 1)]
    relabel = rng.permutation(n)
    s, t = np.array([(relabel[a], relabel[b]) for a, b in pairs]).T
    fed, feeds = np.isin(np.arange(n), t), np.isin(np.arange(n), s)
    lonely = ~fed & ~feeds
    inputs = np.flatnonzero(~fed & (feeds & (rng.random(n) < 0.8) | lonely))  # the rest: hidden, nothing comes in
    shuffle = rng.permutation(len(s))
    return Network(s[shuffle], t[shuffle], n, inputs, np.flatnonzero(fed & ~feeds))


@pytest.mark.parametrize("method", ENGINE)
@MODEST
@given(network=networks(), memory=st.integers(3, 14), policy=st.sampled_from(("min", "lru", "rr")))
def test_orders_are_valid_and_not_below_the_bound(method: str, network: Network, memory: int, policy: str) -> None:
    parameters = {"moves": 300} if method in ("residency", "auto") else {}
    found = order(network, method, memory=memory, policy=policy, seed=1, **parameters)
    check_order(network, found.edges)
    total = count_io(network, found, memory=memory, policy=policy).total
    assert total >= io_bounds(network).lower_total
    if found.curve:
        assert found.curve[-1][2] == total
    if method == "auto":
        plain = order(network, "two-optimal", memory=memory, policy=policy)
        assert total <= count_io(network, plain, memory=memory, policy=policy).total
    again = order(network, method, memory=memory, policy=policy, seed=1, **parameters)
    assert (again.edges == found.edges).all() and not found.truncated


@MODEST
@given(
    network=networks(),
    memory=st.integers(3, 14),
    policy=st.sampled_from(("min", "lru", "rr")),
    runs=st.sampled_from((0.0, 2.0)),
)
def test_edge_moves_never_lose(network: Network, memory: int, policy: str, runs: float) -> None:
    """Whatever the order they start from: a valid order of no higher value, which a recount confirms."""
    objective = Objective("weighted", runs, (IOTerm(),))
    task = Task(memory=memory, policy=policy, objective=objective, seed=2)
    best = Best(Scorer(network, task), Budget(), task)
    before = best.offer(order(network, "random-topological", memory=memory, seed=3).edges)
    polish(best, network, 200, math.inf)
    assert best.value <= before
    check_order(network, best.edges)
    assert best.value == objective.evaluate(network, best.edges, task)


@MODEST
@given(
    network=networks(),
    slots=st.integers(1, 8),
    seed=st.integers(0, 99),
    wide=st.booleans(),
    guided=st.sampled_from((0.0, 0.9)),
    moves=st.integers(0, 400),
)
def test_annealing_keeps_the_cost_the_oracle_finds(
    network: Network, slots: int, seed: int, wide: bool, guided: float, moves: int
) -> None:
    items = Items(network)
    search = items.search(slots, seed, wide)
    state = items.state_of(two_optimal(network, None, None).edges, slots)  # type: ignore[arg-type]
    search.set_state(state.opens, state.drops)
    search.tune(1.0, len(items.items), 0.4, 0.3, guided)
    search.run(moves)
    opens, drops = search.state()
    expected = cost(network, items.items[opens].tolist(), items.items[drops].tolist(), slots)
    assert expected is not None
    assert search.cost == search.refresh() == expected
    # In the model every resident item has a slot and one more is for streaming: MIN with M = P + 2 does no worse than
    # the model on reads; on writes it may differ by values it keeps or drops otherwise.
    order_found = items.decode(search)
    check_order(network, order_found)
    reads = count_io(network, order_found, memory=slots + 2).reads_neurons
    inputs = int((network.touched & (network.in_degree == 0)).sum())
    assert reads <= expected + len(items.items) + inputs
    # Each source that stays from a stage into the next saves a load, and nothing is loaded in its place.
    ranks = (items.items[opens].tolist(), items.items[drops].tolist())
    saved = carried_by_oracle(network, intervals(network, *ranks, slots), items.sources.tolist())
    order_carried = items.carried(search)
    check_order(network, order_carried)
    reads = count_io(network, order_carried, memory=slots + 2).reads_neurons
    assert reads <= expected - saved + len(items.items) + inputs


def test_a_source_stays_from_a_stage_into_the_next() -> None:
    """Two targets of two inputs each, M = 3: one target at a time, and the input used last is there for the other."""
    network = Network(np.array([0, 1, 0, 1]), np.array([2, 2, 3, 3]), 4, np.array([0, 1]), np.array([2, 3]))
    items = Items(network)
    search = items.search(1)
    search.set_state(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    order_plain, order_carried = items.decode(search), items.carried(search)
    assert network.sources[order_plain].tolist() == [0, 1, 0, 1]
    assert network.sources[order_carried].tolist() == [1, 0, 0, 1]
    assert [count_io(network, o, memory=3).reads_neurons for o in (order_plain, order_carried)] == [6, 5]


@pytest.mark.parametrize("wide", [False, True])
def test_sources_with_very_many_points_have_those_of_the_oracle(wide: bool) -> None:
    """Above some number they are found in a table by stage: else time grew with the square of a source's targets."""
    fed, own = np.arange(2, 152), np.full(150, 0)
    network = Network(np.concatenate(([0], own, own + 1)), np.concatenate(([1], fed, fed)), 152, [0], fed)
    items = Items(network)
    rng = np.random.default_rng(3)
    opens = np.concatenate(([0], 1 + rng.permutation(150)))
    state = items.state_of(items.edges[np.argsort(opens[items.target], kind="stable")], 2)
    search = items.search(2, 5, wide)
    search.set_state(state.opens, state.drops)
    start = [items.items[part].tolist() for part in (state.opens, state.drops)]
    assert search.cost == cost(network, *start, 2)
    search.tune(0.3, 151, 0.2, 0.2, scans=0.3)
    search.run(16)
    opens_now, drops_now = (items.items[part].tolist() for part in search.state())
    expected = annealed(network, *start, 2, Annealing(5, 0.3, (0.2, 0.2), 151, 16, 0.3))
    assert (search.cost, opens_now, drops_now) == expected


@MODEST
@given(
    network=networks(), slots=st.integers(1, 8), seed=st.integers(0, 99), temperature=st.sampled_from((0.0, 0.3, 1.0)),
    scans=st.sampled_from((0.0, 0.5, 1.0)),
)  # fmt: skip
def test_annealing_takes_the_moves_the_oracle_takes(
    network: Network, slots: int, seed: int, temperature: float, scans: float
) -> None:
    """The kernel counts only what a swap may change, and stops counting once the swap cannot be accepted any more."""
    items = Items(network)
    state = items.state_of(two_optimal(network, None, None).edges, slots)  # type: ignore[arg-type]
    search = items.search(slots, seed)
    search.set_state(state.opens, state.drops)
    longest = len(items.items)
    search.tune(temperature, longest, 0.2, 0.2, scans=scans)
    search.run(200)
    opens, drops = (items.items[part].tolist() for part in search.state())
    start = (items.items[part].tolist() for part in (state.opens, state.drops))
    expected = annealed(network, *start, slots, Annealing(seed, temperature, (0.2, 0.2), longest, 200, scans))
    assert (search.cost, opens, drops) == expected


@pytest.mark.parametrize(("wide", "slots"), [(False, 3), (False, 12), (True, 12)])
def test_early_points_of_sources_with_many_targets_follow_a_move(wide: bool, slots: int) -> None:
    """They are not found again but from where a move changed them (some are): moves stay those of the oracle."""
    from traces.generators.networks import uniform_layers

    network = uniform_layers([5, 180, 4], 0.85, seed=2)
    items = Items(network)
    state = items.state_of(two_optimal(network, None, None).edges, slots)  # type: ignore[arg-type]
    search = items.search(slots, 3, wide)
    search.set_state(state.opens, state.drops)
    search.tune(0.5, 60, 0.3, 0.3)
    search.run(250)
    opens, drops = (items.items[part].tolist() for part in search.state())
    start = (items.items[part].tolist() for part in (state.opens, state.drops))
    assert (search.cost, opens, drops) == annealed(network, *start, slots, Annealing(3, 0.5, (0.3, 0.3), 60, 250, 0.0))


@pytest.mark.parametrize("wide", [False, True])
def test_points_of_very_many_targets_after_a_move_are_those_found_anew(wide: bool) -> None:
    """Where a move changes many of them they are found in tables by stage; `refresh` finds all of them again."""
    n = 400
    fed, own = np.arange(2, 2 + n), np.zeros(n, int)
    network = Network(np.concatenate(([0], own, own + 1)), np.concatenate(([1], fed, fed)), 2 + n, [0], fed)
    items = Items(network)
    for slots, temperature in ((1, 30.0), (2, 300.0), (4, 300.0)):
        state = items.state_of(two_optimal(network, None, None).edges, slots)  # type: ignore[arg-type]
        after, anew = items.search(slots, 5, wide), items.search(slots, 5, wide)
        for search in (after, anew):
            search.set_state(state.opens, state.drops)
            search.tune(temperature, n, 0.45, 0.45)
        after.run(600)
        for _ in range(600):
            anew.run(1)
            anew.refresh()
        assert after.cost == anew.cost == after.refresh()
        assert [part.tolist() for part in after.state()] == [part.tolist() for part in anew.state()]


def test_lane_widths_agree() -> None:
    from traces.generators.networks import random_layered

    network = random_layered(3, 60, 0.2, seed=5)
    items = Items(network)
    results = []
    for wide in (False, True):
        search = items.search(20, 7, wide)
        state = items.state_of(two_optimal(network, None, None).edges, 20)  # type: ignore[arg-type]
        search.set_state(state.opens, state.drops)
        search.tune(0.5, 40, 0.3, 0.3, scans=0.5)
        results.append((search.run(20_000), search.refresh(), *(tuple(part) for part in search.state())))
    assert results[0] == results[1]


@MODEST
@given(network=networks(), width=st.integers(1, 12), seed=st.integers(0, 99))
def test_batches_of_sources(network: Network, width: int, seed: int) -> None:
    """Against plain Python: count stretches of one source, cut after every `width`, sort by where targets finish."""
    sources, targets = network.sources.astype(np.int32), network.targets.astype(np.int32)
    for method in ("random-topological", "output-stationary", "by-source"):
        edges = order(network, method, memory=6, seed=seed).edges
        finish = {int(targets[edge]): k for k, edge in enumerate(edges)}
        batches: list[list[int]] = []
        streamed = 0
        for k, edge in enumerate(edges.tolist()):
            if k == 0 or sources[edge] != sources[edges[k - 1]]:
                if streamed % width == 0:
                    batches.append([])
                streamed += 1
            batches[-1].append(edge)
        expected = [edge for batch in batches for edge in sorted(batch, key=lambda edge: finish[int(targets[edge])])]
        batched = in_batches(sources, targets, edges, width)
        assert batched.tolist() == expected
        check_order(network, batched)


def test_a_long_chain_pulls_more_finishes_than_one_move_may_change() -> None:
    """Every neuron of a chain finishes before the next, and all are open at once: one drop can hold up hundreds."""
    length = 600
    chain = np.arange(1, length)
    sources = np.concatenate((chain - 1, length + chain))  # each but the first has an input of its own as well
    inputs = [0, *range(length, 2 * length)]
    network = Network(sources, np.concatenate((chain, chain)), 2 * length, inputs, [length - 1])
    items = Items(network)
    search = items.search(length, 3)
    state = items.state_of(two_optimal(network, None, None).edges, length)  # type: ignore[arg-type]
    search.set_state(state.opens, state.drops)
    search.tune(3.0, length, 0.2, 0.8)
    search.run(20_000)
    opens, drops = search.state()
    assert not (np.array_equal(opens, state.opens) and np.array_equal(drops, state.drops))
    assert search.cost == cost(network, items.items[opens].tolist(), items.items[drops].tolist(), length)
    assert search.cost == search.refresh()
