"""Training of learned orders: it lowers what it says, repeats itself, and refuses what it cannot use."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from edgewatt.cli import app
from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.edges.search.streaming import (
    StreamingWeights,
    parse_weights,
    read_weights,
    shipped_weights,
    weights_file,
)
from reorder.learning.networks import KINDS, generated, local_network
from reorder.order import order
from traces.base.errors import InputError
from traces.generators.networks import bert_ffn, random_layered
from traces.generators.radixnet import radix_net
from traces.networks.network import Network

pytestmark = pytest.mark.application


def gap(network: Network, method: str, memory: int = 100, policy: str = "min", **parameters: Any) -> float:
    machine = {"memory": memory, "policy": policy}
    counts = [
        count_io(network, order(network, name, **machine, **given), **machine).total  # type: ignore[arg-type]
        for name, given in ((method, parameters), ("two-optimal", {}))
    ]
    lower = io_bounds(network).lower_total
    return (counts[0] - lower) / (counts[1] - lower)


@pytest.mark.parametrize(
    ("network", "memory", "policy", "most"),
    [
        (random_layered(4, 500, 0.1, seed=31), 100, "min", 0.208),
        (random_layered(4, 500, 0.01, seed=31), 100, "min", 0.57),
        (random_layered(4, 500, 0.1, seed=31), 100, "lru", 0.20),
        (random_layered(4, 500, 0.1, seed=31), 100, "rr", 0.43),
        (random_layered(4, 500, 0.1, seed=31), 300, "min", 0.34),
        (bert_ffn(0.02, seed=3), 100, "min", 0.45),
        (radix_net([[32, 32]], blocks=4, seed=1), 100, "min", 0.10),
    ],
)
def test_one_pass_is_near_what_searches_find(network: Network, memory: int, policy: str, most: float) -> None:
    assert gap(network, "learned", memory, policy) <= most


@pytest.mark.parametrize("kind", KINDS)
def test_generated_networks_repeat(kind: str) -> None:
    first, second = (generated(kind, 5, 3) for _ in range(2))
    for (a, m), (b, n) in zip(first, second, strict=True):
        assert m == n and m >= 3 and (a.sources == b.sources).all() and (a.targets == b.targets).all()


def test_local_networks_are_convolutions() -> None:
    network = local_network(6, [2, 3, 1], 1.0, seed=1, strides=[1, 2])
    assert len(network.inputs) == 72 and len(network.outputs) == 9
    assert network.n_connections == 16**2 * 2 * 3 + 8**2 * 3  # pairs of pixels times channels; padding feeds nothing
    assert (
        network.in_degree.max() == 9 * 3
        and (network.depth[network.targets] == network.depth[network.sources] + 1).all()
    )


def test_training_finds_better_weights_and_repeats_itself(tmp_path: Path) -> None:
    pytest.importorskip("cmaes", reason="needs the extra 'learn'")
    from reorder.learning.train import train

    some, others = generated("sparse", 1, 6), generated("sparse", 9, 4)
    found = train(some, others, seeds=(0, 1), seconds=3.0, name="tiny")
    assert found.validation[0] < 0 and list(found.validation) == sorted(found.validation)
    assert {point.seed for point in found.curve} == {0, 1}
    assert found.sets[0].made_with["policy"] == "min" and found.sets[0].name.startswith("tiny-")
    path = tmp_path / "weights.json"
    path.write_bytes(weights_file(list(found.sets)))
    assert read_weights(path) == found.sets
    network = random_layered(3, 60, 0.1, seed=1)
    ordered = order(network, "learned", memory=20, weights=str(path))
    assert ordered.parameters["set"].startswith("tiny-")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"training": []}, "networks to train on"),
        ({"seeds": ()}, "at least one seed"),
        ({"seconds": 0}, "at most 300"),
        ({"seconds": 301}, "at most 300"),
        ({"seconds": math.nan}, "at most 300"),
    ],
)
def test_training_refuses(given: dict[str, Any], message: str) -> None:
    pytest.importorskip("cmaes", reason="needs the extra 'learn'")
    from reorder.learning.train import train

    pairs = generated("sparse", 1, 1)
    with pytest.raises(InputError, match=message):
        train(**({"training": pairs, "validation": pairs, "seconds": 1.0} | given))


def test_unknown_kinds_of_networks() -> None:
    with pytest.raises(InputError, match=r"unknown kind of training networks 'spares'.*'sparse'"):
        generated("spares", 1, 1)


def broken(**changes: Any) -> dict[str, Any]:
    content = json.loads(weights_file([shipped_weights()[0]]))
    content["sets"][0].update(changes)
    return dict(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "'version' and a list 'sets'"),
        ({"version": 1, "sets": []}, "'version' and a list 'sets'"),
        ({"version": 2, "sets": [{}]}, "weights of version 2; this program reads 1"),
        ({"version": 1, "sets": [3]}, "set 1 is no mapping"),
        (broken(stream={"age": 1}), "'stream' must hold exactly log_left"),
        (broken(early=2), "early is a share"),
        (broken(early="much"), "early must be a number"),
        (
            broken(factor={**shipped_weights()[0].as_dict()["factor"], "computed": 1e9}),
            "factor.computed must be a number",
        ),
        (broken(factor={**shipped_weights()[0].as_dict()["factor"], "computed": math.nan}), "must be a number"),
    ],
)
def test_bad_weights(content: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_weights(content, "w.json")


def test_bad_weights_files(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    with pytest.raises(InputError, match="no such file"):
        read_weights(path)
    for text in ("{", "[" * 100_000, "\udcff"):
        path.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(InputError, match=r"w\.json: no weights file"):
            read_weights(path)
    network = random_layered(2, 10, 0.3, seed=1)
    with pytest.raises(InputError, match="weights must name a file"):
        order(network, "learned", memory=5, weights="")


def test_shipped_weights_say_where_they_come_from() -> None:
    for weights in shipped_weights():
        assert {"policy", "networks", "seed", "cpu_seconds", "start"} <= set(weights.made_with), weights.name
        assert StreamingWeights.from_vector(weights.vector()).vector().tolist() == weights.vector().tolist()
    assert {weights.made_with["policy"] for weights in shipped_weights()} >= {"min", "lru"}


def test_a_time_limit_too_short_for_one_pass() -> None:
    found = order(bert_ffn(0.1, seed=1), "learned", memory=100, time_limit_s=1e-6)
    assert found.truncated and found.parameters == {"slots": 0, "set": ""}


def test_the_command(tmp_path: Path) -> None:
    pytest.importorskip("cmaes", reason="needs the extra 'learn'")
    path = tmp_path / "w.json"
    command = ["learn", "order", "--kind", "sparse", "--seconds", "2", "--seeds", "3", "-o", str(path), "--json", "-"]
    command += ["--page", str(tmp_path / "p.html")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["sets"][0]["made_with"]["seed"] == 3 and result["curve"] and read_weights(path)[0].name == "w-3"
    page = (tmp_path / "p.html").read_text()
    assert "<polyline" in page and "seed 3" in page and "stream: log_left" in page
    bad = CliRunner().invoke(app, ["learn", "order", "--seeds", "x", "-o", str(path)])
    assert isinstance(bad.exception, InputError) and "--seeds x" in str(bad.exception)


def test_orders_do_not_depend_on_the_hash_seed() -> None:
    network = random_layered(3, 80, 0.1, seed=4)
    first = order(network, "learned", memory=30)
    assert (first.edges == order(network, "learned", memory=30).edges).all()
    assert np.array_equal(np.sort(first.edges), np.arange(network.n_connections))
