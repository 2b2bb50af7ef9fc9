"""Hubs, fans and chains: constructions stay near-linear and limits hold, counted in CPU seconds."""

import time
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from orderbench import instances

import reorder.edges.bounds.bounds as bounds
import reorder.edges.bounds.paths as paths
import reorder.edges.methods.auto as auto
import reorder.edges.search.initial_states as initial_states
import reorder.edges.search.locality as locality
from edgewatt import count_io
from edgewatt.operators.words import describe_banks
from reorder.base import Task
from reorder.edges.bounds.bounds import expansion_extra, stay_costs
from reorder.edges.methods.residency import default_moves
from reorder.edges.search.base_orders import two_optimal_order
from reorder.edges.search.budget import Best, Budget
from reorder.edges.search.intervals import Items
from reorder.operators.arena.allocate import allocate
from reorder.operators.arena.banks import Bank
from reorder.operators.arena.base import Buffers
from reorder.order import order
from tests.oracles.arena_oracle import height_of
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.networks.network import Network

pytestmark = pytest.mark.application


def shape(name: str, n: int) -> Network:
    if name == "hub":  # n sources, one target
        return Network(np.arange(n), np.full(n, n), n + 1, np.arange(n), [n])
    if name == "fan":
        return Network(np.zeros(n, int), np.arange(1, n + 1), n + 1, [0], np.arange(1, n + 1))
    return Network(np.arange(n), np.arange(1, n + 1), n + 1, [0], [n])


@pytest.mark.parametrize("name", ["hub", "fan", "chain"])
@pytest.mark.parametrize(
    "method",
    ["ego", "go", "output-stationary", "learned", "connection-reordering", "residency", "sweep", "auto"],
)
def test_a_second_is_a_second(method: str, name: str) -> None:
    network = shape(name, 60_000)
    began, on_the_wall = time.process_time(), time.monotonic()
    found = order(network, method, memory=100, time_limit_s=1.0)
    assert time.process_time() - began < 2.1, time.monotonic() - on_the_wall
    assert len(found.edges) == network.n_connections


@pytest.mark.parametrize("method", ["output-stationary", "sweep"])
@pytest.mark.parametrize("name", ["fan", "chain"])
def test_what_a_method_prepares_is_left_out_where_it_takes_longer_than_the_limit(method: str, name: str) -> None:
    """Ten million connections took five times a limit of two seconds; these take about a second of a slow processor."""
    network = shape(name, 5_000_000)
    two_optimal_order(network)
    began = time.process_time()
    made = order(network, method, memory=100, time_limit_s=0.5)
    assert time.process_time() - began < 2.4
    assert len(made.edges) == network.n_connections
    assert made.truncated or name == "chain"  # of which any order is optimal


def test_connection_reordering_does_not_begin_what_its_limit_has_no_time_for() -> None:
    """To lay out ten million connections took it twice a limit of two seconds, after which it made one move."""
    network = shape("chain", 3_000_000)
    start = two_optimal_order(network)
    began = time.process_time()
    made = order(network, "connection-reordering", memory=100, time_limit_s=0.3)
    assert time.process_time() - began < 0.9
    assert (made.edges == start).all()
    assert [(step, value) for step, _, value in made.curve] == [(0, count_io(network, made, memory=100).total)]


def test_a_pass_of_learned_looks_at_the_clock_within_a_layer() -> None:
    """A time limit that ends the first pass ends the method: it once began another for each set of weights."""
    network = random_layered(2, 1100, 0.5, seed=1)
    order(random_layered(2, 10, 0.2), "learned", memory=5)  # imports take no part
    began = time.process_time()
    found = order(network, "learned", memory=300, time_limit_s=0.1)
    assert time.process_time() - began < 1.2
    assert found.truncated and sorted(found.edges.tolist()) == list(range(network.n_connections))
    none = order(network, "learned", memory=300, time_limit_s=1e-9)
    assert none.truncated and none.edges.tolist() == two_optimal_order(network).tolist()


