"""The ordering engine on the corners: tiny, empty-handed, disconnected and bad input; reference instances; budgets."""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from oracles.reference_networks import reorder_network

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.base import ORDERINGS, Task
from reorder.edges.methods import residency
from reorder.edges.search.budget import Budget
from reorder.edges.search.objectives import make_objective
from reorder.order import order
from traces.base.errors import InputError
from traces.generators.networks import compact_growth, random_layered
from traces.generators.radixnet import radix_net
from traces.networks.network import Network

METHODS_HERE = [name for name, entry in ORDERINGS.items() if name not in ("file", "eon")]
ENGINE = ("output-stationary", "tiles", "residency", "auto")
SHORT = {"connection-reordering": {"iterations": 50}, "residency": {"moves": 2000}, "auto": {"moves": 2000}}


CORNERS = {
    "one connection": Network([0], [1], 2, [0], [1]),
    "isolated neurons": Network([0, 0, 2], [3, 4, 4], 8, [0, 2, 6], [3, 4]),
    "disconnected": Network([0, 1, 4, 5], [1, 2, 5, 6], 8, [0, 4], [2, 6]),
    "hidden without inputs": Network([0, 1, 1, 2], [2, 2, 3, 3], 4, [0], [3]),
    "a skip": Network([0, 0, 1, 1, 2], [1, 2, 2, 3, 3], 4, [0], [3]),
}


@pytest.mark.parametrize("method", METHODS_HERE)
def test_corners(method: str) -> None:
    for policy, (name, network) in itertools.product(("min", "lru", "rr"), CORNERS.items()):
        least = io_bounds(network).lower_total
        for memory in (3, 4, 100, 2**31 + 3, 2**40):
            found = order(network, method, memory=memory, policy=policy, **SHORT.get(method, {}))
            assert sorted(found.edges.tolist()) == list(range(network.n_connections)), (name, policy, memory)
            assert count_io(network, found, memory=memory, policy=policy).total >= least, (name, policy, memory)
        assert count_io(network, found, memory=100, policy=policy).total == least, (name, policy)


@pytest.mark.parametrize("method", METHODS_HERE)
def test_a_time_limit_too_short_for_anything_still_gives_an_order(method: str) -> None:
    for name, network in CORNERS.items():
        assert len(order(network, method, memory=4, time_limit_s=1e-9).edges) == network.n_connections, name


@pytest.mark.parametrize("method", METHODS_HERE)
def test_bad_tasks_say_what_is_wrong(method: str) -> None:
    for task, message in (
        ({"memory": 2}, "memory is 2"),
        ({"memory": 0}, "at least 3"),
        ({"memory": 3.5}, "memory"),
        ({"memory": "many"}, "memory"),
        ({"time_limit_s": 0}, "time_limit_s is 0.*above 0"),
        ({"time_limit_s": -1}, "above 0"),
        ({"time_limit_s": float("nan")}, "above 0"),
        ({"seed": -1}, "seed"),
        ({"policy": "fifo"}, "policy"),
        ({"pinning": "both"}, "pinning"),
        ({"slotz": 3}, "no parameter 'slotz'"),
        ({"objective": "speed"}, "unknown objective 'speed'"),
        ({"objective": {"kind": "memories", "sizes": [2]}}, "memory is 2"),
    ):
        with pytest.raises(InputError, match=message):
            order(CORNERS["a skip"], method, **({"memory": 5} | task))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "parameter"),
    [("residency", "moves"), ("tiles", "sources"), ("auto", "starts"), ("auto", "workers")],
)
def test_bad_parameters(method: str, parameter: str) -> None:
    with pytest.raises(InputError, match=f"{parameter} must be a (whole|finite) number of at least"):
        order(CORNERS["a skip"], method, memory=5, **{parameter: -1})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_very_sparse_networks_reach_the_lower_bound(seed: int) -> None:
    network = random_layered(4, 500, 0.001, seed=seed)
    found = order(network, "auto", memory=100)
    assert count_io(network, found, memory=100).total == io_bounds(network).lower_total
    assert found.parameters["found_by"] == "sethi-ullman"


@pytest.mark.parametrize("grown", [20, 60])
def test_compact_growth_is_exact_at_its_memory(grown: int) -> None:
    network = compact_growth(grown, 200, 5, seed=1)
    found = order(network, "auto", memory=grown)
    assert count_io(network, found, memory=grown).total == io_bounds(network).lower_total


