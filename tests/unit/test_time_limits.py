"""Hubs, fans and chains: constructions stay near-linear and limits hold, counted in CPU seconds."""

import time

import numpy as np
import pytest

from reorder.arena.allocate import allocate
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