def test_a_fan_with_little_memory_is_annealed_for_its_time() -> None:
    """A swap looks at all 200,000 targets for many points: the first thousand swaps took ten times the limit."""
    network = shape("fan", 200_000)
    order(random_layered(2, 10, 0.2), "residency", memory=5)  # imports take no part
    began = time.process_time()
    order(network, "residency", memory=10, time_limit_s=1.0)
    assert time.process_time() - began < 4


def test_a_move_on_a_fan_takes_no_time_that_grows_with_the_square_of_its_targets() -> None:
    """One that shifts the points behind it looked at all targets for each: 300,000 took 3.5 s for a limit of 1."""
    items = Items(shape("fan", 200_000))
    state = items.state_of(np.arange(200_000), 2)
    search = items.search(2, 1)
    search.set_state(state.opens, state.drops)
    search.tune(30.0, 100_000, 0.45, 0.45)
    began = time.process_time()
    search.run(50)
    assert time.process_time() - began < 1.5


def test_the_expansion_bound_of_a_chain_does_not_look_at_all_neurons_at_each_depth() -> None:
    network = shape("chain", 200_000)
    began = time.process_time()
    assert expansion_extra(network, 10, stay_costs(network)[None]) == [0]
    assert time.process_time() - began < 2


@pytest.mark.parametrize("allocator", ["exact", "linear", "size-best-fit", "size-first-fit"])
def test_very_many_buffers_that_are_live_together_are_placed_in_time(allocator: str) -> None:
    """Each is compared with all that are placed; what the time does not reach goes on top."""
    n = 100_000
    lower, size = np.arange(n) % 7, np.random.default_rng(1).integers(1, 1000, n)
    began = time.process_time()
    placed = allocate(lower, lower + 9, size, time_limit_s=0.3, allocator=allocator)
    assert time.process_time() - began < 1.5
    assert placed.truncated and len(placed.offset) == n
    by = np.argsort(placed.offset)
    assert (placed.offset[by][1:] >= (placed.offset + size)[by][:-1]).all()  # all are live at 6: none may share a byte
    assert placed.height == (placed.offset + size).max()


@pytest.mark.parametrize(
    ("last", "words"), [(None, ""), (2**40, ""), (100_000, "do not fit into the banks: no way found in the time limit")]
)
def test_very_many_buffers_are_placed_in_banks_in_time(last: int | None, words: str) -> None:
    """What the time does not reach goes to a bank that takes it; where none does, the time limit is named."""
    n = 20_000
    lower = np.random.default_rng(1).integers(0, n, n)
    upper, size = lower + 1 + np.arange(n) % 100, 16 * (1 + np.arange(n) % 1000)
    banks = [Bank("sram", 4000, 200_000), Bank("mid", 1000, 400_000), Bank("last", 400, last)]
    began = time.process_time()
    if words:
        with pytest.raises(InputError, match=words):
            allocate(lower, upper, size, time_limit_s=0.5, banks=banks)
    else:
        placed = allocate(lower, upper, size, time_limit_s=0.5, banks=banks)
        for k, bank in enumerate(banks):
            held = placed.bank == k
            height = height_of(Buffers(lower[held], upper[held], size[held]), placed.offset[held])
            assert height == placed.heights[k] <= (bank.size_bytes or height)
        assert placed.truncated and not placed.proved
        assert describe_banks(placed)[-1].endswith("; the time limit ended the search")
        assert (placed.bank == 0).sum() < n  # the fast bank holds what the time reached
    assert time.process_time() - began < 3


