"""edgewatt export -f matrix: the same matrices, their tuples in the order of work, and SciPy computes the same."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.checks.run import validate_matrix
from edgewatt.cli import app
from edgewatt.memory.exports import _groups, layer_matrices, write_matrices
from reorder.tuples.files import read_matrix
from traces.base.resources import shipped_path
from traces.networks.forward import forward

pytestmark = pytest.mark.application


def export(tmp_path: Path, suffix: str) -> list[Path]:
    quickstart = str(shipped_path("examples", "formats"))
    output = str(tmp_path / f"w{suffix}")
    call = ["export", quickstart, "-f", "matrix", "-o", output, "--point", "6"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    return [tmp_path / f"w-{k}{suffix}" for k in (1, 2, 3)]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".mtx"])
def test_the_written_matrices_are_the_networks(tmp_path: Path, suffix: str) -> None:
    network = ew.load(shipped_path("examples/networks", "digits_small", ".npz"))
    plain = layer_matrices(network, np.arange(network.n_connections))
    written = [read_matrix(path) for path in export(tmp_path, suffix)]
    for before, after in zip(plain, written, strict=True):
        assert all(check.passed for check in validate_matrix(before, after.tocsr(), stride=32))
    assert any((before.indices != after.tocsr().indices).any() for before, after in zip(plain, written, strict=True))


def test_scipy_computes_the_forward_pass_from_the_written_matrices(tmp_path: Path) -> None:
    network = ew.load(shipped_path("examples/networks", "digits_small", ".npz")).with_(biases=None)
    values = network.batch[:5].astype(np.float64).T
    matrices = [read_matrix(path).tocsr() for path in export(tmp_path, ".npz")]
    for matrix in matrices[:-1]:
        values = np.maximum(matrix @ values, 0)
    expected = forward(network, network.batch[:5])[:, np.sort(network.outputs)]
    assert np.allclose((matrices[-1] @ values).T, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("suffix", [".npz", ".mtx"])
@pytest.mark.parametrize("ordering", ["two-optimal", "by-source", "layerwise"])
def test_the_files_hold_the_order_of_work(tmp_path: Path, ordering: str, suffix: str) -> None:
    """Walked from the files, the order has the I/Os of the record."""
    config = {
        "network": {"file": str(shipped_path("examples/networks", "digits_small", ".npz"))},
        "orderings": ordering,
        "strides": {"kind": "greedy", "stride": 8},
        "fast_memory": {"size": 50},
        "measure": "io",
    }
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    call = ["export", str(tmp_path / "run.yaml"), "-f", "matrix", "-o", str(tmp_path / f"w{suffix}"), "--json", "-"]
    done = CliRunner().invoke(app, call, catch_exceptions=False)
    network = ew.load(config["network"]["file"])
    load = {".npz": scipy.sparse.load_npz, ".mtx": scipy.io.mmread}[suffix]
    matrices = [load(path).tocoo() for path in json.loads(done.stdout)["files"]]
    groups = _groups(network)
    keys = (network.sources * network.n_neurons + network.targets).tolist()
    place = {key: edge for edge, key in enumerate(keys)}
    walked: list[int] = []
    for (columns, rows), matrix in zip(pairwise(groups), matrices, strict=True):
        walked += [place[key] for key in (columns[matrix.col] * network.n_neurons + rows[matrix.row]).tolist()]
    counts = ew.count_io(network, np.array(walked), memory=50)
    assert counts.total == ew.run(config)[0].results["io"]["total"]


def test_an_order_that_goes_back_to_a_layer_is_refused(tmp_path: Path) -> None:
    network = ew.load(shipped_path("examples/networks", "digits_small", ".npz"))
    edges = ew.order(network, "depth-first", memory=50).edges
    with pytest.raises(ew.InputError, match=r"goes back from layer \d to layer \d at its \d+th connection"):
        layer_matrices(network, edges)
    matrices = layer_matrices(network, ew.order(network, "by-source", memory=50).edges)
    with pytest.raises(ew.InputError, match=r"takes coordinate form: write .npz or .mtx"):
        write_matrices(matrices, tmp_path / "w.safetensors")
