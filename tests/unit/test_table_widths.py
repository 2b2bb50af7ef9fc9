"""No table or sentence is wider than the terminal, and no number is broken, at 60 to 200 columns."""

import json
import random
import re

import numpy as np
import pytest
from scipy.sparse import random_array, save_npz
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.cli.parts.answer import show_verdict
from edgewatt.cli.parts.output import show_table
from edgewatt.cli.parts.tables import show_records
from traces.generators.networks import random_layered
from traces.readers.native import save

WIDTHS = (60, 80, 100, 120, 140, 160, 200)
NETWORK = {"generate": {"kind": "random-layered", "n_layers": 2, "width": 24, "density": 0.3}}
NUMBER = re.compile(r"[+-]?\d[\d,.]*(?: ?[pnµmkMG]?[JsB]\b| %)?")


@pytest.fixture(params=WIDTHS)
def width(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def test_tables_of_any_columns_fit_and_keep_their_numbers(width, capsys):
    rng = random.Random(3)
    for _ in range(20):
        n = rng.randint(2, 16)
        numeric = [f"n{k} some longer head %" for k in range(n)]
        numbers = [[f"{rng.uniform(-1, 1) * 10 ** rng.randint(0, 9):,.2f} µJ" for _ in numeric] for _ in range(4)]
        words = ("alpha", "beta", "gamma-delta")
        texts = [" ".join(rng.choice(words) for _ in range(rng.randint(1, 12))) for _ in numbers]
        rows = [(text, *row) for text, row in zip(texts, numbers, strict=True)]
        show_table(("what", *numeric), rows, title="a title " * 30, numeric=numeric)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        shown = "\n".join(lines)
        assert all(number in shown for row in numbers for number in row)


@pytest.fixture(scope="module")
def records():
    onchip = [{"scratchpad": {"size_bytes": size}} for size in (2048, 4096)] + [{"caches": ["buffer-8k"]}]
    grid = {"formats": ["fp32", "int8"], "strides": ["none", 8], "orderings": ["two-optimal", "tiles", "by-source"]}
    return ew.run({"network": NETWORK, "system": "scratchpad-8k", "onchip": onchip, **grid})


def test_records_and_verdicts_fit(width, records, capsys):
    show_records(records, title="a run of several machines with a name that is long " * 3)
    assert show_verdict(records) and show_verdict(records[:6])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert not re.search(r"\d\n\s*[,.]\d", out)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Return a folder with one input of each kind of command."""
    folder = tmp_path_factory.mktemp("widths")
    save(random_layered(2, 24, 0.3, seed=1), str(folder / "net.npz"))
    save_npz(folder / "matrix.npz", random_array((40, 60), density=0.2, rng=np.random.default_rng(1), format="csr"))
    np.savez(folder / "inputs.npz", inputs=np.random.default_rng(2).normal(size=(32, 24)))
    (folder / "buffers.csv").write_text("id,lower,upper,size\nfirst,0,4,1000\nsecond,2,9,30000\nthird,5,9,200\n")
    (folder / "dram.trc").write_text(
        "".join(f"0x{64 * k * 37:x} {'WRITE' if k % 3 else 'READ'} {k}\n" for k in range(99))
    )
    (folder / "accesses.din").write_text("".join(f"{k % 2} {8 * (k * 11 % 97):x}\n" for k in range(500)))
    np.savez(folder / "tensors.npz", layer0_filter=np.ones((64, 32), np.int16))
    counts = "layer,tensor,dram_reads,dram_writes,access_bits\n0,filter,2048,0,16\n"
    (folder / "counts.csv").write_text(counts)
    sweep = {"base": {"network": NETWORK, "system": "scratchpad-8k", "orderings": ["two-optimal", "tiles"]}}
    space = {"grid": {"scratchpad.size_bytes": [2048, 4096]}}
    (folder / "sweep.yaml").write_text(json.dumps(sweep | space))
    optimize = {"objectives": ["energy_pj", "time_ns"], "trials": 2}
    (folder / "optimize.yaml").write_text(json.dumps(sweep | space | {"optimize": optimize}))
    for name in ("one", "other"):
        ew.sweep(sweep | space | {"list": [{"seed": len(name)}]}, results=folder / name, executor="inline")
    np.save(folder / "order.npy", ew.order(random_layered(2, 24, 0.3, seed=1), "by-source", memory=9).edges)
    (folder / "record.json").write_bytes(min((folder / "one" / "records").iterdir()).read_bytes())
    return folder


COMMANDS = (
    "run {in}/net.npz -o {out}",
    "run {in}/net.npz -v -o {out} -s orderings=[two-optimal,tiles]",
    "sweep {in}/sweep.yaml -o {out} --executor inline",
    "collect {in}/one -o {out}.csv",
    "rerun {in}/record.json",
    "report {in}/one -o {out}.html",
    "compare {in}/one {in}/other",
    "optimize {in}/optimize.yaml -o {out}",
    "show {in}/record.json",
    "init {in}/net.npz -o {out}.yaml",
    "order {in}/net.npz -m by-source -o {out}.npz",
    "order {in}/net.npz -m by-source --system scratchpad-8k",
    "order {in}/net.npz -m by-source --objective time",
    "pays {in}/net.npz --order by-source --size 2KiB --size 4KiB",
    "order-tuples {in}/matrix.npz --format fp16 --stride 8 -o {out}.npz",
    "prune {in}/net.npz --memory 20 --density 0.3 --calibration {in}/inputs.npz",
    "schedule darts_v2 --rewrite all --onchip-bytes 64KiB",
    "arena {in}/buffers.csv",
    "cache {in}/accesses.din --level 4KiB:64:4:srrip",
    "dram {in}/dram.trc --explain",
    "dram {in}/dram.trc --check",
    "accelerator {in}/counts.csv --tensors {in}/tensors.npz",
    "export {in}/accesses.din -f dinero -o {out}.din",
    "export {in}/net.npz -f c -o {out}.c",
    "bench {in}/net.npz",
    "validate --network {in}/net.npz --order {in}/order.npy",
    "list orderings",
    "list systems",
    "list parts",
    "list encoders",
    "doctor",
)


@pytest.mark.application
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_fit(command, given, tmp_path, monkeypatch):
    """What a command prints fits: the paths that it was given may be longer, and are words that stay whole."""
    monkeypatch.chdir(tmp_path)
    for columns in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(columns))
        asked = command.format_map({"in": given, "out": tmp_path / f"out{columns}"}).split()
        done = CliRunner().invoke(app, asked)
        assert done.exit_code == 0, done.output
        paths = (str(tmp_path), str(given))
        wide = [line for line in done.stdout.splitlines() if len(line) > columns and not any(p in line for p in paths)]
        assert not wide, columns
        assert not re.search(r"\d\n\s*[,.]\d", done.stdout), columns


def test_the_answer_of_a_network_is_short(given, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", str(given / "net.npz"), "-s", "orderings=[two-optimal, tiles, by-source]"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 80
    assert "scratchpad" in lines[0] and ("take " in done.stdout or "irrelevant" in done.stdout)
    assert list((tmp_path / "results" / "records").glob("*.json"))


def test_the_json_of_a_run_says_for_how_many_inputs(given, tmp_path):
    done = CliRunner().invoke(
        app, ["run", str(given / "net.npz"), "-o", str(tmp_path), "-s", "orderings=two-optimal", "--json", "-"]
    )
    (row,) = json.loads(done.stdout)
    assert row["inputs"] == row["lanes"] == 16
