"""Orders along ranks of the whole network: the ranks against slow obvious ones, the orders by what they promise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.random_networks import dags

from hwmodel.fastmemory.iomodel import count_io, io_bounds
from reorder.edges.methods.ranked import rcm_rank
from reorder.edges.search.intervals import Items
from reorder.edges.search.locality import image_coordinates, neuron_coordinates
from reorder.order import order
from traces.base.errors import InputError
from traces.generators.networks import random_layered
from traces.networks.network import Network

RANKED = ("rcm", "sweep", "slices")


def pictures(height: int = 8, width: int = 10, layers: int = 3, seed: int = 0) -> Network:
    """3 x 3 convolutions of one channel, four fifths of the weights kept, neurons numbered at random in each layer."""
    rng = np.random.default_rng(seed)
    size = height * width
    number = np.concatenate([level * size + rng.permutation(size) for level in range(layers + 1)])
    kept = [(dy, dx) for dy, dx in itertools.product((-1, 0, 1), repeat=2) if rng.random() < 0.8] or [(0, 0)]
    ends = [
        (level * size + (y + dy) * width + x + dx, (level + 1) * size + y * width + x)
        for level, y, x, (dy, dx) in itertools.product(range(layers), range(height), range(width), kept)
        if 0 <= y + dy < height and 0 <= x + dx < width
    ]
    s, t = number[np.array(ends)].T
    positions = np.empty((len(number), 3), np.int64)
    positions[number] = list(itertools.product(range(layers + 1), range(height), range(width)))
    return Network(s, t, len(number), np.sort(number[:size]), np.sort(number[-size:]), positions=positions)


@settings(max_examples=60, deadline=None)
@given(dags(max_neurons=14), st.sampled_from(RANKED), st.integers(3, 8), st.sampled_from(("min", "lru", "rr")))
def test_every_network_has_such_orders(network: Network, method: str, memory: int, policy: str) -> None:
    found, again = (order(network, method, memory=memory, policy=policy) for _ in range(2))
    assert (found.edges == again.edges).all() and found.parameters == again.parameters
    assert found.curve[-1][2] == count_io(network, found, memory=memory, policy=policy).total


@settings(max_examples=40, deadline=None)
@given(dags(max_neurons=20))
def test_cuthill_mckee_numbers_every_neuron(network: Network) -> None:
    assert sorted(rcm_rank(network)) == list(range(network.n_neurons))


def test_cuthill_mckee_finds_the_line() -> None:
    chain = np.random.default_rng(3).permutation(200)
    network = Network(chain[:-1], chain[1:], 200, [chain[0]], [chain[-1]])
    rank = rcm_rank(network)
    assert (np.abs(rank[network.sources] - rank[network.targets]) == 1).all()


def test_sweeps_of_pictures_meet_the_bound_in_a_few_rows() -> None:
    network = pictures()
    least = io_bounds(network).lower_total
    assert count_io(network, order(network, "sweep", memory=80), memory=80).total == least
    tight = {m: order(network, m, memory=24) for m in ("two-optimal", "sweep", "rcm")}
    totals = {m: count_io(network, found, memory=24).total for m, found in tight.items()}
    assert totals["sweep"] < totals["rcm"] < totals["two-optimal"]


def test_image_coordinates() -> None:
    network = pictures()
    found = image_coordinates(network)
    assert found is not None and 0 < found.min() < found.max() < 1
    assert image_coordinates(network.with_(positions=None)) is None
    flat = network.positions.copy()
    flat[:, 1:] = -1
    assert image_coordinates(network.with_(positions=flat)) is None, "no layer has a picture"
    mixed = network.positions.copy()
    mixed[network.outputs, 1:] = -1
    assert (image_coordinates(network.with_(positions=mixed))[network.outputs] == 1).all(), (
        "they need all of the picture"
    )
    shuffled = network.positions.copy()
    rng = np.random.default_rng(1)
    for level in range(4):
        here = shuffled[:, 0] == level
        shuffled[here] = rng.permutation(shuffled[here])
    guessed = neuron_coordinates(Items(network.with_(positions=shuffled)))
    assert guessed is None or not np.array_equal(guessed, image_coordinates(network.with_(positions=shuffled)))


def test_a_picture_of_one_row_is_swept_along_it() -> None:
    network = pictures(1, 60)
    least = io_bounds(network).lower_total
    for policy in ("min", "lru", "rr"):
        found = order(network, "sweep", memory=24, policy=policy)
        assert count_io(network, found, memory=24, policy=policy).total == least


def test_two_optimal_where_nothing_is_known() -> None:
    network = random_layered(3, 30, 0.2, seed=1)
    plain = order(network, "two-optimal", memory=20).edges
    for method in ("sweep", "slices"):
        assert np.array_equal(order(network, method, memory=20).edges, plain)


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("rcm", {"way": "pul"}, "unknown way 'pul'"),
        ("tiles", {"outer": "both"}, "unknown outer loop 'both'"),
    ],
)
def test_bad_parameters(method: str, parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        order(pictures(4, 4, 1), method, memory=5, **parameters)