@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
def test_a_search_begins_nothing_that_its_limit_has_no_time_for(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """At 1e7 connections a start takes 3 s, a count 0.3 s: with a limit of 6 s `auto` took 9 to 17."""
    network = random_layered(n_layers=3, width=40, density=0.3, seed=1)
    now = iter(range(10_000_000))
    monkeypatch.setattr(Budget, "clock", staticmethod(lambda: 0.01 * next(now)))  # 10 ms each time that somebody looks
    monkeypatch.setattr(initial_states, "COSTS", replace(initial_states.COSTS, overrun_s=0.0))
    counted: list[float] = []
    offer = Best.offer

    def counting(self: Best, edges: np.ndarray, **found: object) -> float:
        counted.append(self.budget.spent())
        return offer(self, edges, **found)

    monkeypatch.setattr(Best, "offer", counting)
    for limit in (0.02, 0.2, 1.0):
        counted.clear()
        for method in ("residency", "auto"):
            found = order(network, method, memory=20, policy=policy, time_limit_s=limit)
            assert sorted(found.edges) == list(range(network.n_connections))
        assert sum(spent > limit for spent in counted) <= 4  # what each began in time, and the order it ends with


def stencil(points: int, steps: int) -> Network:
    n, pairs = instances.stencil(Random("stencil"), points, steps)
    sources, targets = np.array(pairs).T
    return Network(sources, targets, n, np.setdiff1d(sources, targets), np.setdiff1d(targets, sources))


def test_locality_and_paths_are_looked_for_only_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1.2e6 connections in 200 steps it took 22 s where the limit was 3, and the paths of a bound 1.2 s of 0.3."""

    def never(*given: object) -> None:
        raise AssertionError("there is no time for this")

    network = stencil(1000, 100)
    monkeypatch.setattr(locality, "coordinates", never)
    monkeypatch.setattr(bounds, "joined_paths", never)
    for policy in ("min", "lru"):
        found = order(network, "auto", memory=100, policy=policy, time_limit_s=0.3)
        assert len(found.edges) == network.n_connections


def test_known_places_are_used_however_short_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost nothing to find, but were given up with those that do: 221,473 I/Os in .1 s, now 148,626."""
    monkeypatch.setattr(auto, "COORDINATES_NEURON_US", 1e9)
    monkeypatch.setattr(Budget, "clock", staticmethod(lambda: 0.0))
    monkeypatch.setattr(auto, "portfolio", lambda: ["two-optimal"])  # others look for themselves
    steps, width = 12, 100
    step, x = np.divmod(np.arange(steps * width), width)
    left = np.flatnonzero((step < steps - 1) & (x < width - 1))
    s, t = np.concatenate((left, left + 1)), np.tile(left + width + 1, 2)
    network = Network(s, t, len(x), range(width), range(1101, 1200), positions=np.stack([step, 0 * x, x], 1))
    run = auto.Portfolio(network, Task(memory=8, time_limit_s=1.0), auto.AutoParameters())
    run.construct()
    assert run.local


def test_paths_that_meet_in_a_long_chain_are_grouped_at_once() -> None:
    """4,096 paths, each of which meets the next: 3.5 s, once for each of them over all."""
    joined = np.eye(4096, dtype=bool) | np.eye(4096, k=1, dtype=bool)
    joined[2000, 2001] = False
    began = time.process_time()
    assert paths._groups(joined).tolist() == [0] * 2001 + [1] * 2095
    assert time.process_time() - began < 1.5


def test_wide_stencils_are_ordered_by_their_locality() -> None:
    """Row by row has 438,000 I/Os, which `auto` gave in a second, 269,654 in five; the bound is 244,000."""
    network = stencil(2000, 30)
    assert "ego" in [name for name, _ in auto.constructions(network)]
    assert "ego" not in [name for name, _ in auto.constructions(random_layered(3, 100, 0.3, seed=1))]
    assert count_io(network, order(network, "auto", memory=100, moves=0), memory=100).total < 245_000


def test_the_clock_is_looked_at_where_moves_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """With M = 3, 50,000 connections: 1,024 moves took 2.6 s, whatever the limit."""
    network = random_layered(n_layers=3, width=40, density=0.3, seed=1)
    now = iter(range(10_000_000))
    monkeypatch.setattr(Budget, "clock", staticmethod(lambda: 0.01 * next(now)))
    found = order(network, "residency", memory=3, time_limit_s=0.5)
    assert found.parameters["moves"] < 1000


def test_dense_layers_are_not_searched_for_minutes() -> None:
    """80 x 80, M = 4: 33 s, of which all but the first 0.1 found nothing."""
    dense = Network(np.repeat(np.arange(80), 80), np.tile(np.arange(80, 160), 80), 160, range(80), range(80, 160))
    assert default_moves(Items(dense), 4) < 25_000
    for sparse in (random_layered(3, 300, 0.1, seed=1), stencil(100, 10)):
        items = Items(sparse)
        assert default_moves(items, 4) == 2000 * len(items.items)
