"""edgewatt validate: files of others."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save_file
from typer.testing import CliRunner

from edgewatt.checks.run import Check, equal, validate
from edgewatt.cli import app
from traces.base.errors import InputError
from traces.networks.network import Network
from traces.readers.native import save


def failures(checks: list[Check]) -> list[tuple[str, ...]]:
    return [check.row() for check in checks if not check.passed]


def test_a_deviation_is_shown_and_fails() -> None:
    assert equal("cycles", 100, 106).row() == ("cycles", "100", "106", "+6 %", "FAILED")
    assert equal("rows", 3, 3).passed


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    network = Network([0, 1, 2], [1, 2, 3], n_neurons=4, inputs=[0], outputs=[3], weights=[1.0, 2.0, 3.0])
    save(network, tmp_path / "chain.npz")
    return tmp_path


def test_a_good_and_a_bad_order_from_files(chain: Path) -> None:
    (chain / "good.txt").write_text("0\n1\n2\n")
    (chain / "bad.txt").write_text("1\n0\n2\n")
    call = ["validate", "--network", str(chain / "chain.npz"), "--json", "-", "--order"]
    good = CliRunner().invoke(app, [*call, str(chain / "good.txt")])
    assert good.exit_code == 0, good.output
    assert json.loads(good.stdout)["failed"] == 0
    bad = CliRunner().invoke(app, [*call, str(chain / "bad.txt")])
    assert bad.exit_code == 1
    assert (
        "not topological: position 0 processes connection 1 (1 -> 2)" in json.loads(bad.stdout)["checks"][0]["measured"]
    )


def test_a_matrix_of_another_tool(tmp_path: Path) -> None:
    matrix = sp.csr_matrix(np.array([[1.0, 2, 0, 3], [0, 4, 5, 0]]))
    sp.save_npz(tmp_path / "a.npz", matrix)
    swapped = sp.csr_matrix((matrix.data[[2, 0, 1, 4, 3]], matrix.indices[[2, 0, 1, 4, 3]], matrix.indptr))
    sp.save_npz(tmp_path / "b.npz", swapped)
    assert failures(validate(matrix=tmp_path / "a.npz", reordered=tmp_path / "b.npz")) == []
    assert failures(validate(matrix=tmp_path / "a.npz", reordered=tmp_path / "b.npz", stride=2)) != []


def test_one_tensor_of_a_file_of_weights(tmp_path: Path) -> None:
    tensors = {f"l{k}.weight": np.arange(1.0, 13, dtype=np.float32).reshape(3, 4) * k for k in (1, 2)}
    save_file(tensors, tmp_path / "w.safetensors")
    one = ["w.safetensors", "--names", "l1.weight"]
    check = ["validate", "--reordered", "r.safetensors", "--matrix", *one]
    for call in (["order-tuples", *one, "-o", "r.safetensors"], check):
        with contextlib.chdir(tmp_path):
            done = CliRunner().invoke(app, call)
        assert done.exit_code == 0, done.output or done.exception
    other = validate(matrix=tmp_path / "w.safetensors", reordered=tmp_path / "r.safetensors", names=["l2.weight"])
    assert failures(other)


@pytest.mark.parametrize("options", [
    ["--stride-restart", "continuous"], ["--density", "0.3"], ["--layout", "csc"], ["--layout", "coo"],
    ["--layout", "coo", "--stride-restart", "continuous"],
])  # fmt: skip
def test_what_order_tuples_writes(tmp_path: Path, options: list[str]) -> None:
    sp.save_npz(tmp_path / "a.npz", sp.random(20, 30, 0.3, random_state=0, format="csr", dtype=np.float32))
    files, stride = ["--matrix", "a.npz", "--reordered", "b.npz"], ["--stride", "9"]
    with contextlib.chdir(tmp_path):
        runs = [CliRunner().invoke(app, call) for call in (
            ["order-tuples", "a.npz", "-o", "b.npz", *stride, *options],
            ["validate", *files, *stride, *options],
            ["validate", *files, *options, "--stride", "2"],
        )]  # fmt: skip
    assert [done.exit_code for done in runs] == [0, 0, 1], [done.output for done in runs]


def test_a_named_tensor_of_a_network(tmp_path: Path) -> None:
    save_file({f"l{k}": np.ones((k, 2), np.float32) for k in (1, 2)}, tmp_path / "w.safetensors")
    np.save(tmp_path / "o.npy", np.arange(4))
    files = ["--network", str(tmp_path / "w.safetensors"), "--order", str(tmp_path / "o.npy")]
    call = ["validate", *files, "--names", "l2"]
    assert CliRunner().invoke(app, call).exit_code == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing to check: give --order with --network"),
        ({"order": Path("o.txt")}, "--order and --network belong together"),
        ({"stride": 4}, "--stride .* goes with --matrix"),
        ({"layout": "csc"}, "--layout .* go with --matrix"),
        ({"matrix": "a.npz", "reordered": "b.npz", "stride_restart": "continuous"}, "goes with --stride"),
        ({"matrix": Path("a.csv"), "reordered": Path("b.csv")}, "no such file"),
    ],
)
def test_bad_requests_say_what_to_do(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate(**given)  # type: ignore[arg-type]
