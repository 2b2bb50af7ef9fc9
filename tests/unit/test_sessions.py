"""In a session: frames, charts and short words for what one holds; the first steps of a new user."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import yaml
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.results.verdict import Card, Gain, Software
from traces.base import errors
from traces.base.errors import InputError, MissingExtraError, install_command
from traces.generators.networks import uniform_layers
from traces.readers.native import save

pytestmark = pytest.mark.application

ROOT = Path(__file__).parents[2]
SWEEP: dict[str, Any] = {
    "base": {
        "network": {"generate": {"kind": "random-layered", "n_layers": 3, "width": 12, "density": 0.4}},
        "fast_memory": {"size": 8, "curve": [6, 12]},
        "caches": [{"size_bytes": 512, "ways": 2}],
    },
    "grid": {"orderings": ["two-optimal", "random-topological"], "seed": [0, 1]},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ew.sweep(SWEEP, results=tmp_path_factory.mktemp("sessions") / "r", executor="inline")


def test_a_frame_of_results(results: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    frame = results.frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 4
    assert set(frame["ordering"]) == {"two-optimal", "random-topological"}
    assert frame["energy_pj"].dtype == np.float64 and frame["config.seed"].dtype == np.int64
    assert len(ew.results.frame(results.records)) == len(ew.results.frame(results.store.folder)) == 4
    with pytest.raises(InputError, match="no finished points"):
        ew.results.frame([])
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match="frame"):
        results.frame()


def test_charts_in_a_notebook(results: Any) -> None:
    altair = pytest.importorskip("altair")
    for name in ("tradeoff", "energy", "io"):
        chart = getattr(results.plot, name)()
        assert isinstance(chart, altair.TopLevelMixin), name
        assert "data" in chart.to_dict()
    with pytest.raises(InputError, match="unknown chart 'tradeof'"):
        results.plot.chart("tradeof")


def test_short_words_for_what_one_holds(results: Any) -> None:
    network = uniform_layers([8, 8, 4], 0.5, seed=0).with_(name="<b>&mine\x1b[31m")
    graph = ew.generators.randwire(n=8, seed=0)
    held = [
        network, ew.order(network, "two-optimal", memory=6), results, results.records[0], ew.schedule(graph),
        ew.dram.load_part("lpddr4-3200"),
        ew.Machine(caches=(ew.CacheSpec(size_bytes=8192, ways=4),), part="lpddr4-3200"),
        *_what_calls_return(network.with_(weights=np.ones(network.n_connections, np.float32)), graph),
    ]  # fmt: skip
    for thing in held:
        line, table = repr(thing), thing._repr_html_()
        assert line.startswith(f"<{type(thing).__name__} ") and line.isprintable() and len(line) < 400, line
        assert table.startswith("<table>") and "<b>" not in table.replace("<tbody>", ""), table
    assert "48 connections" in repr(network).replace("connections 48", "48 connections"), repr(network)
    assert "on-chip 8 KiB 4-way lru" in repr(held[6]) and "points 4" in repr(results)


def _what_calls_return(network: ew.Network, graph: ew.operators.OpGraph) -> list[Any]:
    trace = ew.build_trace(network, ew.order(network, "two-optimal", memory=6))
    matrix = sp.random(20, 64, 0.3, format="csr", random_state=0)
    return [
        trace, ew.replay(trace, ew.Machine()), ew.compile_inference(network), graph,
        ew.encode(bytes(64), "dbi-dc", element_bytes=1), ew.order_tuples(matrix, value_format="fp16", stride=32),
        ew.config.load_sweep(SWEEP),
        ew.pays(network, "output-stationary", system="scratchpad-8k"),
    ]  # fmt: skip


def test_a_verdict_is_what_a_study_prints() -> None:
    study = ew.pays(uniform_layers([8, 8, 4], 0.5, seed=0), "output-stationary", system="scratchpad-8k")
    assert str(study) == f"{study.verdict} {study.made_for}"


def test_the_hint_is_the_command_for_a_checkout() -> None:
    command = install_command("report")
    if (Path(errors.__file__).parents[2] / "setup.cfg").is_file():
        assert "-m pip install -e" in command and command.endswith("[report]'") and "python" in command
    else:  # a copy of the packages alone, as `make debug-test` runs it
        assert command == "pip install 'edgewatt[report]'"


@pytest.mark.parametrize(
    "document",
    [
        {
            "network": SWEEP["base"]["network"],
            "measure": "io",
            "fast_memory": {"size": 5},
            "orderings": ["two-optimal", "ego"],
        },
        {"base": {"network": SWEEP["base"]["network"], "measure": "io"}, "grid": {"fast_memory.size": [5, 6]}},
    ],
    ids=["run", "sweep"],
)
def test_run_takes_what_the_command_takes(tmp_path: Path, document: dict[str, Any]) -> None:
    """The same file gives the same records from Python and from the command; a mapping is as good as a file."""
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps(document))
    made = CliRunner().invoke(app, ["run", str(file), "-o", str(tmp_path / "out")], catch_exceptions=False)
    assert made.exit_code == 0, made.output
    command = {record.hash: record.canonical for record in ew.results.load_records(tmp_path / "out")}
    for given in (file, document):
        found = {record.hash: record.canonical for record in ew.run(given)}
        assert len(found) == 2 and json.dumps(found, sort_keys=True) == json.dumps(command, sort_keys=True)


def test_init_writes_a_commented_configuration_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, shape in (("fc1.npz", (12, 8)), ("fc 2.npz", (4, 12))):
        sp.save_npz(name, sp.random(*shape, 0.5, "csr", random_state=0))
    done = CliRunner().invoke(app, ["init", "fc1.npz", "fc 2.npz", "-o", "mine.yaml"])
    assert done.exit_code == 0 and "edgewatt run mine.yaml" in done.output, done.output
    text = Path("mine.yaml").read_text()
    assert sum(line.lstrip().startswith("#") for line in text.splitlines()) > 15
    assert yaml.safe_load(text)["network"] == {"files": ["fc1.npz", "fc 2.npz"]}
    assert "layers of 8 -> 12 -> 4" in text
    ran = CliRunner().invoke(app, ["run", "mine.yaml"])
    assert ran.exit_code == 0 and ("take" in ran.output or "will do" in ran.output), ran.output
    os.rename(b"fc1.npz", b"fc\xff.npz")
    odd = CliRunner().invoke(app, ["init", os.fsdecode(b"fc\xff.npz"), "-o", "odd.yaml"])
    assert "is UTF-8, and this name is not" in str(odd.exception) and not Path("odd.yaml").exists()
    os.rename(b"fc\xff.npz", b"fc1.npz")
    save(uniform_layers([4, 4], 0.5).with_(name="n\udcff"), "inside.npz")
    assert CliRunner().invoke(app, ["init", "inside.npz", "-o", "odd.yaml"]).exit_code == 0
    assert yaml.safe_load(Path("odd.yaml").read_text())["name"] == "n?"
    matrices = [sp.csr_array([[1, 1], [0, 0]]), sp.csr_array([[1, 1]])]  # a hidden neuron has no incoming connection
    save(ew.from_matrices(matrices), "unfed.npz")
    assert CliRunner().invoke(app, ["init", "unfed.npz", "-o", "unfed.yaml"]).exit_code == 0
    assert "5 neurons, layers of 2 -> 1 -> 1 and 1 that nothing feeds." in Path("unfed.yaml").read_text()
    again = CliRunner().invoke(app, ["init", "fc1.npz", "-o", "mine.yaml"])
    assert isinstance(again.exception, InputError) and "there already" in str(again.exception)
    replaced = CliRunner().invoke(app, ["init", "fc1.npz", "-o", "mine.yaml", "--force"])
    assert replaced.exit_code == 0 and yaml.safe_load(Path("mine.yaml").read_text())["network"] == {"file": "fc1.npz"}
    assert CliRunner().invoke(app, ["init", "digits_small", "-o", "ours.yaml"]).exit_code == 0
    spaced = CliRunner().invoke(app, ["init", "fc1.npz", "-o", "my own.yaml"])
    assert "next:  edgewatt run 'my own.yaml'" in spaced.output
    before = Path("fc1.npz").read_bytes()
    itself = CliRunner().invoke(app, ["init", "fc1.npz", "-o", "fc1.npz", "--force"])
    assert "fc1.npz: is the network that the configuration names" in str(itself.exception)
    assert Path("fc1.npz").read_bytes() == before
    assert yaml.safe_load(Path("ours.yaml").read_text())["network"] == {"file": "digits_small"}  # runs anywhere
    wrong = CliRunner().invoke(app, ["init", "fc1.npz", "--system", "edgy", "-o", "other.yaml"])
    assert "did you mean 'edge'" in str(wrong.exception) and not Path("other.yaml").exists()


def test_where_blocking_has_it_all_the_answer_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sp.save_npz("tiny.npz", sp.csr_matrix(np.array([[1, 0], [2, 3]], np.float32)))
    said = " ".join(CliRunner().invoke(app, ["run", "tiny.npz"]).output.split())
    assert "Blocking has 100 % of that; beyond it this changes nothing: blocking will do." in said


def test_a_tenth_of_a_per_cent_is_no_reason_to_take_an_order() -> None:
    """`run` said "take auto" where `order` said "irrelevant", because blocking was worse than either."""
    plain, auto = (Software(order, "none", "fp32", "tuples") for order in ("two-optimal", "auto"))
    columns = (("row by row", "two-optimal", "csr", 100.0, 1.0), ("found", "auto", "tuples", 99.9, 1.0))
    least = Gain(-0.001, 0.0, -0.002, -0.0005, 1.0)
    card = Card("8 KiB", 16, auto, plain, 99.9, 1.0, columns, {"row by row": least}, 1.0, 0.016, 3)
    assert not card.order_matters and card.take == "row by row"
    assert card.sentences() == [
        "8 KiB: row by row will do: the best of the others saves 0.1 % energy (-0.2 .. -0.1 %); the worst costs 1.6 % "
        "more than it."
    ]
    more = replace(card, gains={"row by row": replace(least, energy=-0.02, low=-0.03, high=-0.01)})
    assert more.order_matters and more.take == "auto" and more.sentences()[0].startswith("8 KiB: take auto. It saves")
    alike = replace(card, order_range=0.002)
    assert alike.take == "any order" and "the order is irrelevant" in alike.sentences()[0]


def test_names_are_completed() -> None:
    def completed(words: str) -> list[str]:
        environment = {
            **os.environ,  # a sanitizer's runtime is preloaded
            "_EDGEWATT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1),
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        code = "import sys; sys.argv[0] = 'edgewatt'; from edgewatt.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
        return done.stdout.split()

    assert {"order", "order-tuples"} <= set(completed("edgewatt ord"))
    assert "connection-reordering" in completed("edgewatt order net.npz --method conn")
    assert "scratchpad-8k" in completed("edgewatt run net.npz --system scr")
    assert "orderings" in completed("edgewatt list ord")
