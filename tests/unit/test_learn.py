"""The `learned` ordering and the weights that it goes by."""

from typing import Any

import pytest

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.edges.search.streaming import shipped_weights
from reorder.order import order
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


def test_shipped_weights_say_where_they_come_from() -> None:
    for weights in shipped_weights():
        assert {"policy", "networks", "seed", "cpu_seconds", "start"} <= set(weights.made_with), weights.name
    assert {weights.made_with["policy"] for weights in shipped_weights()} >= {"min", "lru"}


def test_a_time_limit_too_short_for_one_pass() -> None:
    found = order(bert_ffn(0.1, seed=1), "learned", memory=100, time_limit_s=1e-6)
    assert found.truncated and found.parameters == {"slots": 0, "set": ""}
