"""Every format gives the network that was written; orientation, layers and names are as documented."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from strategies import networks

from traces.base.errors import InputError
from traces.networks.network import Network
from traces.readers import load, native
from traces.readers.scipy_sparse import from_matrices

A = np.array([[1.5, 0, 2], [0, 0, -3]], np.float32)  # 3 inputs, 2 outputs
B = np.array([[0, 4], [5, 0], [6, 7]], np.float32)  # 2 inputs, 3 outputs


def edges(network: object) -> list[tuple[int, int, float]]:
    assert isinstance(network, Network) and network.weights is not None
    return list(zip(network.sources.tolist(), network.targets.tolist(), network.weights.tolist(), strict=True))


EXPECTED = [(0, 3, 1.5), (2, 3, 2), (2, 4, -3), (4, 5, 4), (3, 6, 5), (3, 7, 6), (4, 7, 7)]


def check(network: object) -> None:
    assert isinstance(network, Network)
    assert edges(network) == EXPECTED
    assert network.n_neurons == 8
    assert network.inputs.tolist() == [0, 1, 2] and network.outputs.tolist() == [5, 6, 7]
    assert network.layer is not None and network.layer.tolist() == [0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_scipy_npz_one_matrix_per_layer(tmp_path: Path, layout: str) -> None:
    for name, matrix in (("layer2.npz", A), ("layer10.npz", B)):
        scipy.sparse.save_npz(tmp_path / name, getattr(scipy.sparse, f"{layout}_matrix")(matrix))
    check(load(tmp_path))  # natural order: layer2 before layer10
    check(load([tmp_path / "layer2.npz", str(tmp_path / "layer10.npz")]))


@pytest.mark.parametrize("dense", [False, True])
def test_matrix_market(tmp_path: Path, dense: bool) -> None:
    for name, matrix in (("1.mtx", A), ("2.mtx", B)):
        scipy.io.mmwrite(tmp_path / name, matrix if dense else scipy.sparse.coo_matrix(matrix), precision=9)
    check(load([tmp_path / "1.mtx", tmp_path / "2.mtx"]))


def test_numpy_arrays_are_layers(tmp_path: Path) -> None:
    np.save(tmp_path / "layer2.npy", A)
    np.save(tmp_path / "layer10.npy", B)
    check(load(tmp_path))
    np.savez(tmp_path / "net.npz", w2=A, w10=B, steps=np.arange(3), **{"w10.bias": np.array([1, 2, 3])})
    network = load(tmp_path / "net.npz")
    check(network)
    assert isinstance(network, Network) and network.biases is not None
    assert network.biases.tolist() == [0, 0, 0, 0, 0, 1, 2, 3]
    assert edges(load(tmp_path / "net.npz", names=["w10"])) == [(1, 2, 4), (0, 3, 5), (0, 4, 6), (1, 4, 7)]
    for values, said in ((np.arange(5), "not int64 of shape"), (A + 1j, "not complex"), (A[None], "shape .1, 2, 3.")):
        np.save(tmp_path / "bad.npy", values)
        with pytest.raises(InputError, match=f"bad.npy: the array: a layer is a matrix of real numbers, {'.*' + said}"):
            load(tmp_path / "bad.npy")
    np.savez(tmp_path / "flat.npz", w=np.arange(4))
    with pytest.raises(InputError, match=r"flat.npz: holds no two-dimensional array"):
        load(tmp_path / "flat.npz")
    with pytest.raises(InputError, match=r"no array 'w3' .known: steps, w10, w10.bias, w2"):
        load(tmp_path / "net.npz", names=["w3"])


def test_orientation_turns_every_layer(tmp_path: Path) -> None:
    for name, matrix in (("1.mtx", A.T), ("2.mtx", B.T)):
        scipy.io.mmwrite(tmp_path / name, scipy.sparse.coo_matrix(matrix), precision=9)
    check(load(tmp_path, orientation="rows-are-inputs"))


def test_matrix_market_symmetries_and_patterns(tmp_path: Path) -> None:
    path = tmp_path / "s.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n% a comment\n\n2 2 2\n1 1 3\n2 1 4\n")
    assert edges(load(path)) == [(0, 2, 3), (1, 2, 4), (0, 3, 4)]
    path.write_text("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 4\n")
    assert edges(load(path)) == [(1, 2, -4), (0, 3, 4)]
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n")
    assert edges(load(path)) == [(0, 3, 1)]


def test_safetensors_layers_biases_and_selection(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    path = tmp_path / "model.safetensors"
    tensors = {
        "net.10.weight": B,
        "net.2.weight": A,
        "net.2.bias": np.array([0.5, -0.5], np.float32),
        "scale": np.ones(3, np.float32),
        "head.weight": np.ones((4, 4), np.float16),
    }
    save_file(tensors, path)
    network = load(path, names=["net.*.weight"])
    check(network)
    assert isinstance(network, Network) and network.biases is not None
    assert network.biases.tolist() == [0, 0, 0, 0.5, -0.5, 0, 0, 0]
    assert edges(load(path, names=["head.weight"])) == [(i, 4 + j, 1.0) for j in range(4) for i in range(4)]
    with pytest.raises(InputError, match=r"net.2.weight'.*takes 3 inputs, but the layer before gives 4 outputs"):
        load(path)
    with pytest.raises(InputError, match=r"no tensor 'head.wieght' \(did you mean 'head.weight'"):
        load(path, names=["head.wieght"])
    with pytest.raises(InputError, match="tensor 'scale' has shape"):
        load(path, names=["scale"])


def test_safetensors_bfloat16(tmp_path: Path) -> None:
    half = (A.view(np.uint32) >> 16).astype("<u2").tobytes()
    header = json.dumps({"w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, len(half)]}}).encode()
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + half)
    assert edges(load(tmp_path / "m.safetensors")) == EXPECTED[:3]


def test_matrices_in_memory() -> None:
    check(from_matrices([scipy.sparse.csr_matrix(A), B]))
    check(from_matrices([scipy.sparse.dia_array(A.T), B.T], orientation="rows-are-inputs"))


def test_a_stored_zero_is_a_connection() -> None:
    matrix = scipy.sparse.csr_matrix((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert edges(from_matrices([matrix])) == [(0, 2, 0.0), (1, 2, 1.0)]


def test_graph_challenge_single_file_and_own_names(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("1\t1\t0.5\n3\t2\t0.25\n")
    (tmp_path / "b.tsv").write_text("1\t1\t1\n3\t1\t2\n")
    network = load([tmp_path / "a.tsv", tmp_path / "b.tsv"])
    assert edges(network) == [(0, 3, 0.5), (2, 4, 0.25), (3, 6, 1), (5, 6, 2)]
    assert isinstance(network, Network) and network.activation == "clipped-relu"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(networks())
def test_native_round_trip(tmp_path: Path, network: Network) -> None:
    native.save(network, tmp_path / "n.npz", extras={"labels": [1, 2], "accuracy": 0.5, "note": "as it is"})
    again = load(tmp_path / "n.npz")
    assert isinstance(again, Network)
    for name in ("sources", "targets", "inputs", "outputs", "weights", "biases", "batch"):
        stored, given_values = getattr(again, name), getattr(network, name)
        assert stored.dtype == given_values.dtype and np.array_equal(stored, given_values)
    assert again.layer is None
    assert (again.n_neurons, again.activation, again.name) == (network.n_neurons, network.activation, network.name)
    extras = native.read_extras(tmp_path / "n.npz")
    assert (
        extras["labels"].tolist() == [1, 2] and float(extras["accuracy"]) == 0.5 and str(extras["note"]) == "as it is"
    )


def test_native_write_is_complete_or_absent(tmp_path: Path) -> None:
    network = from_matrices([A])
    with pytest.raises(InputError, match="cannot be written"):
        native.save(network, tmp_path / "no" / "n.npz")
    with pytest.raises(InputError, match="not a plain array"):
        native.save(network, tmp_path / "n.npz", extras={"bad": [object()]})
    assert list(tmp_path.iterdir()) == []


def test_quantised_checkpoints_are_refused_for_what_they_are(tmp_path):
    from safetensors.numpy import save_file

    scale = np.ones((6, 1), np.float32)
    weights = np.ones((6, 4), np.float32)
    save_file({"a.weight": weights, "a.weight_scale": scale}, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match=r"a\.weight_scale': a scale or zero point of quantised weights"):
        load(str(tmp_path / "m.safetensors"))
