"""EON without PyTorch: its network by the oracle, the features of neurons, and what a checkpoint may hold."""

import json

import numpy as np
import pytest
from oracles.eon_oracle import policy
from safetensors.numpy import save

from cython_ext.eon.attention import Attention
from reorder.eon.contents import KINDS, VERSION, CurvePoint, contents, features, fingerprint, shapes
from traces.base.errors import InputError
from traces.generators.networks import uniform_layers

N_FEATURES, WIDTH = 6, 4


@pytest.fixture(scope="module")
def network():
    return uniform_layers([8] * 4, 0.2, 1)


def arrays(network, rng):
    """What a run of no iterations holds."""
    made = {
        f"{kind}.{name}": rng.standard_normal(shape).astype(np.float32)
        for kind in KINDS
        for name, shape in shapes(N_FEATURES, WIDTH).items()
    }
    order = np.lexsort((network.targets, network.depth[network.sources]))
    curve = np.array([[1.0, 0.5, 60.25, 50, 50, 55, 55]])
    more = {"features": features(network, N_FEATURES), "generator": np.zeros(16, np.uint8), "best": order}
    return {**made, **more, "curve": curve}


def written(path, network, held, **changes):
    about = {
        "version": VERSION, "seed": 1, "memory": 6, "iteration": 1, "seconds": 0.5, "network": fingerprint(network),
        "name": "n", **changes,
    }  # fmt: skip
    path.write_bytes(
        save({name: np.ascontiguousarray(each) for name, each in held.items()}, {"eon": json.dumps(about)})
    )
    return path


def test_features_are_eigenvectors_of_the_laplacian(network):
    found = features(network, 12) / np.sqrt(network.n_neurons)
    laplacian = np.zeros((network.n_neurons, network.n_neurons))
    for s, t in zip(network.sources, network.targets, strict=True):
        laplacian[s, t] = laplacian[t, s] = -1
    laplacian -= np.diag(laplacian.sum(axis=1))
    largest = np.linalg.eigvalsh(laplacian)[::-1][:12]
    assert np.allclose(laplacian @ found, found * largest, atol=1e-5)
    assert np.allclose(found.T @ found, np.eye(12), atol=1e-5)
    assert features(network, 100)[:, network.n_neurons :].any() == False  # noqa: E712


def test_what_is_read_is_what_was_written(network, tmp_path):
    held = arrays(network, np.random.default_rng(0))
    found = contents(written(tmp_path / "a", network, held), network)
    assert found.curve == [CurvePoint(1, 0.5, 60.25, 50, 50, 55, 55)] and (found.best == held["best"]).all()
    assert all((each == held[f"{kind}.{name}"]).all() for kind, of in found.made.items() for name, each in of.items())
    assert (found.seed, found.memory, found.iteration, found.seconds) == (1, 6, 1, 0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.pop("kept.edge.weight"), "holds 'kept.edge.weight' as float32"),
        (lambda held: held.update({"best": held["best"][:-1]}), "order"),
        (lambda held: held.update({"best": held["best"].astype(np.int32)}), "holds 'best' as int64"),
        (lambda held: held.update({"parameter.empty": np.full(WIDTH, np.nan, np.float32)}), "not finite"),
        (lambda held: held.update({"features": held["features"][:-1]}), "features of 31 neurons"),
        (lambda held: held.update({"curve": held["curve"][:, :5]}), "holds 'curve' as float64"),
    ],
)
def test_what_cannot_be_is_refused(network, tmp_path, change, message):
    held = arrays(network, np.random.default_rng(0))
    change(held)
    with pytest.raises(InputError, match=message):
        contents(written(tmp_path / "a", network, held), network)


def test_another_version_or_network_is_refused(network, tmp_path):
    held = arrays(network, np.random.default_rng(0))
    with pytest.raises(InputError, match=f"version {VERSION - 1}, this program reads {VERSION}"):
        contents(written(tmp_path / "a", network, held, version=VERSION - 1))
    with pytest.raises(InputError, match="trained for another network"):
        contents(written(tmp_path / "b", network, held), uniform_layers([8] * 4, 0.2, 2))
    with pytest.raises(InputError, match="or damaged"):
        contents(written(tmp_path / "c", network, held, memory=2))


