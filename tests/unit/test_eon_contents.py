"""EON without PyTorch: its network by the oracle, the features of neurons, and what a checkpoint may hold."""

import json

import numpy as np
import pytest
from oracles.eon_oracle import policy
from safetensors.numpy import save

from reorder.learning.eon.contents import KINDS, VERSION, Look, contents, fingerprint, shapes
from reorder.learning.eon.spectrum import features
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
    assert found.curve == [Look(1, 0.5, 60.25, 50, 50, 55, 55)] and (found.best == held["best"]).all()
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
