"""Generated networks have the structure their papers describe."""

from collections.abc import Callable

import numpy as np
import pytest
from oracles.theory import chains, dense_layers

from traces.base.errors import InputError
from traces.generators.networks import bert_ffn, compact_growth, random_layered, uniform_layers
from traces.generators.radixnet import radix_net
from traces.networks.network import Network

MAKERS: dict[str, Callable[[int], Network]] = {
    "random_layered": lambda seed: random_layered(4, 30, 0.2, seed),
    "uniform_layers": lambda seed: uniform_layers([20, 40, 10], 0.1, seed),
    "bert_ffn": lambda seed: bert_ffn(0.1, seed, hidden=16, inner=64),
    "compact_growth": lambda seed: compact_growth(20, 50, 4, seed),
    "radix_net": lambda seed: radix_net([[2, 2, 2]], [1, 2, 3, 1], blocks=1, seed=seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_seed_decides_everything(name: str) -> None:
    first, again, other = (MAKERS[name](seed) for seed in (1, 1, 2))
    for field in ("sources", "targets", "weights", "biases", "batch"):
        assert np.array_equal(getattr(first, field), getattr(again, field))
    assert not np.array_equal(first.batch, other.batch)  # type: ignore[arg-type]
    if name != "radix_net":  # one block has nothing random but its inputs
        assert not np.array_equal(first.sources, other.sources)


@pytest.mark.parametrize("name", ["random_layered", "uniform_layers", "bert_ffn", "radix_net"])
def test_layered_networks_are_stored_by_layer_target_and_source(name: str) -> None:
    network = MAKERS[name](0)
    assert network.layer is not None
    order = np.lexsort((network.sources, network.targets, network.layer))
    assert np.array_equal(order, np.arange(network.n_connections))


@pytest.mark.parametrize("density", [0.01, 0.1, 0.5, 0.508])
def test_random_layered_out_degrees(density: float) -> None:
    width = 60
    network = random_layered(4, width, density, seed=5)
    assert network.n_neurons == 4 * width + 1 and len(network.inputs) == width and len(network.outputs) == 1
    out = network.out_degree[: 3 * width]
    most = min(width, max(1, int(np.ceil(round(2 * density * width - 1, 9)))))
    assert out.min() >= 1 and out.max() <= most
    assert (network.out_degree[3 * width : -1] == 1).all()  # each of the last hidden layer feeds the output
    # k is uniform on 1..most: the mean of 180 draws lies within five standard errors of its expectation
    expected, deviation = (1 + most) / 2, np.sqrt((most**2 - 1) / 12)
    assert abs(out.mean() - expected) <= 5 * deviation / np.sqrt(len(out))


def test_random_layered_chooses_targets_uniformly() -> None:
    into = sum(random_layered(2, 40, 0.3, seed).in_degree[40:80] for seed in range(100))
    assert isinstance(into, np.ndarray)
    # 100 networks x 40 neurons x 12 targets on average over 40 neurons: 1200 each, standard deviation about 30
    assert abs(into - into.mean()).max() < 5 * np.sqrt(into.mean())


def test_uniform_layers_hold_exactly_the_share() -> None:
    network = uniform_layers([30, 50, 20], 0.13, seed=1)
    assert np.bincount(network.layer).tolist() == [195, 130]  # type: ignore[arg-type]
    dense = uniform_layers([3, 4], 1.0)
    assert dense.n_connections == 12


def test_bert_ffn_shape() -> None:
    network = bert_ffn(0.01)
    assert network.n_neurons == 6144 and network.n_connections == 2 * round(0.01 * 1024 * 4096)
    assert network.depth.max() == 2 and len(network.outputs) == 1024


def bag_sizes(network: Network) -> list[int]:
    """Neurons that must be held at each connection: between a neuron's first and last use."""
    w = network.n_connections
    ends = np.arange(w)
    first, last = np.full(network.n_neurons, w), np.full(network.n_neurons, -1)
    for ids in (network.sources, network.targets):
        np.minimum.at(first, ids, ends)
        np.maximum.at(last, ids, ends)
    return [int(((first <= k) & (last >= k)).sum()) for k in range(w)]


@pytest.mark.parametrize(("m_g", "in_degree"), [(3, 1), (7, 5), (20, 5), (30, 4)])
def test_compact_growth_fits_its_memory_in_stored_order(m_g: int, in_degree: int) -> None:
    network = compact_growth(m_g, 120, in_degree, seed=2)
    assert network.n_neurons == m_g - 2 + 121 and len(network.inputs) == m_g - 2 and len(network.outputs) == 1
    assert network.n_connections == 120 * in_degree + m_g - 2
    assert max(bag_sizes(network)) <= m_g - 1
    assert (network.in_degree[m_g - 2 : -1] == in_degree).all() and network.in_degree[-1] == m_g - 2
    assert (network.out_degree[:-1] >= 1).all()


def paths(network: Network, first: int, last: int) -> np.ndarray:
    """Paths from every input to every neuron behind layers first..last-1, as a matrix product."""
    assert network.layer is not None
    product = None
    for k in range(first, last):
        s, t = network.sources[network.layer == k], network.targets[network.layer == k]
        a = np.zeros((s.max() - s.min() + 1, t.max() - t.min() + 1))
        a[s - s.min(), t - t.min()] = 1
        product = a if product is None else product @ a
    assert product is not None
    return product


@pytest.mark.parametrize(
    ("lists", "widths", "expected"),
    [
        ([[2, 3, 4]], None, 1),
        ([[2, 2], [4]], None, 4),  # a second full list multiplies the paths by the product
        ([[2, 2, 3]], [1, 2, 3, 1], 6),  # and inner Kronecker widths multiply them too
        ([[4, 4], [2, 2]], None, 4),  # a last list with a divisor of the product
    ],
)
def test_radix_net_joins_every_input_to_every_output_equally(
    lists: list[list[int]], widths: list[int] | None, expected: int
) -> None:
    network = radix_net(lists, widths)
    layers = sum(len(radices) for radices in lists)
    assert (paths(network, 0, layers) == expected).all()


def test_radix_net_blocks_are_permuted_copies() -> None:
    order = np.random.default_rng(0).permutation(8)
    network = radix_net([[2, 4]], blocks=1, permutations=[np.arange(8), order])
    assert network.layer is not None
    for k in range(2):
        parts = []
        for layer in (k, 2 + k):
            a = np.zeros((8, 8))
            a[
                network.sources[network.layer == layer] - 8 * layer,
                network.targets[network.layer == layer] - 8 * (layer + 1),
            ] = 1
            parts.append(a)
        assert np.array_equal(parts[1], parts[0][order][:, order])
    assert not np.array_equal(radix_net([[2, 4]], blocks=2, seed=1).sources, radix_net([[2, 4]], blocks=2).sources)


def test_radix_net_of_the_challenge() -> None:
    network = radix_net([[2] * 6], [16] * 7, blocks=2)
    fed = network.in_degree[1024:]
    assert network.n_neurons == 13 * 1024 and (fed == 32).all() and (network.out_degree[:-1024] == 32).all()
    assert network.weights is not None and (network.weights == 1 / 16).all()
    assert network.biases is not None and (network.biases[1024:] == np.float32(-0.3)).all()
    assert (network.biases[:1024] == 0).all() and network.activation == "clipped-relu"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: random_layered(3, 10, 0.0), "density is above 0"),
        (lambda: random_layered(0, 10, 0.5), "n_layers must be a whole number from 1"),
        (lambda: random_layered(3, 10**6, 0.5), "connections are too many"),
        (lambda: random_layered(10**21, 6, 0.5), "n_layers must be a whole number from 1 to"),
        (lambda: random_layered(2**29, 6, 0.5), "neurons and .* connections are too many"),
        (lambda: random_layered(2, 9**999, 0.5), "width must be a whole number from 1 to"),
        (lambda: uniform_layers([10**400, 3], 0.5), r"widths\[0\] must be a whole number from 1 to"),
        (lambda: compact_growth(10**20), "m_g must be a whole number from 3 to"),
        (lambda: compact_growth(500, 2**25, 400), "are too many to be held"),
        (lambda: dense_layers([10**6, 10**6]), "are too many to be held"),
        (lambda: chains(10**6, 10**6), "are too many to be held"),
        (lambda: random_layered(3, 60, 0.52), "which ends at 0.508 for layers of 60: use uniform-layers"),
        (lambda: uniform_layers([3], 0.5), "at least two layers"),
        (lambda: uniform_layers([3, 0], 0.5), r"widths\[1\] must be"),
        (lambda: compact_growth(2), "m_g must be a whole number from 3"),
        (lambda: compact_growth(6), "in_degree 5 needs m_g of at least 7"),
        (lambda: radix_net([]), "at least one radix list"),
        (lambda: radix_net([[2, 1]]), "a radix is an integer of at least 2, not 1"),
        (lambda: radix_net([[2, 2], [3]]), "product 3: it must divide 4"),
        (lambda: radix_net([[2, 2], [2], [4]]), "product 2: it must be 4"),
        (lambda: radix_net([[2, 2]], [1, 1]), "2 layers need 3 Kronecker widths, not 2"),
        (lambda: radix_net([[2, 2]], [1, 2, 2], blocks=2), "cannot follow one another"),
        (lambda: radix_net([[2, 2]], [1, 2, 1], blocks=2), "need layers of one width"),
        (lambda: radix_net([[2, 2]], permutations=[[0, 1, 2, 2]]), "block 0: not a permutation of 0 to 3"),
        (lambda: radix_net([[2] * 40]), "too many to be held"),
    ],
)
def test_refusals(make: Callable[[], Network], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_network_claims_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWATT_MAX_BYTES", "1M")
    with pytest.raises(InputError, match=r"a network of 50000 connections would take .* bytes of memory, more than"):
        uniform_layers([1000, 1000], 0.05)
    assert uniform_layers([100, 100], 0.1).n_connections == 1000
