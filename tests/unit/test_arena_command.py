"""`edgewatt arena`, and the reference instances where they are at hand."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewatt as ew
from edgewatt.cli import app
from edgewatt.operators.request import load_graph
from reorder.operators.arena.files import read_buffers
from reorder.operators.schedule.schedule import schedule
from tests.oracles.arena_oracle import height_of
from traces.base.errors import InputError

REFERENCE = Path(os.environ.get("EDGEWATT_REFERENCE", "/nowhere"))
TEXT = "id,lower,upper,size\na,0,2,3\nb,1,3,4\nc,2,4,3\n"


def test_the_command_places_and_writes(tmp_path: Path) -> None:
    file, out = tmp_path / "b.csv", tmp_path / "placed.csv"
    file.write_text(TEXT)
    done = CliRunner().invoke(app, ["arena", str(file), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "placed in 7 B: proved, no placement needs less" in done.output
    rows = list(csv.DictReader(out.open()))
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert max(int(row["offset"]) + int(row["size"]) for row in rows) == 7
    done = CliRunner().invoke(app, ["arena", str(file), "--capacity", "6", "--json", "-"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["fits"], found["lower_bound"]) == (False, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,lower,uper,size\n", "line 1: no column 'upper', did you mean 'uper'?"),
        ("id,lower,upper,size\na,0,2\n", "line 2: 3 fields, 4 are wanted"),
        ("id,lower,upper,size\na,0,1_0,1\n", "line 2: upper is '1_0': a whole number is wanted"),
        ("id,lower,upper,size\na,0,\uff11,1\n", "line 2: upper is '\uff11': a whole number is wanted"),
        ("id,lower,upper,size\na,0,x,1\n", "line 2: upper is 'x': a whole number is wanted"),
        ("id,lower,upper,size\na,0,1,1\na,0,1,1\n", "line 3: buffer 'a' is already in line 2"),
        ("id,lower,upper,size\na,2,1,1\n", "line 2: live from 2 to 1: upper must be above lower"),
        ("id,lower,upper,size\na,0,1,99999999999999999999\n", "line 2: size is 99999999999999999999: beyond 2^62"),
        ("", "line 1: no column 'id'"),
    ],
)
def test_bad_files_are_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "b.csv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        read_buffers(file)
    assert message.replace(", did you mean 'uper'?", "") in str(error.value)


def test_an_empty_list_needs_no_memory(tmp_path: Path) -> None:
    file = tmp_path / "b.csv"
    file.write_text("id,lower,upper,size\n")
    assert read_buffers(file).buffers.count == 0
    assert ew.allocate([], [], []).height == 0


@pytest.mark.skipif(not (REFERENCE / "arena").is_dir(), reason="no reference data: set EDGEWATT_REFERENCE")
@pytest.mark.parametrize("name", ["A", "C", "F", "G", "H", "I", "J", "K"])
def test_hard_instances_fit_their_capacity(name: str) -> None:
    given = read_buffers(REFERENCE / "arena" / "minimalloc" / f"{name}.1048576.csv").buffers
    found = ew.allocate(given.lower, given.upper, given.size, capacity=1_048_576)
    assert height_of(given, found.offset) == found.height <= 1_048_576


@pytest.mark.skipif(not (REFERENCE / "arena").is_dir(), reason="no reference data: set EDGEWATT_REFERENCE")
@pytest.mark.parametrize("name", ["n60_d0_s1", "n120_d5_s2", "n250_d20_s3", "n500_d25_s4"])
def test_instances_cut_from_a_rectangle_fit(name: str) -> None:
    given = read_buffers(REFERENCE / "arena" / f"cut_{name}.csv").buffers
    found = ew.allocate(given.lower, given.upper, given.size, capacity=1_048_576)
    assert height_of(given, found.offset) == found.height <= 1_048_576


@pytest.mark.skipif(
    not (REFERENCE / "schedule").is_dir(),
    reason="no reference data: set EDGEWATT_REFERENCE",
)
def test_the_arena_of_every_operator_graph_is_its_peak() -> None:
    for file in sorted((REFERENCE / "schedule").glob("*.json")):
        graph = ew.load(file, kind="opgraph")
        found = schedule(graph, alignment=1)
        assert found.arena_bytes == found.peak_bytes, file.name
        aligned = schedule(graph)
        assert np.all(aligned.offsets % 64 == 0)


def test_a_negative_budget_and_a_misspelt_cell_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="budget_bytes must be at least 1, not -5"):
        schedule(load_graph("darts_v2"), budget_bytes=-5)
    with pytest.raises(InputError, match=r"darts_v3: no such file, and no generated graph of that name.*'darts_v2'"):
        load_graph("darts_v3")
