"""Orders for machines in little time: the best construction is evaluated first, nothing is evaluated twice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.moves import io_moves

import edgewatt as ew
from cython_ext.iomodel.counts import LOAD
from edgewatt.evaluation import machine_cost as judging
from edgewatt.evaluation.machine_cost import (
    STRETCHES,
    MachineCost,
    order_on_machine,
    settled,
    stretches,
    view_on_machine,
    what_is_open,
)
from edgewatt.orders import request
from edgewatt.orders.ordering import machine_cost_for
from edgewatt.orders.request import OrderRequest, find_order
from reorder.base import ORDERINGS
from reorder.edges.machine import candidates
from reorder.edges.machine.search import MachineParameters, order_for_machine
from reorder.edges.machine.surrogate import LEAST_ERROR, WINDOW, MachineShape, Surrogate
from reorder.edges.search.budget import Budget
from traces.base.errors import InputError
from traces.generators.networks import random_layered, uniform_layers
from traces.networks.network import Network

CACHE = {"caches": [{"size_bytes": 1024, "line_bytes": 64, "ways": 4, "policy": "lru"}]}
PAD = {"scratchpad": {"size_bytes": 2304, "stream_bytes": 1024}}


@pytest.fixture(scope="module")
def network() -> Network:
    return random_layered(3, 80, 0.15, seed=4)


def constructions() -> list[str]:
    usable = [name for name in ORDERINGS if not ORDERINGS[name].required]
    return [name for name in usable if not ORDERINGS[name].item.searches and ORDERINGS[name].item.extra is None]


@pytest.mark.parametrize("objective", ["energy", "bytes"])
@pytest.mark.parametrize(("system", "lanes"), [(CACHE, 16), (PAD, 1), (PAD, 16)])
def test_a_limit_too_short_for_all_constructions_still_finds_the_best(
    network: Network, objective: str, system: dict, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, now = machine_cost_for(network, objective, system, lanes=lanes), [0.0]
    shape = judge.shape()
    monkeypatch.setattr(Budget, "clock", staticmethod(lambda: now[0]))

    def slow(edges: np.ndarray) -> float:  # 16 constructions take 0.32 s
        now[0] += 0.02
        return judge(edges)

    found = order_for_machine(network, shape, slow, MachineParameters(), holds=judge.holds, time_limit_s=0.05)
    for name in constructions():
        other = ew.order(network, name, memory=shape.memory, policy=shape.policy)
        assert found.parameters["value"] <= judge(other.edges), name


@pytest.mark.parametrize(("likely", "kept_s"), [(3, 3.0), (0, 0.0), (8, 5.0)])
def test_searches_end_early_for_what_may_win_alone(network: Network, likely: int, kept_s: float) -> None:
    budget = Budget(10.0)
    pool = candidates.CandidatePool(lambda edges: 0.0, budget, Surrogate(network, MachineShape(20, "min", "literal")))
    pool.value, pool.evaluation_s = 100.0, 1.0  # error of predictions: 30 %
    order = np.arange(network.n_connections)
    for k in range(10):
        pool.waiting[bytes([k])] = order, np.zeros(4)
        pool.estimates[bytes([k])] = 120.0 if k < likely else 140.0
    pool.keep_time()
    assert pool.ends == pytest.approx(1 - kept_s / 10)


def test_the_best_orders_are_judged_in_each_layout(network: Network) -> None:
    free, tuples = (machine_cost_for(network, "energy", PAD, lanes=1, layout=kind) for kind in (None, "tuples"))
    found, held = (order_on_machine(judge, "auto", moves=500) for judge in (free, tuples))
    assert "layout" not in held.parameters
    assert found.parameters["layout_value"] <= held.parameters["value"]
    judge = machine_cost_for(network, "energy", PAD, lanes=1, layout=found.parameters["layout"])  # None: as it suits
    assert judge.holds(found.edges) and judge(found.edges) == found.parameters["layout_value"]


def test_nothing_is_simulated_twice(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, runs, real = machine_cost_for(network, "energy", PAD, lanes=16, layout="tuples"), [], judging.costs_of

    def counted(network: Network, edges: np.ndarray, *rest: object, **named: object) -> dict:
        runs.append(edges.tobytes())
        return real(network, edges, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(judging, "costs_of", counted)
    found = order_on_machine(judge, "auto", moves=500)
    assert len(set(runs)) == len(runs) == found.parameters["evaluated"]
    view = view_on_machine(judge, found)
    assert view.cost["energy"] == found.parameters["value"]
    edges = np.array(found.edges)  # an order that its owner changes is another order
    before = judge(edges)
    edges[:] = judge.plain
    assert judge(edges) == view.plain["energy"] != before


def test_a_layout_of_columns_is_refused_at_once(network: Network) -> None:
    for system in (CACHE, PAD):
        with pytest.raises(InputError, match="layout 'csc' cannot store two-optimal, with which orders"):
            ew.order(network, "auto", memory=None, objective="energy", machine=system, lanes=4, layout="csc")


@settings(deadline=None)
@given(st.integers(0, 50), st.sampled_from(["min", "lru", "rr"]), st.sampled_from([1, 2, 8]), st.integers(3, 30))
def test_bursts_are_those_of_the_moves(seed: int, policy: str, burst_rows: int, memory: int) -> None:
    """Slow and obvious: a move is merged when one of the WINDOW before it was of its burst."""
    network = uniform_layers([9, 12, 5], 0.5, seed=seed)
    edges = ew.order(network, "random-topological", memory=memory, seed=seed).edges
    judge = machine_cost_for(network, "bytes", PAD, lanes=1)
    shape = judging.replace(judge.shape(), memory=memory, policy=policy, burst_rows=burst_rows)
    runs, rows, bursts, constant = Surrogate(network, shape).counts(edges)
    moves = io_moves(network, edges, memory=memory, policy=policy)
    expected = 0
    for loads in (True, False):
        queue: list[int] = []
        for neuron, kind in zip(moves.neuron.tolist(), moves.kind.tolist(), strict=True):
            if (kind == LOAD) == loads:
                expected += neuron // burst_rows not in queue[-WINDOW:]
                queue.append(neuron // burst_rows)
    assert constant == 1 and rows == len(moves)
    assert bursts == (expected if burst_rows > 1 else 0)
    assert runs == 1 + np.count_nonzero(np.diff(network.targets[edges]))


def test_what_was_judged_is_told_again() -> None:
    """One value: the prior, scaled. More: the fit. The error of predictions goes down with what was heard."""
    network = random_layered(3, 80, 0.15, seed=4)
    surrogate = Surrogate(network, machine_cost_for(network, "bytes", CACHE, lanes=16).shape())
    rng = np.random.default_rng(1)
    weights = np.array([64.0, 64, 0, 0, 8, 5000])
    samples = rng.integers(100, 1000, (12, 6)).astype(float)
    samples[:, 5] = 1
    surrogate.learn(samples[0], float(weights @ samples[0]))
    assert surrogate.predict(samples[0]) == pytest.approx(weights @ samples[0], rel=0.01)
    for sample in samples[1:]:
        surrogate.learn(sample, float(weights @ sample))
    other = np.array([300.0, 400, 500, 600, 700, 1])
    assert surrogate.predict(other) == pytest.approx(weights @ other, rel=0.05)
    assert surrogate.error == LEAST_ERROR


@pytest.fixture(scope="module")
def slow_judge() -> MachineCost:
    return machine_cost_for(uniform_layers([90, 130, 80], 0.5, seed=3), "energy", PAD, lanes=16)


def test_simulations_after_the_limit_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    network = uniform_layers([9, 13, 8], 0.5, seed=3)
    asked = OrderRequest(objective="energy", system="scratchpad-8k", time_limit_s=0.1)
    assert find_order(network, asked).notes == ()
    times = iter((10.0, 12.25))
    monkeypatch.setattr(request, "perf_counter", lambda: next(times))
    (note,) = find_order(network, asked).notes
    assert note.endswith("took 2.2 s more")


@pytest.mark.parametrize(
    ("evaluation_s", "limit_s", "what"), [(0.01, 10, "all"), (0.2, 0.2, "some"), (5, 3, "samples")]
)
def test_what_no_time_was_left_for_is_said(
    slow_judge: MachineCost, evaluation_s: float, limit_s: float, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge and samples of it take a time of their own here, so the test does not depend on the machine."""
    judge, now, asked = slow_judge, [0.0], []
    network, shape = judge.network, judge.shape()
    monkeypatch.setattr(Budget, "clock", staticmethod(lambda: now[0]))
    monkeypatch.setattr(candidates, "LIMITS", replace(candidates.LIMITS, sample=512))  # of 11,050 connections

    def slow(edges: np.ndarray) -> float:
        now[0] += evaluation_s
        asked.append(edges)
        return judge(edges)

    def sampler(edges: np.ndarray, n: int) -> tuple[Network, float]:
        now[0] += evaluation_s * n / len(edges)
        return judge.sample(edges, n)

    found = order_for_machine(
        network, shape, slow, MachineParameters(moves=200, rounds=0), holds=judge.holds, sampler=sampler,
        time_limit_s=limit_s,
    )  # fmt: skip
    known, note = found.parameters, what_is_open(found)
    missed = known["not_evaluated"].split(", ")
    values = {}
    for name in constructions():
        edges = ew.order(network, name, memory=shape.memory, policy=shape.policy).edges
        values[name] = judge(edges)
        if name not in missed:
            assert known["value"] <= values[name], name
    assert judge(found.edges) <= 1.05 * min(values.values())  # samples rank well
    assert now[0] <= 1.1 * limit_s + 1
    assert known["evaluated_by"] == ("sample" if what == "samples" else "replay")
    if what == "all":
        assert known["not_evaluated"] == note == ""
    elif what == "some":
        assert len(asked) >= 2 and "two-optimal" not in missed and note.startswith("Not simulated for want of time")
        assert missed[0] in note and (len(missed) == 1 or missed[1] in note) and len(note) < 160
    else:
        assert not asked and "two-optimal" in missed and "samples compared them" in note
        assert known["value"] == pytest.approx(judge(found.edges), rel=0.3)


