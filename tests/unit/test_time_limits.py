"""Hubs, fans and chains: constructions stay near-linear and limits hold, counted in CPU seconds."""

import time

import numpy as np
import pytest

from reorder.limits.bounds import expansion_extra
from reorder.order import order
from traces.work.network import Network

pytestmark = pytest.mark.application


def shape(name: str, n: int) -> Network:
    if name == "hub":  # n sources, one target
        return Network(np.arange(n), np.full(n, n), n + 1, np.arange(n), [n])
    if name == "fan":
        return Network(np.zeros(n, int), np.arange(1, n + 1), n + 1, [0], np.arange(1, n + 1))
    return Network(np.arange(n), np.arange(1, n + 1), n + 1, [0], [n])


@pytest.mark.parametrize("name", ["hub", "fan", "chain"])
@pytest.mark.parametrize("method", ["ego", "output-stationary", "learned", "sweep", "auto"])
def test_a_second_is_a_second(method: str, name: str) -> None:
    network = shape(name, 60_000)
    began, on_the_wall = time.process_time(), time.monotonic()
    found = order(network, method, memory=100, time_limit_s=1.0)
    assert time.process_time() - began < 2.1, time.monotonic() - on_the_wall
    assert len(found.edges) == network.n_connections


def test_the_expansion_bound_of_a_chain_does_not_look_at_all_neurons_at_each_depth() -> None:
    network = shape("chain", 200_000)
    began = time.process_time()
    assert expansion_extra(network, 10) == 0
    assert time.process_time() - began < 2