def test_a_time_limit_is_kept_and_said() -> None:
    network = random_layered(3, 120, 0.1, seed=1)
    found = order(network, "auto", memory=40, time_limit_s=0.3)
    assert found.truncated
    _, seconds, value = found.curve[-1]
    assert seconds < 2 and value == count_io(network, found, memory=40).total
    assert list(found.curve) == sorted(found.curve) and [p[2] for p in found.curve] == sorted(
        (p[2] for p in found.curve), reverse=True
    )


@pytest.mark.parametrize(
    "objective", ["runs", {"kind": "weighted", "a": 1.0, "b": 0.5}, {"kind": "memories", "sizes": [20, 60]}]
)
@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
def test_other_objectives_never_do_worse_than_two_optimal(objective: object, policy: str) -> None:
    network = random_layered(3, 80, 0.1, seed=2)
    value = lambda found: make_objective(objective).evaluate(network, found, Task(40, policy))  # noqa: E731
    found = order(network, "auto", memory=40, policy=policy, objective=objective, moves=20_000)
    assert found.curve[-1][2] == value(found) <= value(order(network, "two-optimal", memory=40))


def test_searches_lower_the_objective_they_are_given() -> None:
    """An order searched for one objective is better under it than an order searched for I/Os."""
    network = random_layered(4, 200, 0.05, seed=1)
    io = order(network, "residency", memory=60, moves=200_000)
    for objective in ({"kind": "weighted", "a": 1, "b": 1}, {"kind": "memories", "sizes": [20, 60, 120]}):
        value = lambda found, wish=objective: make_objective(wish).evaluate(network, found, Task(60))  # noqa: E731
        found = order(network, "residency", memory=60, objective=objective, moves=200_000)
        assert value(found) < 0.97 * value(io)


def test_runs_alone_need_no_search() -> None:
    found = order(random_layered(3, 80, 0.1, seed=2), "auto", memory=40, objective="runs")
    assert found.parameters["found_by"] == "two-optimal" and found.curve[-1][0] == 1


def test_an_objective_may_name_another_fast_memory() -> None:
    network = random_layered(3, 60, 0.2, seed=4)
    wish = {"kind": "io", "policy": "lru", "memory": 20}
    named = order(network, "auto", memory=50, objective=wish, moves=5000)
    plain = order(network, "auto", memory=20, policy="lru", moves=5000)
    assert (named.edges == plain.edges).all()


