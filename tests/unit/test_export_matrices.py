"""edgewatt export -f matrix: the same matrices, their tuples in the order of work, and SciPy computes the same."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.point.matrices import layer_matrices
from edgewatt.validate.matrices import validate_matrix
from reorder.cdr.files import read_matrix
from traces.base.resources import shipped_path
from traces.work.forward import forward


def export(tmp_path: Path, suffix: str) -> list[Path]:
    quickstart = str(shipped_path("examples", "quickstart"))
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
