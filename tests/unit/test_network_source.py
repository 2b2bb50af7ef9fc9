"""One network source for all commands and configurations: the same options mean the same network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

import edgewatt as ew
from edgewatt.runs.compute import Computation
from edgewatt.runs.memo import Memo
from edgewatt.runs.plan import load_sweep
from traces.base.resources import network_file
from traces.readers.native import save
from traces.readers.parts.model_network import Unrolled, Window

HOW = ["--names", "b.weight", "--names", "c*", "--density", "0.25", "--scope", "layer", "--activation", "identity"]
KEYS = {"names": ["b.weight", "c*"], "prune": {"density": 0.25, "scope": "layer"}, "activation": "identity"}


def weights(folder: Path) -> str:
    """A table of words that fits no layer, and two layers of which the names alone say the order."""
    rng = np.random.default_rng(0)
    shapes = {"a.embedding": (50, 9), "b.weight": (16, 12), "c.weight": (8, 16), "c.bias": (8,)}
    tensors = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    save_file(tensors, folder / "net.safetensors")
    return "net.safetensors"


def edgewatt(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgewatt", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)


COMMANDS = {
    "run": ["-s", "orderings=[two-optimal]"],
    "order": ["-m", "two-optimal", "-o", "order.npz", "--save-network", "kept.npz", "--json", "-"],
    "pays": ["--order", "two-optimal", "--size", "1KiB", "--json", "-"],
    "bench": ["--peer", "scipy", "--batch", "16", "--json", "-", "--order", "own"],
    "export": ["-f", "c", "-o", "net.c", "--json", "-"],
    "init": ["-o", "mine.yaml"],
}


def kept(folder: Path) -> ew.Network:
    (folder / "c.yaml").write_text(yaml.safe_dump({"network": {"file": weights(folder), **KEYS}, "measure": "io"}))
    return Computation(load_sweep(folder / "c.yaml").points[0], Memo())["network"]


def test_a_configuration_reads_as_the_keys_say(tmp_path: Path) -> None:
    network = kept(tmp_path)
    assert network.n_connections == (16 * 12 + 8 * 16) // 4 and network.activation == "identity"
    assert np.bincount(network.layer).tolist() == [16 * 3, 8 * 4] and len(network.inputs) == 12


@pytest.mark.application
def test_every_command_reads_the_same_network(tmp_path: Path) -> None:
    network = kept(tmp_path)
    for command, more in COMMANDS.items():
        done = edgewatt(tmp_path, command, "net.safetensors", *HOW, *more)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert "read 2 of 4 tensors" in done.stderr, command
        if "--json" in more and command in ("order", "export"):
            found = json.loads(done.stdout)
            assert found.get("connections", found.get("n_connections")) == network.n_connections, found
    saved = ew.load(tmp_path / "kept.npz")
    assert np.array_equal(saved.weights, network.weights) and saved.activation == "identity"
    said = yaml.safe_load((tmp_path / "mine.yaml").read_text())["network"]
    assert said == {"file": "net.safetensors", **KEYS}
    done = edgewatt(tmp_path, "validate", "--network", "net.safetensors", *HOW, "--order", "order.npz")
    assert done.returncode == 0, done.stderr


@pytest.mark.application
def test_options_of_networks_are_refused_where_a_configuration_says_it(tmp_path: Path) -> None:
    kept(tmp_path)
    done = edgewatt(tmp_path, "run", "c.yaml", "--density", "0.5")
    assert done.returncode == 2 and "--density goes with a network" in done.stderr, done.stderr
    done = edgewatt(tmp_path, "order", "net.safetensors", "--scope", "layer")
    assert done.returncode == 2 and "--density SHARE" in done.stderr
    for share in ("0", "-0.1", "nan", "2"):
        done = edgewatt(tmp_path, "order", "net.safetensors", "--names", "b.weight", "--density", share)
        assert done.returncode == 2 and "density is the share to keep" in done.stderr, done.stderr
    (tmp_path / "g.yaml").write_text(
        "network: {generate: {kind: random-layered, density: 0.5, n_layers: 2, width: 4}, names: [a]}\n"
    )
    done = edgewatt(tmp_path, "run", "g.yaml")
    assert done.returncode == 2 and "unused key 'names'" in done.stderr


def test_a_shipped_network_is_meant_by_its_name_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the command line and in a configuration; a file of that name wins."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text("network: {file: digits_small}\norderings: [two-optimal]\n")
    (tmp_path / "sweep.yaml").write_text(
        "base: {network: {file: digits_small}, orderings: [two-optimal]}\ngrid: {fast_memory.size: [20, 50]}\n"
    )
    for name, points in (("run.yaml", 1), ("sweep.yaml", 2)):
        plan = load_sweep(Path(name))
        assert len(plan.points) == points
        assert ew.run(name)[0].results["network"]["connections"] == 8000
    assert network_file("digits_small").endswith("digits_small.npz") and network_file("digits") == "digits"
    (tmp_path / "digits_small").write_text("mine")
    assert network_file("digits_small") == "digits_small"


@pytest.mark.application
def test_a_convolution_runs_on_the_default_machine(tmp_path: Path) -> None:
    """Its connections share stored weights, which a scratchpad's stream does not."""
    made = Unrolled("model")
    image = made.image(2, 6, 6)
    kernel = np.random.default_rng(0).standard_normal((3, 2, 3, 3)).astype(np.float32)
    save(made.network(image, made.convolution(image, kernel, Window(), "c"), name="model"), tmp_path / "model.npz")
    assert "per inference" in edgewatt(tmp_path, "run", "model.npz").stdout
    assert edgewatt(tmp_path, "init", "model.npz").returncode == 0
    done = edgewatt(tmp_path, "run", "edgewatt.yaml", "-s", "orderings=[two-optimal]")
    assert done.returncode == 0, done.stderr
