"""What a request for an order may not ask: one sentence names it, with and without a machine, in each way to ask."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from traces.base.document import ConfigError
from traces.base.errors import InputError
from traces.generators.networks import uniform_layers
from traces.networks.network import Network
from traces.readers.native import save

MACHINE = {"machine": "scratchpad-8k", "objective": "energy", "memory": None}
LIMIT = "time_limit_s is {}: a number of seconds above 0 is needed"


@pytest.fixture
def network() -> Network:
    return uniform_layers([8, 8, 4], 0.5, seed=1)


@pytest.mark.parametrize("where", [{"memory": 6}, MACHINE], ids=["io", "machine"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        *[({"time_limit_s": limit}, LIMIT.format(limit)) for limit in (0, -1.0, math.inf, -math.inf, math.nan)],
        ({"seed": -1}, "seed must be a whole number from 0 to 2^63 - 1, not -1"),
        ({"memory": 0}, "memory is 0: at least 3 are needed"),
        ({"moves": math.inf}, "moves must be a whole number of at least 0, not inf"),
        ({"moves": True}, "moves must be a whole number of at least 0, not True"),
        ({"moves": 1.5}, "moves must be a whole number of at least 0, not 1.5"),
        ({"moves": -1}, "moves must be a whole number of at least 0, not -1"),
        ({"clock": "cpu"}, "'clock'"),
    ],
)
def test_a_search_needs_limits_it_can_keep(network: Network, where: dict, options: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ew.order(network, "auto", **{**where, **options})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("auto", {"starts": math.inf}, "starts must be a whole number of at least 1, not inf"),
        ("residency", {"workers": 1.5}, "workers must be a whole number of at least 1, not 1.5"),
        ("residency", {"temperature": math.inf}, "temperature must be a finite number of at least 0, not inf"),
        ("residency", {"temperature": math.nan}, "temperature must be a finite number of at least 0, not nan"),
        ("residency", {"polish": True}, "polish must be a finite number of at least 0, not True"),
        ("tiles", {"sources": 0}, "sources must be a whole number of at least 1, not 0"),
        ("auto", {"objective": {"kind": "energy"}}, "objective 'energy' needs a machine: give machine="),
        ("auto", {"objective": {"kind": "io", "polcy": "lru"}}, "objective 'io' has no option 'polcy'"),
        ("auto", {"objective": None}, "an objective is a name or a mapping with 'kind', not None"),
        ("auto", {"objective": [1]}, "an objective is a name or a mapping with 'kind', not [1]"),
    ],
)
def test_parameters_and_objectives(network: Network, method: str, options: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ew.order(network, method, **{"memory": 6, **options})
    assert message in str(caught.value)


def test_rounds_on_a_machine_are_whole(network: Network) -> None:
    for rounds in (math.inf, 1.5, True):
        with pytest.raises(InputError, match=f"rounds must be a whole number of at least 0, not {rounds}"):
            ew.order(network, "auto", rounds=rounds, **MACHINE)
    for limit in (0, math.nan):
        with pytest.raises(InputError, match=f"time_limit_s is {limit}: a number of seconds above 0"):
            ew.orders.renumber(network, machine="edge", time_limit_s=limit)
    with pytest.raises(InputError, match="takes no 'clock'"):
        ew.orders.renumber(network, machine="edge", clock="cpu")


def test_an_objective_may_be_a_mapping(network: Network) -> None:
    wish = {"kind": "weighted", "a": 2, "b": 1}
    found = ew.order(network, "auto", memory=6, objective=wish, moves=200)
    named = ew.order(
        network, "auto", memory=None, machine="scratchpad-8k", objective={"kind": "bytes"}, moves=5, rounds=1
    )
    assert found.curve[-1][2] > 0 and named.parameters["value"] > 0


def command(network: Network, tmp_path: Path, *arguments: str) -> Any:
    save(network, tmp_path / "net.npz")
    return CliRunner().invoke(app, ["order", str(tmp_path / "net.npz"), *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "scratchpad-8k", "--lanes", "0"], "lanes must be a whole number of at least 1, not 0"),
        (["--system", "scratchpad-8k", "-M", "0"], "memory is 0: at least 3 are needed"),
        (["--system", "scratchpad-8k", "--time-limit", "nan"], LIMIT.format("nan")),
        (["--system", "scratchpad-8k", "--time-limit", "0"], LIMIT.format("0.0")),
        (["--system", "scratchpad-8k", "--seed", "-1"], "seed must be a whole number from 0 to 2^63 - 1, not -1"),
        (["-M", "20", "--seed", str(10**22)], "seed must be a whole number from 0 to 2^63 - 1, not 1"),
        (["--system", "no-such"], "unknown shipped systems file 'no-such' (known: "),
        (["--system", "edge", "--objective", "io"], "a machine is for the objectives energy, time, bytes, not 'io'"),
        (["--objective", "bytes"], "objective 'bytes' needs a machine"),
        (["--objective", "{kind: time, a: 1}"], "objective 'time' has no option 'a'"),
        (["--objective", "{kind: energy}"], "objective 'energy' needs a machine"),
        (["-s", "moves=.inf"], "moves must be a whole number of at least 0, not '.inf'"),
    ],
)
def test_the_command_says_it_too(network: Network, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = command(network, tmp_path, *arguments)
    assert isinstance(done.exception, InputError) and message in str(done.exception)


def test_the_command_takes_a_mapping(network: Network, tmp_path: Path) -> None:
    done = command(network, tmp_path, "--objective", "{kind: weighted, a: 2, b: 1}", "-M", "6", "-s", "moves=100")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("search: {objective: enrgy}", "run.yaml:3:21: unknown objective 'enrgy' (did you mean 'energy'?)"),
        (
            "search: {objective: energy}\ncaches: []",
            "run.yaml:1:1: objective 'energy' needs caches or a scratchpad: without, every order moves the same bytes",
        ),
        ("search: {objective: energy, time_limit_s: .inf}", "run.yaml:3:43: "),
        ("search: {objective: energy, time_limit_s: 0}", "run.yaml:3:43: must be more than 0.0, not 0"),
        ("search: {objective: energy}\nsystem: no-such", "run.yaml:4:9: unknown shipped systems file 'no-such'"),
        ("search: {machine: edge}", "run.yaml:3:10: unknown key 'machine' (known: objective, time_limit_s)"),
    ],
)
def test_a_configuration_says_where(network: Network, tmp_path: Path, text: str, message: str) -> None:
    save(network, tmp_path / "net.npz")
    (tmp_path / "run.yaml").write_text(f"network: {{file: net.npz}}\norderings: [auto]\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        ew.run(tmp_path / "run.yaml", results=tmp_path / "results")
    assert message in str(caught.value)


def test_a_configuration_takes_the_mapping_of_a_machine(network: Network, tmp_path: Path) -> None:
    save(network, tmp_path / "net.npz")
    text = "network: {file: net.npz}\norderings: [two-optimal]\nsearch: {objective: {kind: energy}}\n"
    (tmp_path / "run.yaml").write_text(text)
    (record,) = ew.run(tmp_path / "run.yaml", results=tmp_path / "results")
    assert record.results["energy_pj"]["total"] > 0


STRANGE = {
    "one layer": Network([0, 1, 0], [2, 2, 3], 4, [0, 1], [2, 3], weights=np.ones(3)),
    "one connection": Network([0], [1], 2, [0], [1], weights=np.ones(1)),
    "isolated neurons": Network([0, 3], [3, 7], 9, [0, 1], [7, 8], weights=np.ones(2)),
    "an output that feeds": Network([0, 1, 1], [1, 2, 3], 4, [0], [1, 2, 3], weights=np.ones(3)),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_networks_have_orders_by_every_construction(name: str) -> None:
    from reorder.base import ORDERINGS

    network = STRANGE[name]
    for method in ORDERINGS:
        entry = ORDERINGS[method]
        if entry.required or entry.item.extra is not None:
            continue
        more = {"moves": 200} if entry.item.steps == "moves" else {}
        found = ew.order(network, method, memory=3, seed=1, **more)
        assert sorted(found.edges) == list(range(network.n_connections)), method
    for machine in ("edge", "scratchpad-8k"):
        ew.order(network, "auto", memory=None, machine=machine, objective="bytes", rounds=1, moves=20)


def test_a_network_without_connections_is_refused() -> None:
    with pytest.raises(InputError, match="the network is empty: 3 neurons, 0 connections"):
        Network([], [], 3, [0], [2])


def test_a_time_limit_leaves_out_slow_bounds_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgewatt.orders import describe

    network = uniform_layers([60, 60, 60], 0.4, seed=1)
    whole, said = describe.bound_within(network, 20, None)
    assert whole.extra > 0 and not said
    assert describe.bound_within(network, 20, 1.0) == (whole, "")
    monkeypatch.setattr(describe, "WORK_PER_S", 10)
    least, said = describe.bound_within(network, 20, 1.0)
    assert (least.extra, least.argument) == (0, "theorem-1") and "a longer one may prove more" in said
