"""The ordering engine on the corners: tiny, empty-handed, disconnected and bad input; reference instances; budgets."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracles.reference_networks import reorder_network

from hwmodel.iomodel import count_io, io_bounds
from reorder.order import order
from traces.errors import InputError
from traces.generate import compact_growth, random_layered
from traces.generate_radixnet import radix_net
from traces.network import Network

ENGINE = ("output-stationary", "blocks", "tiles", "frontier", "residency", "auto")


def corner(name: str) -> Network:
    if name == "one connection":
        return Network([0], [1], 2, [0], [1])
    if name == "isolated neurons":
        return Network([0, 0, 2], [3, 4, 4], 8, [0, 2, 6], [3, 4])
    if name == "disconnected":
        return Network([0, 1, 4, 5], [1, 2, 5, 6], 8, [0, 4], [2, 6])
    if name == "hidden without inputs":
        return Network([0, 1, 1, 2], [2, 2, 3, 3], 4, [0], [3])
    return Network([0, 0, 1, 1, 2], [1, 2, 2, 3, 3], 4, [0], [3])  # "a skip"


@pytest.mark.parametrize(
    "name", ["one connection", "isolated neurons", "disconnected", "hidden without inputs", "a skip"]
)
@pytest.mark.parametrize("policy", ["min", "lru", "rr"])
@pytest.mark.parametrize("method", ENGINE)
def test_corners(method: str, policy: str, name: str) -> None:
    network = corner(name)
    for memory in (3, 4, 100):
        found = order(network, method, memory=memory, policy=policy)
        assert count_io(network, found, memory=memory, policy=policy).total >= io_bounds(network).lower_total
    assert count_io(network, found, memory=100, policy=policy).total == io_bounds(network).lower_total


@pytest.mark.parametrize("method", ENGINE)
def test_bad_tasks_say_what_is_wrong(method: str) -> None:
    network = corner("a skip")
    with pytest.raises(InputError, match="3"):
        order(network, method, memory=2)
    with pytest.raises(InputError, match="above 0"):
        order(network, method, memory=5, time_limit_s=0)
    with pytest.raises(InputError, match="no parameter 'slotz'"):
        order(network, method, memory=5, slotz=3)
    with pytest.raises(InputError, match="objective"):
        order(network, method if method != "frontier" else "auto", memory=5, objective="speed")


@pytest.mark.parametrize(("method", "parameter"), [("residency", "moves"), ("blocks", "size"), ("tiles", "sources")])
def test_bad_parameters(method: str, parameter: str) -> None:
    with pytest.raises(InputError, match=f"{parameter} must be at least"):
        order(corner("a skip"), method, memory=5, **{parameter: -1})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_very_sparse_networks_reach_the_lower_bound(seed: int) -> None:
    network = random_layered(4, 500, 0.001, seed=seed)
    found = order(network, "auto", memory=100)
    assert count_io(network, found, memory=100).total == io_bounds(network).lower_total
    assert found.parameters["found_by"] in ("depth-first", "frontier")


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
def test_other_objectives_never_do_worse_than_two_optimal(objective: object) -> None:
    from reorder.base import Task
    from reorder.objectives import make_objective

    network = random_layered(3, 80, 0.1, seed=2)
    task = Task(40, objective=objective)
    value = lambda found: make_objective(objective).evaluate(network, found, task)  # noqa: E731
    found = order(network, "auto", memory=40, objective=objective, moves=20_000)
    assert value(found) <= value(order(network, "two-optimal", memory=40))


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


def test_starts_give_the_same_best_order_on_any_number_of_workers() -> None:
    network = random_layered(3, 60, 0.2, seed=4)
    alone = order(network, "residency", memory=20, moves=3000, starts=3)
    shared = order(network, "residency", memory=20, moves=3000, starts=3, workers=2)
    assert (alone.edges == shared.edges).all() and alone.parameters == shared.parameters
    assert alone.curve[-1][2] <= order(network, "residency", memory=20, moves=3000, seed=5).curve[0][2]


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_simd_levels_agree(level: str) -> None:
    import os
    import subprocess
    import sys

    code = (
        "from traces.generate import random_layered; from reorder.order import order; import hashlib;"
        "n = random_layered(3, 60, 0.2, seed=4);"
        "print(hashlib.sha256(order(n, 'residency', memory=20, moves=20000).edges.tobytes()).hexdigest(),"
        "hashlib.sha256(order(n, 'residency', memory=20, moves=20000, wide=True).edges.tobytes()).hexdigest())"
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
    assert count_io(network, found, memory=100, policy=policy).total - lower <= 1.06 * (best - lower)
