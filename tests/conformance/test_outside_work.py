"""Formats, layouts, readers, writers and generators of another distribution, used from Python, CLI and YAML."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.application

MODULES = {
    "own_format": """
from edgewatt.plugins import FORMATS, FloatFormat

FORMATS.register("fp8_e3m4", summary="3 exponent, 4 mantissa bits")(FloatFormat(8, "float8_e3m4"))
""",
    "own_layout": """
from edgewatt.plugins import LAYOUTS, LayoutKind


class SourcesOnly(LayoutKind):
    runs_of = "target"
    ids = ("source",)


LAYOUTS.register("sources-only", summary="rows one after another, without pointers")(SourcesOnly())
""",
    "own_reader": """
from edgewatt.plugins import TRACE_READERS, TextReader


def parse(words):
    if len(words) != 3 or words[0] != "access":
        raise ValueError("no access")
    return int(words[1], 16), 0, int(words[2] == "out"), -1


TRACE_READERS.register("own-trace", summary="access ADDRESS in|out")(TextReader(parse))
""",
    "own_writer": """
from edgewatt.plugins import TRACE_WRITERS, TraceWriter


class Own(TraceWriter):
    suffix = ".own"

    def write(self, trace, stream, line_bytes):
        written = 0
        for chunk in trace:
            for address, op in zip(chunk.address.tolist(), chunk.op.tolist(), strict=True):
                stream.write(f"access {address:x} {'out' if op else 'in'}\\n".encode())
            written += len(chunk)
        return written


TRACE_WRITERS.register("own-trace", summary="access ADDRESS in|out")(Own())
""",
    "own_network": """
import numpy as np
from edgewatt.plugins import NETWORK_READERS, Matrix, MatrixReader


class Dense(MatrixReader):
    suffixes = (".dense",)

    def matrices(self, path, names):
        values = np.loadtxt(path, ndmin=2)
        rows, columns = np.nonzero(values)
        return [Matrix(rows, columns, values[rows, columns], values.shape, str(path))]


NETWORK_READERS.register("dense-text", summary="one row of numbers per line")(Dense())
""",
    "own_generator": """
import numpy as np
from edgewatt.plugins import GENERATORS, Network, generator


@generator
def fan(n_inputs: int, weight: float = 1.0) -> Network:
    \"\"\"Build one output fed by all inputs.\"\"\"
    return Network(np.arange(n_inputs), np.full(n_inputs, n_inputs), n_neurons=n_inputs + 1, inputs=np.arange(n_inputs),
                   outputs=[n_inputs], weights=np.full(n_inputs, weight, np.float32), name="fan")
""",
}
ENTRY_POINTS = """
[edgewatt.formats]
fp8_e3m4 = own_format
[edgewatt.layouts]
sources-only = own_layout
[edgewatt.trace_readers]
own-trace = own_reader
[edgewatt.trace_writers]
own-trace = own_writer
[edgewatt.network_readers]
dense-text = own_network
[edgewatt.generators]
fan = own_generator
[edgewatt.readers_of_nothing]
broken = no_such_module
"""

FROM_PYTHON = """
import json, sys
import edgewatt as ew
from edgewatt.plugins import registry
from traces.layouts import Layout

folder = sys.argv[1]
network = ew.load(folder + "/layer.dense")
trace = ew.build_trace(network, layout=Layout(kind="sources-only", value_format="fp8_e3m4"))
n = ew.export_trace(trace, folder + "/python.own", "own-trace")
from traces.trace_readers import open_trace
back = open_trace(folder + "/python.own")
kinds = {"formats": "fp8_e3m4", "layouts": "sources-only", "trace-readers": "own-trace", "trace-writers": "own-trace",
         "network-readers": "dense-text", "generators": "fan"}
print(json.dumps({
    "connections": network.n_connections, "records": n, "read": back.n_accesses, "format": back.description["format"],
    "regions": [r.name for r in trace.memory.regions],
    "origins": {kind: [registry(kind)[name].origin.distribution, registry(kind)[name].origin.version]
                for kind, name in kinds.items()},
    "listed": {kind: name in [entry["name"] for entry in ew.catalogue(kind)] for kind, name in kinds.items()},
}))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds an installed distribution, and a layer in its kind of file."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / "own_work-3.4.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-work\nVersion: 3.4\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "layer.dense").write_text("1 0 2\n0 3 4.5\n")
    return folder


def run(folder: Path, program: str, *words: str, status: int = 0) -> str:
    """Run a program of a Python that has the distribution; return what it printed."""
    path = [str(folder), *(p for p in sys.path if p)]
    start = f"import sys; sys.path[:0] = {path!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program, *words], capture_output=True, text=True, timeout=200, cwd=folder
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


COMMAND = "from edgewatt.cli import main; main()"


def test_they_work_from_python(installed: Path) -> None:
    found = json.loads(run(installed, FROM_PYTHON, str(installed)))
    assert found["connections"] == 4 and found["records"] == found["read"] > 4
    assert found["format"] == "own-trace"
    assert found["regions"] == ["column_ids", "values", "neurons"]
    assert set(map(tuple, found["origins"].values())) == {("own-work", "3.4")}
    assert all(found["listed"].values())


def test_they_work_from_yaml_and_the_command_line(installed: Path) -> None:
    config = {
        "network": {"file": "layer.dense"},
        "orderings": [{"kind": "two-optimal"}],
        "formats": ["fp8_e3m4", "fp32"],
        "layout": {"kind": "tuples"},
        "measure": "all",
    }
    (installed / "run.yaml").write_text(yaml.safe_dump(config))
    run(installed, COMMAND, "run", "run.yaml", "-o", "out")
    records = [json.loads(path.read_text()) for path in sorted((installed / "out").rglob("*.json"))]
    assert any("fp8_e3m4" in json.dumps(record) and "own-work" in json.dumps(record) for record in records)
    config |= {"network": {"generate": {"kind": "fan", "n_inputs": 5}}, "layout": {"kind": "sources-only"}}
    (installed / "fan.yaml").write_text(yaml.safe_dump(config))
    run(installed, COMMAND, "export", "fan.yaml", "-f", "own-trace", "-o", "fan.own")
    assert (installed / "fan.own").read_text().startswith("access ")
    recorded = {"trace": {"file": "fan.own", "format": "own-trace"}}
    (installed / "recorded.yaml").write_text(yaml.safe_dump(recorded))
    run(installed, COMMAND, "run", "recorded.yaml", "-o", "out2")
    run(installed, COMMAND, "export", "fan.own", "--from", "own-trace", "-f", "dinero", "-o", "fan.din")
    assert (installed / "fan.din").read_text().startswith("r ")
    listed = json.loads(run(installed, COMMAND, "list", "trace-readers", "--json", "-"))
    assert {"own-trace", "dinero"} <= {entry["name"] for entry in listed}


def test_a_name_nobody_brings_is_refused_where_it_stands(installed: Path) -> None:
    (installed / "wrong.yaml").write_text(yaml.safe_dump({"trace": {"file": "layer.dense", "format": "own-trcae"}}))
    said = run(installed, COMMAND, "run", "wrong.yaml", "-o", "out3", status=2)
    assert "wrong.yaml:3:11" in said and "did you mean 'own-trace'" in said.replace("\n", " ")
