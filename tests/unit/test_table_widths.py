"""No table or sentence is wider than the terminal, and no number is broken, at 60 to 200 columns."""

import json
import random
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.cli.parts.answer import show_verdict
from edgewatt.cli.parts.output import show_table
from edgewatt.cli.parts.tables import show_records

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
def file(tmp_path_factory):
    from traces.generators.networks import random_layered
    from traces.readers.native import save

    path = tmp_path_factory.mktemp("widths") / "net.npz"
    save(random_layered(2, 24, 0.3, seed=1), str(path))
    return str(path)


COMMANDS = (
    ["run", "{net}", "-v", "-o", "{out}", "-s", "orderings=[two-optimal, tiles]"],
    ["order", "{net}", "-m", "by-source"],
    ["order", "{net}", "-m", "by-source", "--system", "scratchpad-8k"],
    ["pays", "{net}", "--order", "by-source", "--size", "2KiB", "--size", "4KiB"],
    ["list", "orderings"],
    ["list", "systems"],
)


@pytest.mark.application
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
@pytest.mark.parametrize("columns", [60, 140])
def test_commands_fit(command, columns, file, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    asked = [each.format(net=file, out=tmp_path / "out") for each in command]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    paths = (str(tmp_path), str(Path(file).parent))  # a path is one word
    wide = [line for line in done.stdout.splitlines() if len(line) > columns and not any(p in line for p in paths)]
    assert not wide


def test_the_answer_of_a_network_is_short(file, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", file, "-s", "orderings=[two-optimal, tiles, by-source]"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 80
    assert "scratchpad" in lines[0] and ("take " in done.stdout or "irrelevant" in done.stdout)
    assert list((tmp_path / "results" / "records").glob("*.json"))


def test_the_json_of_a_run_says_for_how_many_inputs(file, tmp_path):
    done = CliRunner().invoke(app, ["run", file, "-o", str(tmp_path), "-s", "orderings=two-optimal", "--json", "-"])
    (row,) = json.loads(done.stdout)
    assert row["inputs"] == row["lanes"] == 16