def test_of_a_single_order_nothing_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that ends before any tile is made leaves nothing out where the network has one order."""
    now = [0.0]
    monkeypatch.setattr(Budget, "clock", staticmethod(lambda: now[0]))

    def slow(edges: np.ndarray) -> float:
        now[0] += 5
        return 1.0

    for targets, missed in (([1], False), ([1, 2], True)):
        network = Network([0] * len(targets), targets, n_neurons=3, inputs=[0], outputs=targets)
        found = order_for_machine(
            network, MachineShape(10, "min", "literal"), slow, MachineParameters(moves=1, rounds=0),
            holds=lambda edges: True, time_limit_s=1,
        )  # fmt: skip
        assert bool(what_is_open(found)) == missed


def test_what_samples_alone_chose_is_two_optimal_where_that_costs_less(slow_judge: MachineCost) -> None:
    """`order --system` and `pays` play both in full, and what they found is kept."""
    judge = slow_judge
    known = {"evaluated_by": "sample", "value": 1.0, "found_by": "ego"}
    worse = ew.order(judge.network, "random-topological", memory=8)
    assert judge(worse.edges) > judge(judge.plain)
    found = settled(judge, replace(worse, parameters=known))
    assert np.array_equal(found.edges, judge.plain) and found.parameters["found_by"] == "two-optimal"
    assert found.parameters["value"] == found.parameters["two_optimal"] == judge(judge.plain)
    for kept in (replace(worse, parameters={**known, "evaluated_by": "replay"}), replace(found, parameters=known)):
        assert settled(judge, kept) is kept


@settings(deadline=None)
@given(st.integers(0, 99), st.sampled_from(["two-optimal", "by-source", "random-topological"]), st.booleans())
def test_a_sample_of_all_is_all(seed: int, name: str, cached: bool) -> None:
    network = uniform_layers([6, 9, 7, 4], 0.4, seed=seed)
    judge = machine_cost_for(network, "bytes", CACHE if cached else PAD, lanes=16)
    edges = ew.order(network, name, memory=5, seed=seed).edges
    part, value = judge.sample(edges, 10**6)
    places = stretches(len(edges), 10**6)
    assert np.array_equal(part.sources, network.sources[edges[places]])
    assert len(places) > len(edges) - STRETCHES
    if len(places) == len(edges):
        assert value == judge(edges)


@given(st.integers(1, 500), st.integers(1, 600))
def test_stretches_lie_in_the_order(n_connections: int, sampled: int) -> None:
    places = stretches(n_connections, sampled)
    assert places[0] >= 0 and places[-1] < n_connections and (np.diff(places) > 0).all()
    assert len(places) <= max(sampled, STRETCHES)