def test_the_oracle_knows_no_order_of_frontier_and_cache(network):
    rng = np.random.default_rng(1)
    parameters = {name: rng.standard_normal(shape) for name, shape in shapes(N_FEATURES, WIDTH).items()}
    of = features(network, N_FEATURES)
    chances, value = policy(parameters, of, network.sources, network.targets, [3, 1, 7, 12], [4, 20])
    turned, same = policy(parameters, of, network.sources, network.targets, [12, 7, 1, 3], [20, 4])
    assert chances == pytest.approx(turned[::-1]) and value == pytest.approx(same) and chances.sum() == pytest.approx(1)
    alone, _ = policy(parameters, of, network.sources, network.targets, [5], [])
    assert alone.tolist() == [1.0]


def looked(tables, frontier, cache):
    """The attention of one world by its description, float64: logits and summary."""
    edge, query, key, value, node, offer, offer_bias, sentinel, weight, bias = (
        each.astype(np.float64) for each in tables
    )

    def softmax(scores):
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return scores / scores.sum(axis=-1, keepdims=True)

    rows = edge[frontier] + softmax(query[frontier] @ key[frontier].T) @ value[frontier]
    rows = (rows - rows.mean(axis=1)[:, None]) / np.sqrt(rows.var(axis=1) + 1e-5)[:, None] * weight + bias
    seen = [*cache, len(node)]
    both = np.concatenate([rows, node[cache]])
    return (rows @ offer[seen].T + offer_bias[seen]).max(axis=1), softmax(both @ sentinel) @ both


@pytest.mark.parametrize("width", [3, 7, 16, 48, 85])
def test_the_compiled_attention_and_its_gradient(width):
    rng = np.random.default_rng(width)
    n_edges, n_nodes, count, capacity = 40, 20, 5, 6
    shapes_of = [(n_edges, width)] * 4 + [(n_nodes, width), (n_nodes + 1, width), (n_nodes + 1,)] + [(width,)] * 3
    tables = [rng.standard_normal(shape).astype(np.float32) for shape in shapes_of]
    frontier = np.array([rng.permutation(n_edges)[:35] for _ in range(count)], np.int32)
    size, cached = rng.integers(1, 36, count), rng.integers(0, capacity + 1, count)
    size[0], cached[0] = 35, 0
    cache = np.array([rng.permutation(n_nodes)[:capacity] for _ in range(count)], np.int32)
    cache[np.arange(capacity) >= cached[:, None]] = -1
    d_logits, d_summary = (rng.standard_normal(shape).astype(np.float32) for shape in ((count, 35), (count, width)))

    def loss(tables):
        whole = 0.0
        for b in range(count):
            logits, summary = looked(tables, frontier[b, : size[b]], cache[b, : cached[b]])
            whole += logits @ d_logits[b, : size[b]] + summary @ d_summary[b]
        return whole

    attention = Attention(*tables)
    logits, summary = attention.forward(frontier, size, cache, -1e9)
    for b in range(count):
        wanted, worth = looked(tables, frontier[b, : size[b]], cache[b, : cached[b]])
        assert logits[b, : size[b]] == pytest.approx(wanted, abs=2e-4) and (logits[b, size[b] :] == -1e9).all()
        assert summary[b] == pytest.approx(worth, abs=2e-4)
    found = attention.learn(frontier, size, cache, d_logits, d_summary)
    for number, gradient in enumerate(found):  # the slope along any direction of any table
        along, near = rng.standard_normal(gradient.shape), 1e-6  # float64, as `loss` computes

        above, below = (
            loss([each + by * along if k == number else each for k, each in enumerate(tables)]) for by in (near, -near)
        )
        slope = (above - below) / (2 * near)
        assert float((gradient * along).sum()) == pytest.approx(
            slope, rel=1e-3, abs=1e-3 * float(np.linalg.norm(gradient))
        )


def test_the_attention_refuses_what_it_would_read_beyond():
    shapes_of = [(4, 3)] * 4 + [(5, 3), (6, 3), (6,)] + [(3,)] * 3
    tables = [np.zeros(shape, np.float32) for shape in shapes_of]
    one, size, nothing = np.zeros((1, 2), np.int32), np.array([2]), np.full((1, 2), -1, np.int32)
    Attention(*tables).forward(one, size, nothing, 0.0)
    with pytest.raises(ValueError, match="row a neuron and one more"):
        Attention(*tables[:5], tables[4], *tables[6:])
    for frontier, sizes, cache in (
        (one + 4, size, nothing),
        (one, size + 1, nothing),
        (one, size * 0, nothing),
        (one, size, nothing + 6),
        (one, np.array([2, 2]), nothing),
    ):
        with pytest.raises(ValueError, match=r"hold|sizes are|a world"):
            Attention(*tables).forward(frontier, sizes, cache, 0.0)
