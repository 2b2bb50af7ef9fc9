"""Sweeps and what they stand on: coordinates, orders along a rank, opens that fit their slots."""

import heapq
import itertools
import random
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_networks import local_network
from oracles.random_networks import dags
from oracles.strips_oracle import plan_order

from cython_ext.edges.geometry import tridiagonal
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import Task, check_order
from reorder.edges.methods.ranked import WAYS
from reorder.edges.search import locality as spectrum
from reorder.edges.search import plans
from reorder.edges.search.budget import Best, Budget, Scorer
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import coordinates, neuron_coordinates
from reorder.edges.search.plans import changes, plan_search
from reorder.edges.search.strips import DepthGroup, Strips, linked, on_rows
from reorder.order import order
from traces.generators.networks import random_layered
from traces.networks.network import Network


@settings(max_examples=80, deadline=None)
@given(dags(), st.integers(0, 2**32 - 1))
def test_orders_along_any_rank_are_topological(network: Network, seed: int) -> None:
    rank = np.random.default_rng(seed).permutation(network.n_neurons)
    items = Items(network)
    orders = {name: check_order(network, make(items, rank)) for name, make in WAYS.items()}
    targets = network.targets[orders["follow"]].tolist()
    assert len(set(targets)) == 1 + sum(a != b for a, b in itertools.pairwise(targets))  # one run each
    used_up = orders["push"]
    sources = network.sources[used_up].tolist()
    assert len(set(sources)) == 1 + sum(a != b for a, b in itertools.pairwise(sources))  # once each


@settings(max_examples=80, deadline=None)
@given(dags(), st.integers(1, 6))
def test_opens_are_the_latest_that_fit(network: Network, slots: int) -> None:
    items = Items(network)
    n = len(items.items)
    edges = np.arange(network.n_connections)
    state = items.state_of(edges, slots)
    position = np.empty(len(edges), np.int64)
    position[edges] = np.arange(len(edges))
    first = np.minimum.reduceat(position[items.edges], items.start[:-1])
    wish = np.empty(n, np.int64)
    wish[np.argsort(first)] = np.arange(n)
    waiting: list[tuple[int, int]] = []
    next_drop = n - 1
    for rank in range(n - 1, -1, -1):
        while next_drop >= 0 and next_drop + slots - 1 >= rank:
            heapq.heappush(waiting, (-int(wish[state.drops[next_drop]]), int(state.drops[next_drop])))
            next_drop -= 1
        assert heapq.heappop(waiting)[1] == state.opens[rank]


def test_coordinates_find_the_picture() -> None:
    network = local_network(16, [3, 3, 3], 0.8, seed=2)
    items = Items(network)
    found = coordinates(items)
    assert found is not None and (found == coordinates(Items(network))).all()
    apart = np.linalg.norm(found[network.sources] - found[network.targets], axis=1)
    rng = np.random.default_rng(1)
    others = np.linalg.norm(found[rng.permutation(network.sources)] - found[network.targets], axis=1)
    assert np.median(apart) < 0.25 * np.median(others)


def with_strays(network: Network, pairs: int) -> Network:
    """Return a network with pairs of neurons beside it that nothing else is connected to."""
    n = network.n_neurons
    sources, targets = n + np.arange(0, 2 * pairs, 2), n + np.arange(1, 2 * pairs, 2)
    return Network(
        np.concatenate((sources, network.sources)), np.concatenate((targets, network.targets)),
        n_neurons=n + 2 * pairs, inputs=np.concatenate((network.inputs, sources)),
        outputs=np.concatenate((network.outputs, targets)),
    )  # fmt: skip


def test_strays_beside_a_network_do_not_hide_where_its_neurons_lie() -> None:
    network = local_network(16, [3, 3, 3], 0.8, seed=2)
    alone, beside = coordinates(Items(network)), coordinates(Items(with_strays(network, 3)))
    assert alone is not None and beside is not None
    for k in range(2):
        assert abs(np.corrcoef(alone[:, k], beside[: network.n_neurons, k])[0, 1]) > 0.99


def test_strays_beside_a_network_do_not_make_it_local() -> None:
    network = random_layered(4, 150, 0.05, seed=1)
    assert coordinates(Items(network)) is None
    assert coordinates(Items(with_strays(network, 3))) is None


