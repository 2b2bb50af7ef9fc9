"""A file at the wrong command: every command says what the file is and which command takes it, and that one does."""

import gzip
import inspect
import pickle
import re
import shlex
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
import typer
from checkpoints import gguf
from hypothesis import given
from hypothesis import strategies as st
from model_files import make_tflite
from safetensors.numpy import save_file
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.cli.parts.arguments import Reads, written
from edgewatt.cli.parts.recognition import KINDS, kind_of
from traces.base.errors import InputError, did_you_mean
from traces.base.resources import shipped_path
from traces.readers.native import save

pytestmark = pytest.mark.application

RUN = "network: {file: net.npz}\nfast_memory: {size: 8}\ncaches: [{size_bytes: 512, ways: 2}]\n"
FILES = {
    "net.npz": "network", "w.npz": "matrix", "w.mtx": "matrix", "w.safetensors": "weights", "model.tflite": "model",
    "order.npz": "order", "record.json": "record", "graph.json": "graph", "sweep.yaml": "sweep",
    "my.yaml": "configuration", "my.yml": "configuration", "my run.json": "configuration", "part.yaml": "part",
    "system.yaml": "system", "buffers.csv": "buffers", "plan.json": "plan",
    "table.csv": "table", "m.gguf": "gguf",
    "page.html": "page", "net.pt": "pickle", "old.pkl": "pickle", "a.din": "trace",
    "t.npz": "trace", "results": "results",
}  # fmt: skip


def invoke(*arguments: str) -> typer.testing.Result:  # type: ignore[name-defined]
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80"})


GRAPH = """{"nodes": [
{"name": "x", "shape": [8], "bytes": 8}, {"name": "a", "inputs": ["x"], "shape": [9], "bytes": 9},
{"name": "b", "inputs": ["x"], "shape": [9], "bytes": 9},
{"name": "y", "inputs": ["a", "b"], "shape": [1], "bytes": 1}],
"outputs": ["y"]}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of every kind."""
    here = tmp_path_factory.mktemp("kinds")
    rng = np.random.default_rng(5)
    layers = [scipy.sparse.random(a, b, 0.6, "csr", random_state=rng, dtype="float32") for a, b in ((9, 7), (5, 9))]
    scipy.sparse.save_npz(here / "w.npz", layers[0])
    scipy.io.mmwrite(here / "w.mtx", layers[0])
    save_file({"fc.weight": layers[0].toarray()}, here / "w.safetensors")
    network = ew.from_matrices(layers)
    save(network, here / "net.npz")
    tensors = [("x", (1, 16)), ("a", (1, 64)), ("b", (1, 4)), ("y", (1, 4))]
    operators = [("ABS", [0], [1]), ("RELU", [0], [2]), ("ADD", [2, 2], [3])]
    (here / "model.tflite").write_bytes(make_tflite(operators, tensors, outputs=(1, 3)))
    (here / "graph.json").write_text(GRAPH)
    (here / "m.gguf").write_bytes(gguf({"output.weight": (0, (2, 4), bytes(32))}))
    for name in ("my.yaml", "my.yml"):
        (here / name).write_text(RUN)
    (here / "my run.json").write_text('{"network": {"file": "net.npz"}, "fast_memory": {"size": 8}, "measure": "io"}')
    (here / "sweep.yaml").write_text("base: my.yaml\ngrid: {encoder: [raw, dbi-dc]}\n")
    shutil.copy(shipped_path("dram", "lpddr4-3200"), here / "part.yaml")
    shutil.copy(shipped_path("systems", "scratchpad-8k"), here / "system.yaml")
    (here / "buffers.csv").write_text("id,lower,upper,size\na,0,2,8\nb,1,3,8\n")
    with zipfile.ZipFile(here / "net.pt", "w") as archive:  # as torch.save writes
        archive.writestr("net/data.pkl", pickle.dumps({"fc.weight": 1}, 2))
        archive.writestr("net/version", "3")
    (here / "old.pkl").write_bytes(pickle.dumps({"fc.weight": 1}))
    (here / "a.din").write_text("0 0\n1 20\n0 40\n")
    (record,) = ew.run(here / "my.yaml", results=here / "results")
    shutil.copy(here / "results" / "records" / f"{record.hash}.json", here / "record.json")
    ew.results.collect(here / "results", here / "table.csv")
    for command in (
        f"order {here}/net.npz -m two-optimal -M 8 -o {here}/order.npz --explain {here}/page.html",
        f"export {here}/my.yaml -f npz -o {here}/t.npz",
        f"schedule {here}/graph.json --json {here}/plan.json",
    ):
        done = invoke(*command.split())
        assert done.exit_code == 0, f"{command}: {done.output}{done.exception!r}"
    return here