def clustered(seed: int) -> Network:
    """Four layers of 240 neurons in 6 hidden groups; most connections stay inside a group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 6, (4, 240))
    pairs = [np.nonzero(rng.random((240, 240)) < np.where(a[:, None] == b, 0.3, 0.01)) for a, b in pairwise(group)]
    sources = np.concatenate([s + 240 * k for k, (s, _) in enumerate(pairs)])
    targets = np.concatenate([t + 240 * k + 240 for k, (_, t) in enumerate(pairs)])
    return Network(sources, targets, 960, range(240), range(720, 960))


def test_groups_of_shared_sources_make_no_worse_start() -> None:
    network = clustered(1)
    alone = order(network, "residency", memory=60, moves=30_000).curve[-1][2]
    assert order(network, "auto", memory=60, moves=30_000).curve[-1][2] <= alone


def test_constructions_find_the_structure_of_a_radix_net() -> None:
    network = radix_net([[2] * 6], [4] * 7, blocks=2, seed=0)
    lower, plain = io_bounds(network).lower_total, count_io(network, memory=40).total
    found = count_io(network, order(network, "output-stationary", memory=40), memory=40).total
    assert (found - lower) / (plain - lower) < 0.25


def test_residency_beats_two_optimal_by_far() -> None:
    network = random_layered(3, 200, 0.1, seed=3)
    gaps = {}
    for policy in ("min", "lru", "rr"):
        count = lambda found, policy=policy: count_io(network, found, memory=50, policy=policy).total  # noqa: E731
        lower, plain = io_bounds(network).lower_total, count(order(network, "two-optimal", memory=50))
        found = order(network, "residency", memory=50, policy=policy, moves=150_000)
        gaps[policy] = (count(found) - lower) / (plain - lower)
    assert gaps["min"] < 0.36 and gaps["lru"] < 0.36 and gaps["rr"] < 0.65


def test_edge_moves_pay_where_the_model_does_not_fit_the_policy() -> None:
    network = random_layered(3, 150, 0.1, seed=4)
    total = {
        share: count_io(
            network,
            order(network, "residency", memory=50, policy="rr", moves=200_000, polish=share),
            memory=50,
            policy="rr",
        ).total
        for share in (0, 0.25)
    }
    assert total[0.25] < total[0]


def test_starts_give_the_same_best_order_on_any_number_of_workers() -> None:
    network = random_layered(3, 60, 0.2, seed=4)
    alone = order(network, "residency", memory=20, moves=3000, starts=3)
    shared = order(network, "residency", memory=20, moves=3000, starts=3, workers=2)
    assert (alone.edges == shared.edges).all() and alone.parameters == shared.parameters
    one = order(network, "residency", memory=20, moves=3000)
    assert alone.curve[-1][2] <= one.curve[-1][2] and alone.curve[-1][0] > 2.9 * one.curve[-1][0]
    assert [point[::2] for point in alone.curve] == [point[::2] for point in shared.curve]


def test_auto_gives_up_plans_of_what_to_fuse_that_trail_the_constructions() -> None:
    network = radix_net([[3] * 6], seed=1)  # coordinates as smooth as a picture's, but no strips
    total = {
        method: count_io(network, order(network, method, memory=100, moves=1), memory=100).total
        for method in ("auto", "residency")
    }
    assert total["auto"] <= total["residency"]


def test_auto_shares_starts_among_processes_and_says_how_far_it_is() -> None:
    network = random_layered(3, 60, 0.2, seed=4)
    seen: list[tuple[int, int | None, str]] = []
    given = {"memory": 20, "moves": 150_000, "starts": 3}
    shared = order(network, "auto", **given, workers=2, progress=lambda *now: seen.append(now))
    alone = order(network, "auto", **given)
    assert (alone.edges == shared.edges).all() and not shared.truncated
    assert alone.curve[-1][2] <= order(network, "auto", memory=20, moves=150_000).curve[-1][2]
    assert seen and all(0 <= done <= 1000 == total for done, total, _ in seen)


def test_a_short_search_of_neurons_that_share_all_sources_takes_far_fewer_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patient = replace(residency.PROBE, start_share=1.0, time_share=1.0)  # on a slow machine too
    monkeypatch.setattr(residency, "PROBE", patient)
    monkeypatch.setattr(Budget, "clock", staticmethod(time.process_time))
    network = radix_net([[32, 32]], blocks=2, seed=3)
    found = order(network, "residency", memory=100, time_limit_s=2.4)
    least = io_bounds(network).lower_total
    assert found.parameters["slots"] <= 50
    # three layers between are written and read again, but for what MIN keeps in the slots that partial sums leave it
    assert count_io(network, found.edges, memory=100).total - least < 2 * 3 * 1024 - 3 * 64


def test_starts_share_the_time_there_is() -> None:
    network = random_layered(3, 60, 0.2, seed=4)
    found = order(network, "residency", memory=20, starts=3, time_limit_s=0.6)
    assert found.truncated and 0.4 < found.curve[-1][1] < 2


def test_few_connections_are_annealed_with_all_slots_at_once() -> None:
    network = random_layered(3, 60, 0.04, seed=1)
    assert order(network, "residency", memory=20, moves=20_000).parameters["slots"] == 18


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_simd_levels_agree(level: str) -> None:
    import os
    import subprocess

    code = (
        "from traces.generators.networks import random_layered; from reorder.order import order; import hashlib;"
        "from functools import partialmethod; from reorder.edges.search.intervals import Items;"
        "n = random_layered(3, 60, 0.2, seed=4);"
        "print(hashlib.sha256(order(n, 'residency', memory=20, moves=20000).edges.tobytes()).hexdigest());"
        "Items.search = partialmethod(Items.search, wide=True);"
        "print(hashlib.sha256(order(n, 'residency', memory=20, moves=20000).edges.tobytes()).hexdigest())"
    )
    run = lambda simd: subprocess.run(  # noqa: E731
        [sys.executable, "-c", code],
        env=os.environ | {"EDGEWATT_SIMD": simd},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    narrow, wide = run(level)
    assert narrow == wide == run("")[0]


@pytest.mark.parametrize(("policy", "best"), [("min", 143182), ("lru", 143595)])  # totals of counts.csv
def test_reference_orders_are_approached(reference: Path, policy: str, best: int) -> None:
    network, _ = reorder_network(reference, "radix_1024x4")
    lower = io_bounds(network).lower_total
    found = order(network, "output-stationary", memory=100, policy=policy)
    assert count_io(network, found, memory=100, policy=policy).total - lower <= 1.07 * (best - lower)
