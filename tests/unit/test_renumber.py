"""Neurons numbered otherwise: the same outputs, fewer lines filled."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.orders.ordering import machine_cost_for
from hwmodel.processor.export_c import export_c
from traces.base.errors import InputError
from traces.generators.networks import random_layered, uniform_layers
from traces.networks.forward import forward
from traces.networks.network import Network, renumbered
from traces.readers.native import read_extras, save

CACHE = {"caches": [{"size_bytes": 2048, "line_bytes": 64, "ways": 8, "policy": "lru"}]}


@st.composite
def numbered(draw: st.DrawFn) -> tuple[Network, np.ndarray]:
    widths = draw(st.lists(st.integers(2, 8), min_size=2, max_size=4))
    seed = draw(st.integers(0, 99))
    network, rng = uniform_layers(widths, draw(st.floats(0.3, 1.0)), seed=seed), np.random.default_rng(seed)
    network = network.with_(biases=rng.normal(size=network.n_neurons))
    number = np.empty(network.n_neurons, np.int64)
    for level in np.unique(network.depth):
        ids = np.flatnonzero(network.depth == level)
        number[ids] = rng.permutation(ids)
    return network, number


@settings(deadline=None)
@given(numbered())
def test_it_computes_the_same_outputs(case: tuple[Network, np.ndarray]) -> None:
    network, number = case
    other = renumbered(network, number)
    vectors = np.random.default_rng(1).random((3, len(network.inputs)), np.float32)
    values, moved = forward(network, vectors), forward(other, vectors)
    assert np.array_equal(values, moved[:, number])
    assert np.array_equal(values[:, network.outputs], moved[:, other.outputs])
    assert np.array_equal(renumbered(other, np.argsort(number)).sources, network.sources)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_an_export_computes_the_same_outputs(tmp_path: Path) -> None:
    network = random_layered(3, 60, 0.1, seed=2)
    found = ew.orders.renumber(network, machine=CACHE, objective="bytes", rounds=2, moves=1000)
    save(found.network, tmp_path / "net.npz", extras={"number": found.number})
    loaded = ew.load(tmp_path / "net.npz")
    assert np.array_equal(read_extras(tmp_path / "net.npz")["number"], found.number)
    vectors = np.random.default_rng(3).random((8, len(network.inputs)), np.float32)
    expected = ew.compile_inference(network, found.ordering, lanes=8).run(vectors)
    assert np.array_equal(ew.compile_inference(loaded, found.ordering, lanes=8).run(vectors), expected)
    for one, expected_rows in ((network, expected), (loaded, expected)):
        (tmp_path / "net.c").write_text(export_c(one, found.ordering, name="net"))
        library = tmp_path / f"net{id(one)}.so"
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-O1", "-ffp-contract=off", "-o", library, tmp_path / "net.c"], check=True
        )
        run = ctypes.CDLL(str(library)).net_run
        for vector, row in zip(vectors, expected_rows, strict=True):
            out = np.zeros(len(network.outputs), np.float32)
            run(np.ascontiguousarray(vector).ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p))
            assert out == pytest.approx(row, rel=1e-6)


def test_sparse_layers_fill_fewer_lines_than_any_order_of_theirs() -> None:
    network = random_layered(2, 1000, 0.003, seed=1)
    found = ew.orders.renumber(network, machine=CACHE, objective="bytes", rounds=1, moves=2000)
    assert not np.array_equal(found.number, np.arange(network.n_neurons))
    assert found.fills < 0.4 * found.plain_fills
    plain = ew.order(network, "auto", memory=None, objective="bytes", machine=CACHE, lanes=1, rounds=1, moves=2000)
    assert found.value == found.model(found.ordering.edges) < plain.parameters["value"]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ([0, 1, 2], "one integer per neuron, 5 in all, not int64 of shape"),
        ([0.0, 1, 2, 3, 4], "one integer per neuron, 5 in all, not float64"),
        ([0, 1, 2, 3, 5], "neuron 4 would become 5: ids are 0 to 4"),
        ([0, 0, 2, 3, 4], "neurons 0 and 1 would both become 0"),
        ([0, 2, 1, 3, 4], "neuron 1 of depth 0 would take the id 2 of depth 1"),
    ],
)
def test_bad_numberings(number: list, message: str) -> None:
    network = Network([0, 1, 0, 1, 2, 3], [2, 2, 3, 3, 4, 4], 5, [0, 1], [4])
    with pytest.raises(InputError, match=message):
        renumbered(network, number)


def test_it_is_refused_where_a_neuron_has_lines_of_its_own() -> None:
    network = random_layered(2, 30, 0.2, seed=1)
    with pytest.raises(InputError, match="whose lines hold several neurons; here a row fills lines of 64 bytes"):
        ew.orders.renumber(network, machine=CACHE, lanes=16)
    with pytest.raises(InputError, match="here a scratchpad moves rows"):
        ew.orders.renumber(network, machine="scratchpad-8k")


def test_the_command_line(tmp_path: Path) -> None:
    network = random_layered(3, 100, 0.05, seed=1)
    save(network, tmp_path / "net.npz")
    asked = ["order", str(tmp_path / "net.npz"), "--objective", "bytes", "--system", "edge", "--lanes", "1"]
    files = ["--renumber", str(tmp_path / "new.npz"), "-o", str(tmp_path / "order.npz")]
    done = CliRunner().invoke(app, [*asked, *files, "-s", "rounds=1", "-s", "moves=500"])
    assert done.exit_code == 0, done.output
    assert "lines filled: " in done.output
    made = ew.load(tmp_path / "new.npz")
    order = ew.order(made, "file", memory=3, path=str(tmp_path / "order.npz"))
    judge = machine_cost_for(made, "bytes", "edge", lanes=1)
    assert judge(order.edges) <= machine_cost_for(network, "bytes", "edge", lanes=1)(np.arange(network.n_connections))
    done = CliRunner().invoke(app, [*asked, *files, "-m", "tiles"])
    assert isinstance(done.exception, InputError) and "finds its own order" in str(done.exception)