@settings(max_examples=80, deadline=None)
@given(dags(), st.randoms(use_true_random=False), st.data())
def test_distances_to_the_nearest_of_some_neurons(network: Network, random: random.Random, data: st.DataObject) -> None:
    firsts = random.sample(range(network.n_neurons), data.draw(st.integers(1, network.n_neurons)))
    distance, nearest, last = spectrum._Graph(Items(network)).distances(np.array(firsts))
    beside: list[set[int]] = [set() for _ in range(network.n_neurons)]
    for a, b in zip(network.sources.tolist(), network.targets.tolist(), strict=True):
        beside[a].add(b)
        beside[b].add(a)
    own = {}  # by each of them alone
    for k, first in enumerate(firsts):
        reached, edge = {first: 0}, [first]
        while edge:
            for u in edge:
                reached.update({v: reached[u] + 1 for v in beside[u] if v not in reached})
            edge = [v for v in reached if reached[v] == reached[edge[0]] + 1]
        own[k] = reached
    for v in range(network.n_neurons):
        least = min((reached[v] for reached in own.values() if v in reached), default=-1)
        assert distance[v] == least
        assert own[nearest[v]][v] == least if least >= 0 else nearest[v] == -1
    assert distance[last] == distance.max()


@pytest.mark.parametrize("side", [8, 12])
def test_both_coordinates_of_a_square_grid_are_found(side: int) -> None:
    """Its two smoothest vectors have one eigenvalue, and a Krylov space has one vector of each."""
    y, x = np.divmod(np.arange(side * side), side)
    near = np.abs(y[:, None] - y) + np.abs(x[:, None] - x) <= 1
    t, s = np.nonzero(near)
    n, steps = side * side, 4
    ends = [np.concatenate([k * n + end for k in range(steps)]) for end in (s, t + n)]
    inputs, outputs = np.arange(n), np.arange(steps * n, (steps + 1) * n)
    network = Network(*ends, n_neurons=(steps + 1) * n, inputs=inputs, outputs=outputs)
    found = coordinates(Items(network))
    assert found is not None
    alike = np.abs(np.corrcoef(*(np.stack(each) for each in ((found[:n, 0], found[:n, 1]), (y, x))))[:2, 2:])
    assert (np.sort(alike.max(axis=0)) > 0.95).all() and set(alike.argmax(axis=0)) == {0, 1}