def test_every_kind_is_recognised(folder: Path) -> None:
    assert {name: kind_of(folder / name) for name in FILES} == FILES
    assert set(FILES.values()) == KINDS.keys()
    (folder / "packed.din.gz").write_bytes(gzip.compress((folder / "a.din").read_bytes()))
    assert kind_of(folder / "packed.din.gz") == "trace"
    assert kind_of(folder / "missing") is None and kind_of(folder) is None


def commands() -> dict[str, tuple[list[str], dict[str, Reads]]]:
    """Return command -> its words, and what its arguments may be."""

    def walk(group: typer.Typer, before: list[str]) -> None:
        for command in group.registered_commands:
            words = [*before, command.name or command.callback.__name__.replace("_", "-")]  # type: ignore[union-attr]
            found[" ".join(words)] = words, inspect.signature(command.callback).parameters  # type: ignore[arg-type]
        for sub in group.registered_groups:
            walk(sub.typer_instance, [*before, sub.name or sub.typer_instance.info.name])  # type: ignore[list-item, union-attr]

    found: dict[str, tuple[list[str], dict[str, Reads]]] = {}
    walk(app, [])
    return found


NO_FILES = {("list", "what"), ("list", "names")}  # arguments that name no file
OTHER_TOOLS = {("accelerator", "run"), ("part import", "file")}  # what other tools wrote
MORE = {
    "compare": ["record.json"], "collect": ["-o", "x.csv"], "pays": ["--order", "two-optimal"],
    "export": ["-f", "dinero", "-o", "x.din"], "init": ["-o", "x.yaml"], "part library": ["x.edram"],
}  # fmt: skip


def test_every_argument_says_what_it_reads() -> None:
    """A new command cannot forget it."""
    for name, (_, parameters) in commands().items():
        for key, parameter in parameters.items():
            argument = isinstance(parameter.default, typer.models.ArgumentInfo)
            if isinstance(getattr(parameter.default, "parser", None), Reads):
                assert parameter.default.parser.kinds <= KINDS.keys(), f"{name}: {key}"
            if argument and (name, key) not in NO_FILES | OTHER_TOOLS and parameter.default.parser is not written:
                assert isinstance(parameter.default.parser, Reads), f"{name}: {key}: say parser=reads(...)"


def _reads(parameters: Any) -> list[Reads]:
    arguments = (p.default for p in parameters.values() if isinstance(p.default, typer.models.ArgumentInfo))
    return [argument.parser for argument in arguments if isinstance(argument.parser, Reads)]


