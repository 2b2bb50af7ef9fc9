"""Commands as careless people use them: inputs are kept, matrices are chosen, what was read is said."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from oracles.theory import dense_layers
from safetensors.numpy import save_file
from typer.testing import CliRunner

from edgewatt.cli import app
from edgewatt.cli.parts.arguments import written
from reorder.tuples.files import read_matrix
from traces.base.errors import InputError
from traces.base.resources import shipped_path
from traces.readers.native import save

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgewatt", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=cwd, env=environment, text=True, capture_output=True, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(dense_layers([12, 10, 8]), tmp_path / "net.npz")
    scipy.sparse.save_npz(tmp_path / "w.npz", scipy.sparse.random(8, 8, 0.5, "csr", random_state=0))
    (tmp_path / "c.yaml").write_text("network: {file: net.npz}\nfast_memory: {size: 7}\nmeasure: io\n")
    (tmp_path / "s.yaml").write_text("base: c.yaml\ngrid: {fast_memory.size: [7, 8]}\n")
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    (tmp_path / "a.din").write_text("0 0\n1 20\n0 40\n")
    shutil.copy(shipped_path("dram", "lpddr4-3200"), tmp_path / "part.yaml")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("order net.npz -o net.npz", "net.npz"), ("order net.npz --explain net.npz", "net.npz"),
        ("order-tuples w.npz -o w.npz", "w.npz"), ("run c.yaml --json c.yaml", "c.yaml"),
        ("run c.yaml --json net.npz", "net.npz"), ("sweep s.yaml --json net.npz", "net.npz"),
        ("pays net.npz --order two-optimal -o net.npz", "net.npz"), ("arena buffers.csv -o buffers.csv", "buffers.csv"),
        ("export a.din -f dinero -o a.din", "a.din"),
        ("dram a.din --commands a.din", "a.din"), ("validate --network net.npz --json net.npz", "net.npz"),
        ("learn eon net.npz -o net.npz", "net.npz"),
        ("part library part.yaml part.yaml", "part.yaml"), ("part import part.yaml -o part.yaml", "part.yaml"),
    ],
)  # fmt: skip
def test_no_output_is_an_input(folder: Path, command: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = (folder / target).read_bytes()
    done = CliRunner().invoke(app, command.split())
    assert isinstance(done.exception, InputError) and "--force" in str(done.exception), done.output
    assert (folder / target).read_bytes() == before


def test_force_and_links_and_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "link.npz").symlink_to("net.npz")
    assert isinstance(CliRunner().invoke(app, ["order", "link.npz", "-o", "net.npz"]).exception, InputError)
    done = CliRunner().invoke(app, ["order-tuples", "w.npz", "-o", "w.npz", "--force", "--stride", "row"])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, ["run", "c.yaml", "-o", "r"]).exit_code == 0
    (record,) = (folder / "r" / "records").iterdir()
    assert isinstance(CliRunner().invoke(app, ["report", "r", "-o", str(record)]).exception, InputError)
    both = CliRunner().invoke(app, ["order", "net.npz", "-o", "x", "--json", "./x"])
    assert "two outputs" in str(both.exception)


def test_every_option_that_names_a_file_to_write_is_declared() -> None:
    """A new command cannot forget it: whoever says 'Write' in the help of an option with a file declares the output."""
    import inspect

    import typer

    def commands(group: typer.Typer) -> list:
        return group.registered_commands + [c for sub in group.registered_groups for c in commands(sub.typer_instance)]

    for command in commands(app):
        for parameter in inspect.signature(command.callback).parameters.values():
            option = parameter.default
            said, names = getattr(option, "help", None) or "", getattr(option, "param_decls", None) or ()
            writes = getattr(option, "metavar", None) == "FILE" and said.startswith("Write")
            if writes or "to write" in said or {"--json", "--output"} & set(names):
                assert option.parser is written, f"{command.callback.__name__} {parameter.name}"


def weights(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    shapes = {"conv1.weight": (8, 4, 3, 3), "fc1.weight": (16, 32), "fc2.weight": (32, 16), "bn.weight": (8,)}
    tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    groups = np.abs(tensors["fc1.weight"]).reshape(-1, 4)
    groups[np.arange(len(groups))[:, None], np.argsort(groups, axis=1)[:, :2]] = 0
    tensors["fc1.weight"] = groups.reshape(16, 32)
    blocks = np.zeros((32, 16), np.float32)
    blocks[:8, :8] = blocks[8:16, 8:] = 1.5
    tensors["fc2.weight"] = blocks
    save_file(tensors, folder / "m.safetensors")
    return folder / "m.safetensors"


def test_one_of_several_matrices_is_chosen(tmp_path: Path) -> None:
    path = weights(tmp_path)
    asked = run("order-tuples", path)
    assert asked.returncode == 2 and "3 matrices: choose one with --names" in asked.stderr, asked.stderr
    assert "conv1.weight, fc1.weight, fc2.weight" in asked.stderr
    for name, said in (
        ("conv1.weight", "8 x 36, 288 entries (100.0 %)"),
        ("fc1*", "16 x 32, 256 entries (50.0 %); it is 2:4 sparse"),
        ("fc2.weight", "block-sparse: blocks of 8 x 8, 25% of them kept"),
    ):
        done = run("order-tuples", path, "--names", name, "--stride", "row", "-o", tmp_path / "o.npz", "--force")
        assert done.returncode == 0 and said in done.stderr, done.stderr
    two = run("order-tuples", path, "--names", "fc*")
    assert two.returncode == 2 and "2 matrices fit 'fc*', one is wanted" in two.stderr
    assert run("order-tuples", path, "--names", "fc3").returncode == 2


def test_pruned_tuples_are_the_largest(tmp_path: Path) -> None:
    path = weights(tmp_path)
    out = tmp_path / "o.npz"
    done = run("order-tuples", path, "--names", "conv1.weight", "--density", "0.1", "--stride", "row", "-o", out)
    assert "8 x 36, 29 entries (10.1 %)" in done.stderr, done.stderr
    kept, every = read_matrix(out), read_matrix(path, names=["conv1.weight"])
    assert kept.nnz == 29 and np.abs(kept.data).min() >= np.sort(np.abs(every.data))[-29]
    for share in ("0", "-0.1", "nan"):
        refused = run("order-tuples", path, "--names", "conv1.weight", "--density", share)
        assert refused.returncode == 2 and "density is the share to keep" in refused.stderr, refused.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line(folder: Path) -> None:
    for command in ("order net.npz --json /dev/full", "order net.npz -o /dev/full", "run c.yaml --json /dev/full"):
        done = run(*command.split(), cwd=folder)
        assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr
        assert "No space left on device" in done.stderr.splitlines()[-1]
    for command in ("list orderings", "order net.npz", "run c.yaml", "doctor"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "edgewatt", *command.split()], cwd=folder, stdout=full, stderr=subprocess.PIPE,
                text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120,
            )  # fmt: skip
        assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
        assert len([line for line in done.stderr.splitlines() if "cannot be written" in line]) == 1


def test_a_foreign_traces_is_named_first(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "__init__.py").write_text("raise RuntimeError('the other one ran')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    for code in (["-m", "edgewatt", "doctor"], ["-c", "import edgewatt as ew; ew.load('x')"]):
        done = subprocess.run(
            [sys.executable, *code], env=environment, text=True, capture_output=True, timeout=60, cwd="/"
        )
        assert done.returncode and "is not edgewatt's" in done.stderr and "ran" not in done.stderr, done.stderr
        assert str(tmp_path) in done.stderr
    done = subprocess.run([sys.executable, "-m", "edgewatt", "doctor"], cwd=tmp_path, text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60)  # fmt: skip
    assert "ran" not in done.stderr.replace("traces", ""), done.stderr