@pytest.mark.parametrize("strides", [None, [1, 2, 1]])
def test_coordinates_from_cells_are_nearly_the_same(strides: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    network = local_network(24, [4, 4, 4, 6], 0.5, seed=4, strides=strides)
    exact = coordinates(Items(network))
    monkeypatch.setattr(spectrum, "LARGE", 0)
    monkeypatch.setattr(spectrum, "FEWEST_CELLS", 256)
    items = Items(network)
    found = coordinates(items)
    assert exact is not None and found is not None and (found == coordinates(Items(network))).all()
    ranks = [np.argsort(np.argsort(x[network.touched], axis=0), axis=0) for x in (exact, found)]
    alike = np.abs(np.corrcoef(*(r.T for r in ranks))[:2, 2:])
    assert (np.sort(alike.max(axis=0)) > 0.98).all() and set(alike.argmax(axis=0)) == {0, 1}
    assert coordinates(Items(random_layered(4, 300, 0.1, seed=1))) is None


@pytest.mark.parametrize(("points", "steps"), [(1000, 30), (1500, 16)])
def test_wide_stencils_have_locality(points: int, steps: int) -> None:
    """What rounding left of the means at each depth grew to values above 1: no coordinates, the order of the file."""
    here = np.arange(points)
    sources = np.concatenate([k * points + (here + d) % points for k in range(steps) for d in (-1, 0, 1)])
    targets = np.concatenate([(k + 1) * points + here for k in range(steps) for _ in range(3)])
    n = points * (steps + 1)
    new = np.random.default_rng(0).permutation(n)
    network = Network(new[sources], new[targets], n_neurons=n, inputs=new[:points], outputs=new[-points:])
    found = coordinates(Items(network))
    assert found is not None
    around = np.stack([turn(2 * np.pi * here / points) for turn in (np.cos, np.sin)], axis=1)
    middle = found[new[steps // 2 * points :][:points], 0]  # the smoothest on a circle: a turned cosine
    left = middle - around @ np.linalg.lstsq(around, middle, rcond=None)[0]
    assert np.linalg.norm(left) < 0.2 * np.linalg.norm(middle)


def test_plans_of_large_networks_are_known_however_little_time_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    network = local_network(20, [4] * 4, 0.6, seed=9)
    monkeypatch.setattr(plans, "LARGE", 0)
    task = Task(60)
    best = Best(Scorer(network, task), Budget(None), task)
    search = plan_search(Items(network), 60)
    assert search is not None
    search.fused(best, lambda tried: tried >= 1)
    assert search.has_single_depths and {len(plan) for plan in search.values} == {1, 3}
    assert check_order(network, best.edges) is not None and best.value == min(search.values.values())


def test_random_layers_have_no_coordinates_and_little_time_is_spent_on_them() -> None:
    assert coordinates(Items(random_layered(4, 300, 0.1, seed=1))) is None
    network = random_layered(3, 100, 0.2, seed=1)
    assert order(network, "sweep", memory=30).parameters["way"] == "none"


def test_convolutions_with_room_for_a_front_reach_the_bound() -> None:
    network = local_network(14, [3, 4, 4], 0.7, seed=5)
    widest = 4 * 14 * 14
    found = order(network, "sweep", memory=widest // 2 + 100)
    assert count_io(network, found, memory=widest // 2 + 100).total == io_bounds(network).lower_total
    assert found.parameters["way"] in WAYS


@settings(max_examples=80, deadline=None)
@given(dags(), st.integers(0, 2**32 - 1))
def test_plans_are_swept_as_their_definition_says(network: Network, seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = Items(network)
    strips = Strips(items, rng.random((network.n_neurons, 2)), 60)
    plan, first = [], 1
    while first <= strips.deepest:
        last = int(rng.integers(first, strips.deepest + 1))
        slant = float(rng.choice([0, 1 / 16, 1 / 4]))
        across, late, turns, *back = (int(x) for x in rng.integers(2, size=5))
        early = float(rng.choice((0.0, 0.25, 0.5, 1.0)))
        group = DepthGroup(first, last, int(rng.integers(1, 5)), across, early, slant, bool(late), bool(turns))
        lead = float(rng.choice([0.0, 0.25, 0.75, 1.0]))
        plan.append(replace(group, back=(bool(back[0]), bool(back[1])), lead=lead))
        first = last + 1
    order = check_order(network, strips.edges(tuple(plan)))
    assert order.tolist() == plan_order(strips, tuple(plan))
    for k in range(len(plan)):
        for other in changes(tuple(plan), k):
            assert [group.first for group in other] == [1, *(group.last + 1 for group in other[:-1])]
            assert other[-1].last == strips.deepest and all(g.first <= g.last and g.strips >= 1 for g in other)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_linked_groups_begin_where_the_one_before_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [
        DepthGroup(k, k, int(rng.integers(1, 5)), int(rng.integers(2)), turns=bool(rng.integers(2)))
        for k in range(1, 5)
    ]
    plan = linked(tuple(groups), (True, False))
    assert plan[0].back == (True, False)
    for one, two in itertools.pairwise(plan):
        way = one.turns and one.strips % 2 == 0
        end = {one.across: 1.0 if one.strips > 1 else 0.0, 1 - one.across: 0.0 if way else 1.0}
        corner = [1 - end[k] if one.back[k] else end[k] for k in range(2)]
        assert [1.0 if back else 0.0 for back in two.back] == corner
        assert replace(two, back=(False, False)) in groups


def test_plans_that_go_on_where_they_were_move_less() -> None:
    network = local_network(16, [4, 4, 4, 4], 0.6, seed=9)
    items = Items(network)
    found = neuron_coordinates(items)
    assert found is not None
    strips = Strips(items, found, 60)
    plan = tuple(DepthGroup(k, k, 3) for k in range(1, 4))
    turned = tuple(replace(group, turns=True) for group in plan)
    score = Scorer(network, Task(100))
    leaping, turning, going_on = (score(strips.edges(p)) for p in (plan, turned, linked(turned, (False, False))))
    assert going_on < turning < leaping


def test_a_first_strip_that_is_wider_pays() -> None:
    """No strip before it leaves values behind that have to stay or to be read again."""
    network = local_network(16, [4] * 3, 0.7, seed=5)
    strips = Strips(Items(network), neuron_coordinates(Items(network)), 60)
    score, lower = Scorer(network, Task(100)), io_bounds(network).lower_total
    even, wider = (
        score(strips.edges((DepthGroup(1, 2, 5, slant=1 / 16, turns=True, lead=lead),))) - lower for lead in (0.0, 0.5)
    )
    assert wider < 0.85 * even


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_tridiagonal_matrices_come_apart(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    diagonal, beside = rng.normal(size=n), rng.normal(size=n - 1) * rng.integers(0, 2, n - 1)
    values, vectors = tridiagonal(diagonal, beside)
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1], atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors.T, vectors.T * values, atol=1e-12)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(n), atol=1e-12)


def test_strided_and_thin_networks_have_their_picture_found_too() -> None:
    """Forty steps of Lanczos do not: their coordinates of such a network say little."""
    network = local_network(24, [3, 6, 6, 10, 10], 0.25, seed=3, strides=[2, 1, 1, 2])
    found = coordinates(Items(network))
    assert found is not None
    apart = np.linalg.norm(found[network.sources] - found[network.targets], axis=1)
    rng = np.random.default_rng(1)
    others = np.linalg.norm(found[rng.permutation(network.sources)] - found[network.targets], axis=1)
    assert np.median(apart) < 0.25 * np.median(others)


def test_a_small_memory_fuses_some_layers_in_strips() -> None:
    """With room for two of six layers' fronts, groups of layers beat one sweep over all of them by far."""
    network = local_network(16, [4] * 7, 0.6, seed=11)
    lower = io_bounds(network).lower_total
    items = Items(network)
    plans = plan_search(items, 60)
    assert plans is not None
    for policy in ("min", "lru", "rr"):
        found = order(network, "sweep", memory=256, policy=policy)
        ranks = np.argsort(np.argsort(plans.strips.coordinate[0]))
        plain = min(count_io(network, make(items, ranks), memory=256, policy=policy).total for make in WAYS.values())
        left = count_io(network, found, memory=256, policy=policy).total - lower
        assert left < 0.6 * (plain - lower)
        assert found.parameters["way"] == "strips" and found.parameters["groups"] > 1


def test_rows_of_a_picture_are_found() -> None:
    """Turned exactly along its axes, every row of a square picture lies together, and its edge with it."""
    network = local_network(16, [4] * 5, 0.6, seed=3)
    plans = plan_search(Items(network), 60)
    assert plans is not None
    for depth in range(6 - 1):
        at = np.flatnonzero((network.depth == depth) & network.touched)
        for place in plans.strips.coordinate[:, at]:
            rows, sizes = np.unique(place, return_counts=True)
            np.testing.assert_allclose(rows, (np.arange(16) + 0.5) / 16)
            assert (sizes == 64).all()


def test_rows_are_not_found_where_there_are_none() -> None:
    rng = np.random.default_rng(1)
    place = rng.random(960)
    assert on_rows(place) is place
    pairs = np.repeat(np.arange(12) / 12, 80) + rng.random(960) / 100  # 12 rows, two of them mixed
    pairs[80:160] -= 1 / 12
    assert on_rows(pairs) is pairs
    found = on_rows(np.repeat(np.arange(12) / 12, 80) + rng.random(960) / 100)
    np.testing.assert_allclose(np.unique(found), (np.arange(12) + 0.5) / 12)


def test_round_robin_reaches_the_bound_by_lines_that_go_on_beyond_the_edges(monkeypatch) -> None:
    """Where the front of all layers fits, first in first out needs values to come and go in one exact order."""
    network = local_network(16, [4] * 6, 0.6, seed=11)
    memory = 28 * 34 + 4
    monkeypatch.setattr(Budget, "clock", staticmethod(time.process_time))  # the machine may be busy
    found = order(network, "auto", memory=memory, policy="rr", time_limit_s=20)
    assert count_io(network, found, memory=memory, policy="rr").total == io_bounds(network).lower_total


def test_a_group_alone_counts_as_its_plan_and_plans_nearly_as_their_groups() -> None:
    network = local_network(12, [4, 4, 4, 4], 0.6, seed=2)
    plans = plan_search(Items(network), 60)
    assert plans is not None
    for policy in ("min", "lru", "rr"):
        task = Task(100, policy)
        best = Best(Scorer(network, task), Budget(), task)
        plans._parts.clear()
        whole = DepthGroup(1, 3, 3, slant=1 / 16)
        assert plans._part(whole, best) == best.score(plans.strips.edges((whole,)))
        parts = DepthGroup(1, 1, 2), DepthGroup(2, 3, 4, early=1.0)
        alone = sum(plans._part(group, best) for group in parts)
        together = best.score(plans.strips.edges(parts))
        assert abs(alone - together) <= 2 * task.memory  # what stays across the ends


def test_under_round_robin_twice_the_front_fits_where_targets_begin_half_way() -> None:
    network = local_network(16, [4] * 4, 0.6, seed=3)
    plans = plan_search(Items(network), 60)
    assert plans is not None
    task = Task(290, "rr")
    score, lower = Scorer(network, task), io_bounds(network).lower_total
    extra = {early: score(plans.strips.edges(tuple(DepthGroup(d, d, early=early) for d in (1, 2, 3)))) - lower
             for early in (0.0, 0.5, 1.0)}  # fmt: skip
    assert extra[0.5] < 0.8 * min(extra[0.0], extra[1.0])


def test_deep_networks_with_locality_are_swept_as_a_whole() -> None:
    network = local_network(6, [2] * 70, 0.5, seed=2)
    found = order(network, "sweep", memory=40)
    assert found.parameters["way"] in (*WAYS, "strips") and found.parameters.get("groups", 1) == 1