@pytest.mark.parametrize("name", [name for name, (_, parameters) in commands().items() if _reads(parameters)])
def test_another_kind_of_file_is_named(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    words, parameters = commands()[name]
    first = _reads(parameters)[0]
    for file, kind in FILES.items():
        if kind in first.kinds:
            continue
        done = invoke(*words, file, *MORE.get(name, []))
        said = str(done.exception)
        assert isinstance(done.exception, InputError), f"{name} {file}: {done.output}{said}"
        assert said.startswith(f"{file}: this is {KINDS[kind].noun}, not {first.expected}: "), said


def test_the_advice_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command that a message names runs with the file it was given for."""
    monkeypatch.chdir(folder)
    other = {"NETWORK": "net.npz", "TRACE": "a.din", "OTHER": "record.json"}
    for file, kind in FILES.items():
        advice = KINDS[kind].advice.replace("{file}", shlex.quote(file))
        for command in re.findall(r"`edgewatt ([^`]*)`", advice):
            if " " not in command or (kind, command.split()[0]) == ("model", "order"):
                continue  # a command's name alone, and a model that is not a chain of layers
            words = [other.get(word, word) for word in shlex.split(command)]
            more = {"order": ["-M", "8"], "run": ["-o", "runs"], "sweep": ["-o", "s", "--executor", "inline"]}
            done = invoke(*words, *more.get(words[0], []))
            assert done.exit_code == 0, f"{command}: {done.output}{done.exception!r}"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep net.npz", "net.npz: this is a network, not a sweep file: `edgewatt order net.npz` orders it"),
        ("run graph.json", "graph.json: this is an operator graph, not a network or a run configuration"),
        ("prune net.npz", "net.npz: pruning needs --calibration NPZ"),
        ("run net.npz --system my.yaml", "my.yaml: this is a run configuration, not a machine"),
        ("run my.yaml --system edge", "in a configuration write 'system: edge'"),
        ("pays net.npz --order w.npz", "w.npz: this is a sparse matrix, not an order of connections"),
        ("dram a.din --part my.yaml", "my.yaml: this is a run configuration, not a memory part"),
        ("validate --network order.npz --order order.npz", "order.npz: this is an order of connections, not a network"),
        ("export net.npz -f dinero -o x", "net.npz: this is a network, not a run configuration or a trace"),
        ("run mu.yaml", "mu.yaml: no such file (did you mean 'my.yaml'?)"),
        ("run my.ymll", "my.ymll: no such file (did you mean 'my.yml'?)"),
        ("sweep swep.yaml", "swep.yaml: no such file (did you mean 'sweep.yaml'?)"),
        ("show recrd.json", "recrd.json: no such file or folder (did you mean 'record.json'?)"),
        ("rerun recrd.json", "recrd.json: no such file or folder (did you mean 'record.json'?)"),
        ("report result", "result: no such file or folder (did you mean 'results'?)"),
        ("dram b.din", "b.din: no such file (did you mean 'a.din'?)"),
        ("arena bufers.csv", "bufers.csv: no such file (did you mean 'buffers.csv'?)"),
        ("order-tuples w.nzp", "w.nzp: no such file (did you mean 'w.npz'?)"),
        ("dram a.din --part prt.yaml", "did you mean 'part.yaml'?"),
        ("dram a.din --part lpddr4", "did you mean 'lpddr4-3200'?"),
        ("pays net.npz --order ordr.npz", "did you mean 'order.npz'?"),
        ("run .", ".: layers in different kinds of file (.mtx, .npz, .safetensors): use one kind"),
    ],
)  # fmt: skip
def test_messages(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str) -> None:
    monkeypatch.chdir(folder)
    done = invoke(*command.split())
    assert isinstance(done.exception, InputError) and message in str(done.exception), done.exception


def test_a_good_file_keeps_its_own_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = invoke("order", "net.npz", "--memory", "1")
    assert "this is a" not in str(done.exception), done.exception
    assert "edgewatt schedule" in str(invoke("order", "model.tflite").exception)


@given(
    st.binary(max_size=300), st.sampled_from([".yaml", ".json", ".npz", ".csv", ".din", ".tflite", "", ".gz", ".xz"])
)
def test_any_bytes_are_looked_at_safely(tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    for begin in (b"", b"PK\x03\x04", b"{", b"- [", b"id,lower,upper,size\n", b"\x1f\x8b"):
        path.write_bytes(begin + data)
        assert kind_of(path) in (None, *KINDS)


def test_the_beginning_of_a_name_is_understood() -> None:
    assert did_you_mean("lpddr4", ["lpddr5-6400", "lpddr4-3200"]) == " (did you mean 'lpddr4-3200'?)"
    assert did_you_mean("LPDDR4", ["lpddr5-6400", "lpddr4-3200"]) == " (did you mean 'lpddr4-3200'?)"
